use base64::Engine;

use super::*;

fn run(message: &str, shape: Shape) -> Viewed {
    view(Source::memory(message.as_bytes()), shape, None, 1 << 20, 64).unwrap()
}

fn text(viewed: &Viewed) -> &str {
    match &viewed.text {
        TextView::Memory(bytes) => std::str::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_block_gives_its_exact_text() {
    let viewed = run(
        r#"{"jsonrpc":"2.0","id":1,"result":{"isError" : true,"x":{"y":[1]},"content":[{"te\u0078t":"a\n\u00e9\ud83d\ude00\ud800","type":"text"}],"_meta":{"k":1},"structuredContent":[1,2]}}"#,
        Shape::Tool,
    );
    assert_eq!(text(&viewed), "a\né😀\u{FFFD}");
    assert_eq!(viewed.single_text().unwrap().range, 0..11);
    assert_eq!(viewed.block_count, 1);
    let message = r#"{"jsonrpc":"2.0","id":1,"result":{"isError" : true,"x":{"y":[1]},"content":[{"te\u0078t":"a\n\u00e9\ud83d\ude00\ud800","type":"text"}],"_meta":{"k":1},"structuredContent":[1,2]}}"#;
    let at = |span: &Option<Range<u64>>| {
        let span = span.clone().unwrap();
        message.get(usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap()).unwrap()
    };
    assert_eq!(at(&viewed.spans.meta), r#"{"k":1}"#);
    assert_eq!(at(&viewed.spans.structured), "[1,2]");
    assert_eq!(at(&viewed.spans.members.first().cloned()), r#""x":{"y":[1]}"#);
}

#[test]
fn blocks_of_every_kind_are_told_apart() {
    use BlockKind::{Binary, Link, Media, Other, Text};
    let png = base64::engine::general_purpose::STANDARD.encode(b"\x89PNG\r\n\x1a\n and more");
    let message = format!(
        r#"{{"result":{{"content":[{{"type":"text","text":"one"}},{{"data":"{png}","mimeType":"image/jpeg","type":"image"}},{{"type":"resource_link","uri":"file:///x","name":"x"}},{{"type":"resource","resource":{{"uri":"a:b","blob":"aGk=","mimeType":"text/csv"}}}},{{"type":"resource","resource":{{"uri":"a:c","text":"two"}}}},{{"type":"odd","data":"not base64!"}}]}}}}"#
    );
    let viewed = run(&message, Shape::Tool);
    assert_eq!(text(&viewed), "one\n\n----- text 2 -----\n\ntwo");
    let kinds: Vec<BlockKind> = viewed.blocks.iter().map(Block::kind).collect();
    assert_eq!(kinds, [Text, Media, Link, Binary, Text, Other]);
    let binary = |index: usize| viewed.blocks[index].binary.as_ref().map(|part| (part.extension, part.bytes));
    assert_eq!(binary(1), Some(("png", 17)));
    assert_eq!(binary(3), Some(("csv", 2)));
    assert!(viewed.blocks[4].resource && viewed.blocks[4].uri.as_deref() == Some("a:c"));
    let span = viewed.blocks[2].span.clone();
    let raw = &message.as_bytes()[usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap()];
    assert_eq!(raw, br#"{"type":"resource_link","uri":"file:///x","name":"x"}"#);
}

#[test]
fn resources_prompts_errors_and_log_messages_have_text_too() {
    let contents = run(
        r#"{"result":{"contents":[{"uri":"u:1","mimeType":"text/x","text":"R1"},{"uri":"u:2","blob":"AAAA"}]}}"#,
        Shape::Resource,
    );
    assert_eq!((text(&contents), contents.blocks[1].kind()), ("R1", BlockKind::Binary));
    let prompt = run(
        r#"{"result":{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"P1"}},{"role":"assistant","content":[{"type":"text","text":"P2"}]}]}}"#,
        Shape::Prompt,
    );
    assert_eq!(text(&prompt), "P1\n\n----- text 2 -----\n\nP2");
    let error = run(r#"{"error":{"code":-5,"message":"M","data":"D"}}"#, Shape::Error);
    assert_eq!(text(&error), "M\n\n----- text 2 -----\n\nD");
    let error = run(r#"{"error":{"code":-5,"message":"M","data":{"text":"D"}}}"#, Shape::Error);
    assert!(text(&error) == "M" && error.spans.structured.is_some() && error.spans.code.is_some());
    let log =
        run(r#"{"method":"notifications/message","params":{"level":"info","data":"L"}}"#, Shape::LogMessage);
    assert!(text(&log) == "L" && log.spans.level.is_some());
}

#[test]
fn depth_and_broken_ends_are_survived() {
    let deep = format!(
        r#"{{"result":{{"structuredContent":{}{},"content":[{{"type":"text","text":"t"}}]}}}}"#,
        "[{\"a\":".repeat(50_000) + "1",
        "}]".repeat(50_000)
    );
    let viewed = run(&deep, Shape::Tool);
    assert_eq!((text(&viewed), viewed.block_count), ("t", 1));
    let broken = run(r#"{"result":{"content":[{"type":"text","text":"begun and "#, Shape::Tool);
    assert_eq!(text(&broken), "begun and ");
}
