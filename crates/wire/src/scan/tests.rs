use super::*;
use crate::Id;

/// What a scan found, owned, so that two scans can be compared.
fn scan(pieces: &[&[u8]]) -> String {
    let mut scanner = Scanner::new();
    for piece in pieces {
        scanner.feed(piece);
    }
    format!("{:?}", scanner.finish())
}

fn envelope(json: &str) -> Envelope {
    let mut scanner = Scanner::new();
    scanner.feed(json.as_bytes());
    match scanner.finish() {
        Verdict::Message(envelope) => envelope.clone(),
        verdict => panic!("{json}: {verdict:?}"),
    }
}

/// Size as a compact printer would give it: a reference over a tree.
fn compact(json: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    serde_json::to_string(&value).unwrap().chars().count() as u64
}

#[test]
fn kinds_of_messages() {
    for (json, kind) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Kind::Request),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Kind::Request),
        (r#"{"jsonrpc":"2.0","method":"x"}"#, Kind::Notification),
        (r#"{"id":"a","result":{},"jsonrpc":"2.0"}"#, Kind::Response),
        (r#"{"id":"a","result":null,"jsonrpc":"2.0"}"#, Kind::Response),
        (r#"{"id":"a","result":{},"error":null,"jsonrpc":"2.0"}"#, Kind::Response),
        (r#"{"id":"a","result":null,"error":{},"jsonrpc":"2.0"}"#, Kind::ErrorResponse),
        (r#"{"id":1,"error":{"code":-1,"message":"m"},"jsonrpc":"2.0"}"#, Kind::ErrorResponse),
        (r#"{"error":{"code":-1,"message":"m"},"jsonrpc":"2.0"}"#, Kind::ErrorResponse),
        (r#"{"id":1,"jsonrpc":"2.0"}"#, Kind::Fault),
        (r#"{"id":1,"jsonrpc":"2.0","error":null}"#, Kind::Fault),
        (r#"{"id":1,"jsonrpc":"2.0","result":{},"error":{}}"#, Kind::Fault),
        (r#"{"id":1,"result":{}}"#, Kind::Fault),
        (r#"{"id":1,"jsonrpc":"1.0","result":{}}"#, Kind::Fault),
    ] {
        assert_eq!(envelope(json).kind(), kind, "{json}");
    }
}

#[test]
fn strangers_are_told_apart() {
    for json in [
        r#"{"level":"debug","msg":"json but not json-rpc"}"#,
        r#"{"method":"ping","id":1}"#,
        r#"{"jsonrpc":"2.0","method":5,"id":1}"#,
        r#"{"jsonrpc":"2.0","method":{},"id":1}"#,
        r#"{"id":5,"level":"info"}"#,
        "{}",
        "[]",
        "[1]",
        "[[]]",
        "5",
        "\"text\"",
        "null",
    ] {
        assert!(scan(&[json.as_bytes()]).starts_with("NotRpc"), "{json}: {}", scan(&[json.as_bytes()]));
    }
    assert_eq!(scan(&[b" \t"]), "Blank");
    assert_eq!(scan(&[b""]), "Blank");
    assert!(scan(&[b"Server listening"]).starts_with("NotJson"));
    assert!(scan(&[br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"te"#]).starts_with("NotJson"));
}

#[test]
fn nothing_more_is_wanted_of_what_cannot_be_a_message() {
    let floods =
        ["1,", "\"a\",", "[],", "[[1]],", "{},", "{\"a\":1},", "null,"].map(|stranger| stranger.repeat(66));
    let floods = floods.map(|strangers| format!("[{strangers}"));
    for prefix in ["x", "12 ", "{]"].into_iter().chain(floods.iter().map(String::as_str)) {
        assert_eq!(Scanner::new().feed(prefix.as_bytes()), Feeding::NotRpc, "{prefix}");
    }
    for prefix in ["[{\"a\"", "[1,", "[[", "[[],{},\"a\",null,"] {
        assert_eq!(Scanner::new().feed(prefix.as_bytes()), Feeding::More, "{prefix}");
    }
}

#[test]
fn strangers_before_the_first_member_do_not_void_a_batch() {
    let member = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for (json, count) in [
        (format!("[5,{member}]"), 1),
        (format!("[{{\"foo\":1}},5,{member}]"), 2),
        (format!("[\"a\",[],[{{}}],null,{{}},{member},[{member}]]"), 6),
        (format!("[{}{member}]", "1,".repeat(64)), 64),
    ] {
        let mut scanner = Scanner::new();
        scanner.feed(json.as_bytes());
        let Verdict::Batch { members, strangers } = scanner.finish() else { panic!("{json}") };
        assert_eq!((members.len(), strangers), (1, count), "{json}");
    }
    let flood = format!("[{member}{}]", ",1".repeat(MAX_BATCH));
    assert!(scan(&[flood.as_bytes()]).starts_with("NotRpc"));
}

#[test]
fn fields_are_caught_wherever_they_stand() {
    let found = envelope(
        r#"{"params":{"arguments":{"name":"no","uri":"no"},"na\u006de":"bu\"ild","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}},"id":"a\u0062","method":"tools/call","jsonrpc":"2.0"}"#,
    );
    assert_eq!(found.method(), Some("tools/call"));
    assert_eq!(found.name(), Some("bu\"ild"));
    assert_eq!(found.uri(), None);
    assert_eq!(found.protocol_version(), Some("2026-07-28"));
    assert_eq!(found.id().unwrap().raw(), br#""a\u0062""#);
    assert_eq!(found.id(), Id::from_json(b"\"ab\"").as_ref());

    let found = envelope(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7.0,"reason":"x"}}"#,
    );
    assert_eq!(found.request_id(), Id::from_json(b"7").as_ref());

    let found = envelope(
        r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"resultType":"input_required","nextCursor":"2","structuredContent":{},"content":[{"isError":false}]}}"#,
    );
    assert_eq!(found.is_error(), Some(true));
    assert_eq!(found.result_type(), Some("input_required"));
    assert!(found.has_next_cursor() && found.has_structured_content());
    assert!(!envelope(r#"{"jsonrpc":"2.0","id":1,"result":{"nextCursor":null}}"#).has_next_cursor());
}

#[test]
fn spans_name_the_bytes() {
    let json = r#" {"jsonrpc":"2.0", "id":1, "error": null, "result" : {"a":[1]} , "x":1} "#;
    let found = envelope(json);
    let cut = |range: std::ops::Range<u64>| {
        json.get(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()).unwrap()
    };
    assert_eq!(cut(found.result_span().unwrap()), r#"{"a":[1]}"#);
    assert_eq!(cut(found.span()), json.trim());
    assert_eq!(cut(found.id_span().unwrap()), "1");
    assert_eq!(found.name_span(), None);

    // Quickly, slowly, and with names that are spelled with escapes.
    for (key, end) in [("name", ""), ("name", ",\"x\":\"é\""), ("n\\u0061me", "")] {
        let json = format!(
            r#"{{"params":{{"_meta":{{"progressToken":5}}}},"params":{{"{key}":"first","_meta" : {{"a":{{"progressToken":0}},"progressToken": ["t"] }},"{key}":"b" }},"id" : "i","method":"m","jsonrpc":"2.0"{end}}}"#
        );
        let mut scanner = Scanner::new();
        let Verdict::Message(found) = scanner.whole(json.as_bytes()) else { panic!("{json}") };
        let cut = |range: Option<std::ops::Range<u64>>| {
            let range = range.unwrap();
            json.get(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()).unwrap()
        };
        assert_eq!((cut(found.id_span()), cut(found.name_span())), (r#""i""#, r#""b""#));
        assert_eq!(cut(found.token_span()), r#"["t"]"#);
        assert!(cut(found.meta_span()).starts_with(r#"{"a""#), "{json}");
    }
    let found = envelope(
        r#"{"params":{"name":"x","_meta":{"progressToken":5}},"params":{},"id":1,"method":"m","jsonrpc":"2.0"}"#,
    );
    assert_eq!((found.name_span(), found.meta_span(), found.token_span()), (None, None, None));
}

#[test]
fn ids_of_every_type() {
    for (raw, field) in [
        ("true", IdField::WrongType),
        ("{\"a\":1}", IdField::WrongType),
        ("[1]", IdField::WrongType),
        ("null", IdField::Value(Id::from_json(b"null").unwrap())),
        ("1.50", IdField::Value(Id::from_json(b"1.5").unwrap())),
        ("\"\"", IdField::Value(Id::from_json(b"\"\"").unwrap())),
    ] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":{raw},"method":"m"}}"#);
        assert_eq!(envelope(&json).id_field(), &field, "{raw}");
    }
    let json = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(5000));
    assert_eq!(envelope(&json).id_field(), &IdField::TooLong);
}

#[test]
fn size_is_that_of_the_compact_spelling() {
    for json in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1,2,{"b":null}],"c":"é漢😀","d":"\n\"\\\/\b\f\r\t\u0001\u00e9\ud83d\ude00","e":{},"f":[],"g":-1}}"#,
        "{ \"jsonrpc\" : \"2.0\" ,\t\"method\":\"m\", \"params\" : { } }",
    ] {
        assert_eq!(envelope(json).size().chars, compact(json), "{json}");
    }
    let numbers = r#"{"jsonrpc":"2.0","id":1.0,"result":1e2}"#;
    assert_eq!(envelope(numbers).size().chars, numbers.len() as u64);
    let base = envelope(r#"{"jsonrpc":"2.0","id":1,"result":""}"#).size().chars;
    for (text, chars) in [
        (r"\ud800", 6),
        (r"\ud800x", 7),
        (r"\ud800\ud83d\ude00", 7),
        (r"\udc00", 6),
        (r"\ud83d\ude00", 1),
        (r"\u0022", 2),
        (r"\u005c", 2),
        (r"\u000a", 2),
        (r"\u0000", 6),
        (r"\u007f", 1),
        (r"\/", 1),
    ] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{text}"}}"#);
        assert_eq!(envelope(&json).size().chars, base + chars, "{text}");
    }
}

#[test]
fn bytes_that_are_not_utf8_count_one_each() {
    let mut scanner = Scanner::new();
    let head = br#"{"jsonrpc":"2.0","id":1,"result":""#;
    for (bytes, chars) in [
        (&b"\xFF"[..], 1),
        (b"\xE6\xBC", 2),
        (b"\xE6\xBC\xE6\xBC\xA2", 3),
        (b"\xF0\x9F\x98", 3),
        (b"a\xC3", 2),
        (b"\xED\xA0\x80", 3),
    ] {
        for split in 0..=bytes.len() {
            scanner.reset();
            for piece in [&head[..], &bytes[..split], &bytes[split..], b"\"}"] {
                scanner.feed(piece);
            }
            let Verdict::Message(found) = scanner.finish() else { panic!("{bytes:?}") };
            assert_eq!(found.size().chars, head.len() as u64 + 2 + chars, "{bytes:?} cut at {split}");
        }
    }
}

#[test]
fn media_is_counted_apart() {
    let data = "QUJD".repeat(10) + "QQ==";
    for (block, media) in [
        (format!(r#"{{"type":"image","data":"{data}","mimeType":"image/png"}}"#), true),
        (format!(r#"{{"data":"{data}","mimeType":"audio/wav","type":"audio"}}"#), true),
        (format!(r#"{{"type":"text","data":"{data}"}}"#), false),
        (format!(r#"{{"type":"resource","resource":{{"type":"image","data":"{data}"}}}}"#), false),
    ] {
        let expected = if media { (44, 31) } else { (0, 0) };
        for result in [
            format!(r#"{{"content":[{{"type":"text","text":"t"}},{block}]}}"#),
            format!(r#"{{"messages":[{{"role":"user","content":{block}}}]}}"#),
            format!(r#"{{"messages":[{{"role":"user","content":[{block}]}}]}}"#),
        ] {
            let json = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let size = envelope(&json).size();
            assert_eq!((size.media_chars, size.media_bytes), expected, "{json}");
            assert_eq!(size.counted(32), size.chars - expected.0);
            assert_eq!(size.counted(31), if media { size.chars } else { size.chars - expected.0 });
        }
    }
}

#[test]
fn batch_members_are_judged_one_by_one() {
    let json = br#" [ {"jsonrpc":"2.0","id":1,"result":{"content":[]}} , 5, {"jsonrpc":"2.0","id":"1","error":{}},{"x":[{}]},[] ,{"jsonrpc":"2.0","method":"m"}]"#;
    let mut scanner = Scanner::new();
    scanner.feed(json);
    let Verdict::Batch { members, strangers } = scanner.finish() else { panic!() };
    let kinds: Vec<Kind> = members.iter().map(Envelope::kind).collect();
    assert_eq!(kinds, [Kind::Response, Kind::ErrorResponse, Kind::Notification]);
    assert_eq!(strangers, 3);
    for member in members {
        let span = member.span();
        let text = &json[usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap()];
        assert_eq!(member.size().chars, text.len() as u64);
    }
    let too_many = format!("[{}{{}}]", r#"{"jsonrpc":"2.0","method":"m"},"#.repeat(MAX_BATCH + 1));
    assert!(scan(&[too_many.as_bytes()]).starts_with("NotRpc"));
}

#[test]
fn a_scanner_can_be_used_again() {
    let mut scanner = Scanner::new();
    for json in [
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]",
        "nonsense",
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
        "[1]",
        "",
    ] {
        scanner.reset();
        scanner.feed(json.as_bytes());
        assert_eq!(format!("{:?}", scanner.finish()), scan(&[json.as_bytes()]));
    }
}

proptest::proptest! {
    #[test]
    fn a_quick_look_says_what_the_scanner_says(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            r#"{"jsonrpc":"2.0","#, r#""jsonrpc":"2.0""#, r#""id":1"#, r#""id":"a""#, r#""id":null"#, r#""id":1.50"#, r#""id":-0"#, r#""id":01"#, r#""id":"\u0061""#,
            r#""method":"tools/call""#, r#""method":5"#, r#""params":{"name":"x","uri":"u","arguments":{"a":[1,{"b":null}]}}"#, r#""params":[1]"#,
            r#""params":{"requestId":7,"_meta":{"progressToken":1}}"#, r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#, r#""params":{"name":5}"#, r#""params":{"_meta":{"progressToken":"t","x":{}},"name":"y","_meta":{}}"#, r#""params": { "name" : "x", "_meta" : 5 } "#,
            r#""result":{}"#, r#""result":null"#, r#""result":{"isError":true,"content":[{"type":"text","text":"a\/b\n\"c\\"}]}"#, r#""result":{"content":[{"type":"image","data":"AAA="}]}"#,
            r#""result":{"structuredContent":{"a":1.5e3},"x":[]}"#, r#""result":{"nextCursor":null}"#, r#""result":{"isError":"x"}"#, r#""error":{"code":-1,"message":"m"}"#, r#""error":null"#,
            ",", ",", ",", "}", "}", "{", " ", "\t", "[", "]", "é", "\u{7f}", "\u{1}", "tru", "-", "1.", "x",
        ]), 0..9),
        closed in proptest::bool::ANY,
    ) {
        let mut text = parts.concat();
        if closed {
            text = format!("{{{}}}", parts.join(","));
        }
        let mut scanner = Scanner::new();
        let quick = format!("{:?}", scanner.whole(text.as_bytes()));
        proptest::prop_assert_eq!(quick, scan(&[text.as_bytes()]), "{}", text);
    }

    #[test]
    fn any_split_gives_the_same_verdict(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            r#"{"jsonrpc":"2.0","#, r#""id":1,"#, r#""id":"é\u0061😀","#, r#""result":{"content":[{"type":"image","data":"AAA="},{"type":"text","text":"\ud83d\ude00\ud800 漢"}],"isError":true}"#,
            r#""method":"tools/call","#, r#""params":{"name":"x\n","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#, "}", "[", "]", ",", " ", "null", "\u{1}", "x",
        ]), 0..12),
        cuts in proptest::collection::vec(0usize..400, 0..10),
    ) {
        let bytes = parts.concat().into_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        proptest::prop_assert_eq!(scan(&[&bytes]), scan(&pieces));
    }

    #[test]
    fn size_agrees_with_a_tree(text in "[a-zé漢😀\"\\\\\n\t\u{1}\u{7f} ]{0,40}", number in proptest::num::i64::ANY) {
        let value = serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {"t": [text.clone(), {"k": text}], "n": number}});
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        proptest::prop_assert_eq!(envelope(&pretty).size().chars, compact(&pretty));
    }
}
