//! Shapes and values go, whole or in pieces; everything else stays.

use std::io::{Read, Write};

use super::stream::{CHUNK, OVERLAP};
use super::*;

#[test]
fn known_shapes_are_replaced_and_the_rest_stays() {
    let gh = format!("ghp_{}", "a1B2".repeat(9));
    let cases = [
        (format!("token {gh} end"), "token [redacted] end".to_owned()),
        ("Authorization: Bearer abc.def-123456".to_owned(), "Authorization: Bearer [redacted]".to_owned()),
        (
            "\"authorization\":\"Basic dXNlcjpwYXNz\"".to_owned(),
            "\"authorization\":\"Basic [redacted]\"".to_owned(),
        ),
        ("key AKIAIOSFODNN7EXAMPLE.".to_owned(), "key [redacted].".to_owned()),
        ("postgres://joe:hunter2@db/x".to_owned(), "postgres://joe:[redacted]@db/x".to_owned()),
        (
            "{\\\"password\\\":\\\"hunter22\\\"}".to_owned(),
            "{\\\"password\\\":\\\"[redacted]\\\"}".to_owned(),
        ),
        (format!("sk-ant-{}", "x".repeat(30)), "[redacted]".to_owned()),
        (format!("xoxb-{}", "1".repeat(12)), "[redacted]".to_owned()),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- x".to_owned(),
            "[redacted] x".to_owned(),
        ),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1".to_owned(), "[redacted]".to_owned()),
        (
            "AWS_SECRET_ACCESS_KEY=".to_owned() + &"k".repeat(40),
            "AWS_SECRET_ACCESS_KEY=[redacted]".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(Redactor::known().redact(&text), expected);
    }
    for plain in ["a task-force of 12", "https://h:8080/x", "no secrets here", "skip-this", ""] {
        assert!(matches!(Redactor::known().redact(plain), Cow::Borrowed(_)), "{plain}");
    }
}

#[test]
fn own_patterns_join_and_errors_name_the_line() {
    let own = Redactor::with_patterns("# ours\n\nACME-[0-9]+\nuser=(?<secret>\\w+)\n").unwrap();
    assert_eq!(own.redact("ACME-12 user=bob AKIAIOSFODNN7EXAMPLE"), "[redacted] user=[redacted] [redacted]");
    let error = Redactor::with_patterns("ok\n\n(unclosed").unwrap_err();
    assert_eq!(error.line, 3);
    assert_eq!(Redactor::with_patterns("x*").unwrap_err().line, 1);
}

#[test]
fn a_secret_across_pieces_is_seen() {
    let secret = format!("ghp_{}", "Z".repeat(36));
    let text = format!("{} {secret} {}", "word ".repeat(40_000), "more ".repeat(20_000));
    let mut writer = Redactor::known().writer(Vec::new());
    for piece in text.as_bytes().chunks(777) {
        writer.write_all(piece).unwrap();
    }
    let written = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert_eq!(written, text.replace(&secret, REDACTED));
    let mut read = String::new();
    Redactor::known().reader(text.as_bytes()).read_to_string(&mut read).unwrap();
    assert_eq!(read, written);
}

#[test]
fn a_secret_that_is_known_by_its_name_is_seen_wherever_a_stream_is_cut() {
    let find = "password=sesame123";
    for before in 0..=find.len() {
        let text = format!("{}{find} {}", " ".repeat(CHUNK - before), "more ".repeat(CHUNK));
        let mut writer = Redactor::known().writer(Vec::new());
        // Of the first pieces that are looked through, what is written ends at `CHUNK`.
        for piece in text.as_bytes().chunks(OVERLAP) {
            writer.write_all(piece).unwrap();
        }
        let written = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert!(written == text.replace("sesame123", REDACTED), "{before} bytes before the cut");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(proptest::prelude::ProptestConfig::default().cases / 16))]
    #[test]
    fn streams_redact_like_whole_texts(filler in "[a-z :=\"@/-]{0,40}", piece in 1usize..90_000, at in 0usize..150_000) {
        let mut text = "lorem ipsum dolor ".repeat(9000);
        text.insert_str(at, &format!(" {filler} AKIAIOSFODNN7EXAMPLE password={filler}sesame123 "));
        let mut writer = Redactor::known().writer(Vec::new());
        for piece in text.as_bytes().chunks(piece) {
            writer.write_all(piece).unwrap();
        }
        let written = String::from_utf8(writer.finish().unwrap()).unwrap();
        proptest::prop_assert_eq!(written, Redactor::known().redact(&text).into_owned());
    }
}
