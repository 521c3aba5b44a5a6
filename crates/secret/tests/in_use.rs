//! Values in use are found in every form, and forgotten when nobody needs them.

use std::borrow::Cow;
use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use toolway_secret::{REDACTED, RedactingLines, Redactor, Secret};

/// Blanks and signs that every encoding writes its own way.
const AWKWARD: &str = "zw\u{f6}lf/9>\"+\\~ %41&=?\u{1f511}";

fn redacted(text: &str) -> String {
    Redactor::known().redact(text).into_owned()
}

fn percent(text: &str, keeps: &str, lower: bool) -> String {
    let one = |byte: u8| match byte {
        _ if byte.is_ascii_alphanumeric() || keeps.as_bytes().contains(&byte) => char::from(byte).to_string(),
        _ if lower => format!("%{byte:02x}"),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn json(text: &str) -> String {
    let one = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        _ => c.to_string(),
    };
    text.chars().map(one).collect()
}

fn json_ascii(text: &str) -> String {
    let units = |c: char| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"));
        units.collect::<String>()
    };
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { units(c) }).collect()
}

#[test]
fn every_form_of_a_value_is_found() {
    let _held = Secret::in_use(AWKWARD);
    let hex = |upper: bool| -> String {
        let one = |byte: u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
        AWKWARD.bytes().map(one).collect()
    };
    let forms = [
        AWKWARD.to_owned(),
        AWKWARD.replace(' ', "+"),
        json(AWKWARD),
        json(&json(AWKWARD)),
        json_ascii(AWKWARD),
        json(AWKWARD).replace('/', "\\/"),
        percent(AWKWARD, "-._~", false),
        percent(AWKWARD, "-._~", true),
        percent(AWKWARD, "-._~!'()*/;:@$,", false),
        percent(AWKWARD, "-._* ", false).replace(' ', "+"),
        percent(&json(AWKWARD), "-._~", false),
        json(&percent(AWKWARD, "-._~/", false)),
        STANDARD.encode(AWKWARD),
        URL_SAFE.encode(AWKWARD),
        STANDARD_NO_PAD.encode(AWKWARD),
        percent(&STANDARD.encode(AWKWARD), "-._~", false),
        hex(true),
        hex(false),
    ];
    for form in forms {
        assert_eq!(redacted(&format!("x={form} end")), "x=[redacted] end", "{form}");
    }
}

#[test]
fn a_value_within_a_larger_base64_text_is_found_wherever_it_begins() {
    let value = "s3ntinel-of-base64";
    let _held = Secret::in_use(value);
    for before in ["", "u", "us", "use", "user", "user:"] {
        for behind in ["", "!", "!!", "!!!"] {
            let text = format!("{before}{value}{behind}");
            for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text), STANDARD_NO_PAD.encode(&text)] {
                let clean = redacted(&format!("\"{encoded}\""));
                let left = clean.trim_matches('"').replace(REDACTED, "");
                assert!(clean.contains(REDACTED), "{text}: {clean}");
                // What is left tells of what is beside the value alone.
                assert!(left.len() <= (before.len() + behind.len()).div_ceil(3) * 4, "{text}: {clean}");
                let padded = STANDARD.decode(left.trim_end_matches('=')).unwrap_or_default();
                assert!(
                    !String::from_utf8_lossy(&padded).contains(value.get(..3).unwrap()),
                    "{text}: {clean}"
                );
            }
        }
    }
}

#[test]
fn credentials_and_passwords_are_known_by_themselves() {
    let _bearer = Secret::in_use("Bearer of-good-news-17");
    let _basic = Secret::in_use(format!("basic {}", STANDARD.encode("joe:swordfish-23")));
    assert_eq!(redacted("got of-good-news-17"), "got [redacted]");
    assert_eq!(redacted("got swordfish-23 of joe"), "got [redacted] of joe");
}

#[test]
fn long_values_and_those_of_several_lines_go_as_a_whole_and_by_line() {
    let lines: Vec<String> = (0..40).map(|line| format!("{line:03}{}", "kQ7".repeat(20))).collect();
    let value = format!("-----BEGIN THING-----\n{}\n-----END THING-----\n", lines.join("\n"));
    let _held = Secret::in_use(&value);
    let clean = redacted(&format!("<{value}>"));
    assert!(lines.iter().all(|line| !clean.contains(line.get(3..20).unwrap())), "{clean}");
    assert_eq!(redacted(&format!("server: {}", lines[7])), "server: [redacted]");
    let long: String = (0..9000_u32).map(|n| char::from(b'a' + u8::try_from(n * n % 26).unwrap())).collect();
    let _held = Secret::in_use(&long);
    assert_eq!(redacted(&format!("<{long}>")).replace(REDACTED, ""), "<>");
}

#[test]
fn words_of_every_text_are_no_secrets() {
    for plain in ["abc", "true", "Production", "4711", "", "   ", "application/json"] {
        let held = Secret::in_use(plain);
        let text = format!("is {plain} here");
        assert_eq!(held.expose(), plain);
        assert!(matches!(Redactor::known().redact(&text), Cow::Borrowed(_)), "{plain}");
    }
}

#[test]
fn json_stays_json_and_numbers_stay() {
    let _held = [Secret::in_use("73952614"), Secret::in_use("json\"quote")];
    let json = r#"{"id":73952614,"73952614":["a\n73952614","json\"quote\\",true]}"#;
    let clean = r#"{"id":73952614,"[redacted]":["a\n[redacted]","[redacted]\\",true]}"#;
    assert_eq!(Redactor::known().redact_json(json), clean);
    let shaped = r#"{"t":"\nghp_abcdefghijklmnopqrstuvwxyz0123456789","password":"hunter22"}"#;
    assert_eq!(Redactor::known().redact_json(shaped), r#"{"t":"\n[redacted]","password":"[redacted]"}"#);
}

#[test]
fn a_value_is_found_wherever_a_stream_is_cut() {
    let value = "cut-anywhere-\u{e4}-9000";
    let _held = Secret::in_use(value);
    let forms = [value.to_owned(), STANDARD.encode(value), percent(value, "-", false), json_ascii(value)];
    for form in &forms {
        for size in [1, 7, 1000, 70_000] {
            let text = format!("{}{form}{}", "word ".repeat(20_000), " more".repeat(20_000));
            let mut writer = Redactor::known().writer(Vec::new());
            for piece in text.as_bytes().chunks(size) {
                writer.write_all(piece).unwrap();
            }
            let written = String::from_utf8(writer.finish().unwrap()).unwrap();
            assert!(written == text.replace(form.as_str(), REDACTED), "{form} in pieces of {size}");
            let mut read = String::new();
            Redactor::known().reader(text.as_bytes()).read_to_string(&mut read).unwrap();
            assert!(read == written, "{form}");
        }
    }
}

#[test]
fn of_a_text_that_comes_in_pieces_only_the_beginning_of_a_value_is_held_back() {
    let value = "ab\u{f6}abc-in-pieces";
    let _held = Secret::in_use(value);
    for (text, shown) in [
        ("nothing of it!", "nothing of it!"),
        ("it begins: ab", "it begins: "),
        ("it begins: ab\u{f6}a", "it begins: "),
        ("it begins: ab\u{f6}ab", "it begins: "),
        ("it begins: ab\u{f6}ab!", "it begins: ab\u{f6}ab!"),
        ("aab\u{f6}abc-in-piece", "a"),
        ("all of ab\u{f6}abc-in-pieces!", "all of ab\u{f6}abc-in-pieces!"),
        ("", ""),
    ] {
        assert_eq!(Redactor::split_unfinished(text).0, shown, "{text}");
    }
    let encoded = STANDARD.encode(value);
    let (begun, _) = encoded.split_at(9);
    assert_eq!(Redactor::split_unfinished(&format!("say {begun}")).0, "say ");
}

#[test]
fn a_text_that_comes_in_pieces_loses_its_secrets_wherever_it_is_cut() {
    let second = "zz-second/+= \"%41\\<&>'~;,\u{fc}\u{1f511}|$zz";
    let _held = [Secret::in_use(AWKWARD), Secret::in_use(second)];
    let mut forms = Vec::new();
    for value in [AWKWARD, second] {
        forms.extend([
            value.to_owned(),
            json(value),
            json(&json(value)),
            json_ascii(value),
            percent(value, "-._~", false),
            percent(value, "-._~/", true),
            STANDARD.encode(value),
            value.to_owned(),
        ]);
    }
    let text = forms.join(" | ");
    for size in 1..40 {
        let (mut out, mut held) = (String::new(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            held.extend(piece);
            let (shown, end) = Redactor::split_unfinished(&held);
            out.push_str(&Redactor::known().redact(shown));
            held = end.to_owned();
        }
        out.push_str(&Redactor::known().redact(&held));
        assert_eq!(out, vec![REDACTED; forms.len()].join(" | "), "in pieces of {size}");
    }
}

#[test]
fn lines_are_given_out_at_once_and_cut_secrets_are_held_back() {
    let value = "line-value-314159";
    let _held = Secret::in_use(value);
    let mut lines = RedactingLines::new(Redactor::known());
    assert_eq!(lines.push(b"one\ntwo line-val"), b"one\n");
    assert!(lines.holds());
    assert_eq!(lines.push(b"ue-314159 three\nprompt> "), b"two [redacted] three\n");
    assert_eq!(lines.rest(), b"prompt> ");
    assert!(!lines.holds());
    // A line without an end is not held back for ever.
    let text = format!("{}{value}{}", "w ".repeat(20_000), " w".repeat(20_000));
    let mut out = Vec::new();
    let (mut held, mut given) = (0, 0);
    for piece in text.as_bytes().chunks(777) {
        given += piece.len();
        out.extend(lines.push(piece));
        held = held.max(given - out.len());
    }
    assert!(held < 20_000, "{held}");
    out.extend(lines.rest());
    assert!(String::from_utf8(out).unwrap() == text.replace(value, REDACTED));
}

proptest::proptest! {
    #[test]
    fn any_text_with_any_value_loses_it_and_nothing_else(
        value in "[a-z\"%\\\\ \u{e4}]{4,12}", before in "[a-z%\\\\\" ]{0,12}", behind in "[a-z%\\\\\" ]{0,12}"
    ) {
        let value = format!("Q{value}7");
        let _held = Secret::in_use(&value);
        let text = format!("{before}{value}{behind}");
        let clean = redacted(&text);
        proptest::prop_assert!(!clean.contains(&value));
        proptest::prop_assert!(clean.contains(REDACTED));
    }
}
