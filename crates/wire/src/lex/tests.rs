use super::*;
use std::fmt::Write;

#[derive(Default, Debug, PartialEq, Clone)]
struct Trace(String);

impl Sink for Trace {
    fn open(&mut self, container: Container, at: u64) {
        write!(self.0, "{}{at} ", if container == Container::Object { "{" } else { "[" }).unwrap();
    }
    fn close(&mut self, container: Container, end: u64) {
        write!(self.0, "{}{end} ", if container == Container::Object { "}" } else { "]" }).unwrap();
    }
    fn comma(&mut self) {
        self.0 += ", ";
    }
    fn string_begin(&mut self, key: bool, at: u64) {
        write!(self.0, "{}{at}\"", if key { "k" } else { "s" }).unwrap();
    }
    fn run(&mut self, run: Run<'_>) {
        self.0.extend(run.bytes.iter().map(|byte| char::from(*byte)));
    }
    fn escape(&mut self, unit: u16, raw: &[u8]) {
        write!(self.0, "<{unit}={}>", String::from_utf8_lossy(raw)).unwrap();
    }
    fn string_end(&mut self, end: u64) {
        write!(self.0, "\"{end} ").unwrap();
    }
    fn atom(&mut self, bytes: &[u8], _at: u64) {
        self.0 += &String::from_utf8_lossy(bytes);
    }
    fn atom_end(&mut self, end: u64) {
        write!(self.0, ":{end} ").unwrap();
    }
}

fn trace(pieces: &[&[u8]]) -> Result<String, SyntaxError> {
    let (mut lexer, mut sink) = (Lexer::new(), Trace::default());
    for piece in pieces {
        lexer.feed(piece, &mut sink)?;
    }
    lexer.finish(&mut sink)?;
    Ok(sink.0)
}

#[test]
fn events_of_a_small_document() {
    let events = trace(&[br#" {"a":[1,-2.5e+3,true],"b\n":"x\u00e9y","c":{}} "#]).unwrap();
    expect_test::expect![[r#"{1 k2"a"5 [6 1:8 , -2.5e+3:16 , true:21 ]22 , k23"b<10=\n>"28 s29"x<233=\u00e9>y"39 , k40"c"43 {44 }46 }47 "#]]
    .assert_eq(&events);
}

#[test]
fn malformed_input_is_refused_at_its_byte() {
    for (input, offset) in [
        ("", 0),
        ("{", 1),
        ("{]", 1),
        ("[1,]", 3),
        ("{\"a\" 1}", 5),
        ("{\"a\":1,}", 7),
        ("01", 1),
        ("1.", 2),
        ("-", 1),
        ("-x", 1),
        ("1e", 2),
        ("tru", 3),
        ("trux", 3),
        ("\"\\x\"", 2),
        ("\"\\u12g4\"", 5),
        ("{} {}", 3),
        ("Server up", 0),
        ("[1 2]", 3),
        ("{1:2}", 1),
    ] {
        let error = trace(&[input.as_bytes()]).unwrap_err();
        assert_eq!(error.offset, offset, "{input}: {error}");
    }
}

#[test]
fn leniences_are_flagged() {
    for input in ["[NaN]", "[-Infinity,Infinity]", "\"a\tb\"", "\"0123456789012345678901234567890\u{1}\""] {
        let mut lexer = Lexer::new();
        lexer.feed(input.as_bytes(), &mut Trace::default()).unwrap();
        lexer.finish(&mut Trace::default()).unwrap();
        assert!(lexer.is_lax(), "{input}");
    }
}

#[test]
fn depth_is_bounded_and_cheap() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    trace(&[deep.as_bytes()]).unwrap();
    let mut lexer = Lexer::new();
    let flood = vec![b'['; 1_000_001];
    assert_eq!(lexer.feed(&flood, &mut Trace::default()).unwrap_err().offset, 1_000_000);
    assert!(lexer.deep.len() * 8 <= 128 << 10);
}

proptest::proptest! {
    #[test]
    fn any_split_gives_the_same_events(text in "[\\[\\]{}:,\"\\\\ua0-9eE.+ntrflsé -]{0,60}", cuts in proptest::collection::vec(0usize..64, 0..6)) {
        let whole = trace(&[text.as_bytes()]);
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        proptest::prop_assert_eq!(whole, trace(&pieces));
    }

    #[test]
    fn agrees_with_serde_json(text in "[\\[\\]{}:,\"\\\\/ubn0-9a-fE.+ntrfls-]{0,24}") {
        let mut lexer = Lexer::new();
        let ours = lexer.feed(text.as_bytes(), &mut Trace::default()).and_then(|()| lexer.finish(&mut Trace::default()));
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        proptest::prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{} {:?} {:?}", text, ours, theirs);
    }
}
