//! What is read, where it stands, and what is refused with which words.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn json(text: &str, format: Format) -> Json {
    read(text.as_bytes(), format).unwrap().to_json()
}

/// The first problem: place, text and hint.
fn refused(bytes: &[u8], format: Format) -> String {
    let problem = &read(bytes, format).unwrap_err()[0];
    let place = problem.at.map_or_else(String::new, |at| format!("{}:{}: ", at.line, at.column));
    let hint = problem.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
    format!("{place}{}{hint}", problem.text())
}

fn place(node: &Node) -> (u32, u32) {
    (node.at.line, node.at.column)
}

#[test]
fn the_same_data_in_four_formats_is_the_same_tree() {
    let data = json!({"mcpServers": {"a b": {"args": ["x", "-1"], "n": 5, "f": 1.5, "on": true, "env": {}}}});
    let texts = [
        (Format::Json, data.to_string()),
        (
            Format::Jsonc,
            "// c\r\n{ \"mcpServers\": /* d */ {\"a b\": {\"args\": [\"x\", \"-1\",], \"n\": 5,\r\n\"f\": 1.5, \"on\": \
             true, \"env\": {},},},}"
                .to_owned(),
        ),
        (
            Format::Toml,
            "[mcpServers.\"a b\"]\nargs = ['x', \"-1\"]\nn = 5 # c\nf = 1.5\non = true\n[mcpServers.\"a b\".env]\n"
                .to_owned(),
        ),
        (
            Format::Yaml,
            "mcpServers:\n  a b: # c\n    args: [x, '-1']\n    n: 5\n    f: 1.5\n    on: true\n    env: {}\n".to_owned(),
        ),
    ];
    for (format, text) in texts {
        assert_eq!(json(&text, format), data, "{format:?}");
    }
}

#[test]
fn every_value_knows_its_place_behind_a_byte_order_mark_and_crlf() {
    let text = "\u{feff}{\r\n  // höh\r\n  \"ä\": {\"b\": [1, \"zwei\"]}\r\n}";
    let root = read(text.as_bytes(), Format::Jsonc).unwrap();
    let two = root.pointer("/ä/b/1").unwrap();
    assert_eq!((place(&root), place(two)), ((1, 1), (3, 18)));
    assert_eq!(text.get(two.at.offset..two.end), Some("\"zwei\""));
    assert_eq!(root.members().unwrap()[0].0.at.column, 3);

    let text = "top = 1\n[a.\"b c\"]\n  x = { y = [ 1, 'ü', 2 ] }\n[[list]]\nz = 1\n";
    let root = read(text.as_bytes(), Format::Toml).unwrap();
    let item = root.pointer("/a/b c/x/y/2").unwrap();
    assert_eq!(place(item), (3, 23));
    assert_eq!(text.get(item.at.offset..item.end), Some("2"));
    assert_eq!(place(root.pointer("/list/0/z").unwrap()), (5, 5));

    let text = "a:\n  - ö: {k: v}\n    m: |\n      text\n";
    let root = read(text.as_bytes(), Format::Yaml).unwrap();
    let value = root.pointer("/a/0/ö/k").unwrap();
    assert_eq!(place(value), (2, 12));
    assert_eq!(text.get(value.at.offset..value.end), Some("v"));
    assert_eq!(root.pointer("/a/0/m").unwrap().as_str(), Some("text\n"));
}

#[test]
fn a_fault_is_told_with_its_line() {
    let cases: [(&str, Format, &str); 14] = [
        ("{\"a\": 1\n \"b\": 2}", Format::Jsonc, "1:8: a comma is missing here"),
        ("{\n\"a\": {\n\"b\": 2}", Format::Jsonc, "1:1: this { is never closed (add the missing })"),
        ("{\"a\": [1, }", Format::Jsonc, "1:11: unexpected close brace"),
        ("{\"a\": 'x'}", Format::Jsonc, "1:7: single quotes are not allowed (use double quotes)"),
        ("{a: 1}", Format::Jsonc, "1:2: a name in quotes is missing here"),
        ("{} {}", Format::Jsonc, "1:4: there is more behind the end of the value"),
        (" \n", Format::Jsonc, "1:1: holds no value (write {} into it)"),
        (
            "{ // x\n}",
            Format::Json,
            "1:3: comments are not allowed in this file (its client reads strict JSON)",
        ),
        (
            "{\"a\": 1,\n}",
            Format::Json,
            "1:8: a comma before a closing bracket is not allowed in this file (remove it)",
        ),
        (
            "{\"a\":\n \"\t\"}",
            Format::Json,
            "2:2: is no JSON: control character (\\u0000-\\u001F) found while parsing a string",
        ),
        ("a = 1\nb = \n", Format::Toml, "2:5: string values must be quoted, expected literal string"),
        ("a:\n\t- b\n", Format::Yaml, ""),
        ("a: 1\n---\nb: 2\n", Format::Yaml, "2:1: holds more than one document"),
        ("? [a]\n: b\n", Format::Yaml, "1:3: only text can be the name of a member"),
    ];
    for (text, format, expected) in cases {
        let told = refused(text.as_bytes(), format);
        assert!(told == expected || (expected.is_empty() && told.starts_with("2:")), "{text:?}: {told}");
    }
}

#[test]
fn doubled_keys_are_told_with_both_lines() {
    let jsonc = "{\"s\": {\n\"a\": 1,\n\"b/c\": 2,\n\"b\\u002fc\": 3}, \"ok\": 4}";
    assert_eq!(
        refused(jsonc.as_bytes(), Format::Jsonc),
        "4:1: /s/b~1c: \"b/c\" stands twice: in line 3 and in line 4 (remove one of the two)"
    );
    let (root, doubled) = read_tolerant(jsonc.as_bytes(), Format::Jsonc).unwrap();
    assert_eq!((doubled.len(), root.pointer("/ok").map(Node::kind)), (1, Some("a number")));
    let yaml = "s:\n  a: 1\n  b: 2\n  'a': 3\n";
    assert!(refused(yaml.as_bytes(), Format::Yaml).contains("\"a\" stands twice: in line 2 and in line 4"));
    for (toml, lines) in [
        ("[s.x]\na = 1\nb = 2\n\"a\" = 3\n", "\"a\" stands twice: in line 2 and in line 4"),
        ("a.b = 1\na.c = 2\na.b = 3\n", "\"b\" stands twice: in line 1 and in line 3"),
        ("[s.x]\na = 1\n[t]\n[s.x]\n", "\"x\" stands twice: in line 1 and in line 4"),
    ] {
        let told = refused(toml.as_bytes(), Format::Toml);
        assert!(told.contains(lines), "{told}");
    }
}

#[test]
fn other_encodings_are_refused_by_name() {
    assert_eq!(refused(b"\xff\xfe{\0}\0", Format::Jsonc), "1:1: is written in UTF-16 (save it as UTF-8)");
    assert_eq!(refused(b"{\0}\0", Format::Yaml), "1:1: is written in UTF-16 (save it as UTF-8)");
    assert_eq!(refused(b"\xff\xfe\0\0{\0\0\0", Format::Toml), "1:1: is written in UTF-32 (save it as UTF-8)");
    assert_eq!(
        refused(b"\xef\xbb\xbf{\n \"\xc3\xa4\xff\"}", Format::Jsonc),
        "2:4: is not UTF-8 from here on (save it as UTF-8)"
    );
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = 30_000;
    for (format, text) in [
        (Format::Jsonc, "[".repeat(deep)),
        (Format::Json, format!("{}{}", "[".repeat(100), "]".repeat(100))),
        (Format::Yaml, format!("{}{}", "[".repeat(100), "]".repeat(100))),
        (Format::Yaml, (0..500).fold(String::new(), |text, depth| text + &" ".repeat(depth) + "a:\n")),
        (Format::Toml, format!("a = {}", "[".repeat(deep))),
        (Format::Toml, format!("a = {}{}", "[".repeat(70), "]".repeat(70))),
    ] {
        let told = refused(text.as_bytes(), format);
        assert!(told.ends_with("is nested deeper than 64 levels"), "{format:?}: {told}");
    }
    let large = vec![b' '; 16 * 1024 * 1024 + 1];
    assert_eq!(
        refused(&large, Format::Jsonc),
        "is too large for a configuration file: 16777217 bytes, where 16777216 is the most that is read"
    );
}

#[test]
fn one_long_line_is_read_in_one_walk() {
    let text = format!("[{}0]", "0,".repeat(500_000));
    let root = read(text.as_bytes(), Format::Jsonc).unwrap();
    assert_eq!(root.items().unwrap()[500_000].at.column, 1_000_002);
}

#[test]
fn yaml_is_plain_data_with_bounded_aliases() {
    let text = "a: &x {k: [1, 0x1f, 0o17, -2, 1e3, .5, +7]}\nb: *x\nc: [yes, ~, null, 'null', !!str 5, 1.2.3, .inf, 1_0]\n";
    assert_eq!(
        json(text, Format::Yaml),
        json!({
            "a": {"k": [1, 31, 15, -2, 1000.0, 0.5, 7]}, "b": {"k": [1, 31, 15, -2, 1000.0, 0.5, 7]},
            "c": ["yes", null, null, "null", "5", "1.2.3", ".inf", "1_0"]
        })
    );
    let mut bomb = "a0: &a0 [xxxxxxxx]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{},", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{before}]").unwrap();
    }
    assert!(
        refused(bomb.as_bytes(), Format::Yaml).ends_with("the aliases up to here stand for too much data")
    );
    assert!(refused(b"a: &x [*x]\n", Format::Yaml).contains("alias"));
    assert_eq!(json("", Format::Yaml), Json::Null);
}

#[test]
fn what_is_no_file_of_a_fitting_size_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let told = |path: &Path| read_bytes(path).unwrap_err().to_string();
    assert!(told(directory.path()).ends_with("cannot be read: it is a directory"));
    let file = directory.path().join("big.json");
    std::fs::File::create(&file).unwrap().set_len(50 * 1024 * 1024).unwrap();
    assert!(told(&file).contains("big.json: is too large for a configuration file: 52428800 bytes"));
    assert!(told(&directory.path().join("none")).contains("cannot be read"));
}

const SAMPLES: [&str; 3] = [
    "{\n  // c\n  \"mcpServers\": {\"a\": {\"args\": [1, -2.5e3, \"\\u00e4\\n\"], \"x\": null,},},\n}\n",
    "# c\n[mcp_servers.\"a b\"]\nargs = ['x', \"\"\"y\n\"\"\"]\nenv = { K = 1979-05-27, L = nan }\n[[x.y]]\nz = 0x1f\n",
    "# c\nextensions: &a\n  f:\n    - {k: 'v', \"l\": *b}\n    - |-\n      text\n    - !!str 5\n  ? k\n  : v\n<<: *a\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// A text with damage is read or refused; a place that is told is inside of it, and what was read has its spans.
    #[test]
    fn damaged_texts_are_read_or_refused(
        sample in 0..SAMPLES.len(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), "[ -~\n\t\räß]{0,3}", 0..4usize), 0..4),
    ) {
        let mut bytes = SAMPLES[sample].as_bytes().to_vec();
        for (at, text, length) in cuts {
            let start = at.index(bytes.len() + 1);
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, text.bytes());
        }
        for format in [Format::Json, Format::Jsonc, Format::Toml, Format::Yaml] {
            match read_tolerant(&bytes, format) {
                Ok((root, _)) => check_spans(&root, bytes.len()),
                Err(problems) => {
                    let offsets = problems.iter().filter_map(|problem| problem.at).map(|at| at.offset);
                    prop_assert!(!problems.is_empty() && offsets.max() <= Some(bytes.len()));
                }
            }
        }
    }
}

fn check_spans(node: &Node, length: usize) {
    assert!(node.at.offset <= node.end && node.end <= length, "{node:?}");
    node.items().unwrap_or_default().iter().for_each(|item| check_spans(item, length));
    node.members().unwrap_or_default().iter().for_each(|(_, value)| check_spans(value, length));
}
