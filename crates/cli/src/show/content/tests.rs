use serde_json::json;

use super::*;

const PROGRAM: Terminal = Terminal { out: false, err: false, asks: false, width: 80, graphics: None };
const PERSON: Terminal = Terminal { out: true, ..PROGRAM };

fn shown(result: &Value, terminal: &Terminal) -> (String, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(directory.path().join("media"), &["s", "t"]);
    let shown = show_result(result, terminal, &shelf);
    let place = directory.path().to_string_lossy().into_owned();
    (shown.out.replace(&place, "DIR"), shown.notes)
}

fn out(result: &Value, terminal: &Terminal) -> String {
    let (out, notes) = shown(result, terminal);
    assert_eq!(notes, Vec::<String>::new());
    out
}

#[test]
fn texts_stay_as_they_are_for_a_program() {
    let result =
        json!({"content": [{"type": "text", "text": "a\u{1b}[1m"}, {"type": "text", "text": "b\n"}]});
    assert_eq!(out(&result, &PROGRAM), "a\u{1b}[1m\nb\n");
    assert_eq!(out(&result, &PERSON), "a\\x1b[1m\nb\n");
}

#[test]
fn a_mirror_is_shown_once() {
    let rows = json!({"result": [{"n": 1}, {"n": 2}]});
    for texts in [
        vec![rows.to_string()],
        vec![rows["result"].to_string()],
        vec![rows["result"][0].to_string(), rows["result"][1].to_string()],
    ] {
        let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        let result = json!({"content": blocks, "structuredContent": rows});
        assert_eq!(out(&result, &PERSON), "n\n1\n2\n");
        assert_eq!(out(&result, &PROGRAM), texts.join("\n") + "\n");
    }
    let scalar =
        json!({"content": [{"type": "text", "text": "hello"}], "structuredContent": {"result": "hello"}});
    assert_eq!((out(&scalar, &PERSON), out(&scalar, &PROGRAM)), ("hello\n".into(), "hello\n".into()));
}

#[test]
fn what_is_no_mirror_is_not_dropped() {
    let result =
        json!({"content": [{"type": "text", "text": "2 rows"}], "structuredContent": {"rows": [{"n": 1}]}});
    assert_eq!(out(&result, &PERSON), "2 rows\n\nn\n1\n");
    assert!(out(&result, &PROGRAM).starts_with("2 rows\n{"));
    let alone = json!({"content": [], "structuredContent": {"rows": [{"n": 1}]}});
    assert_eq!(out(&alone, &PERSON), "n\n1\n");
}

#[test]
fn pictures_are_shown_or_saved() {
    let result = json!({"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]});
    let saved = out(&result, &PERSON);
    assert!(saved.starts_with("[image/png, 8 B: DIR/media/s-t-") && saved.ends_with(".png]\n"), "{saved}");
    let kitty = Terminal { graphics: Some(super::super::graphics::Graphics::Kitty), ..PERSON };
    assert_eq!(out(&result, &kitty), "\u{1b}_Ga=T,f=100,q=2,m=0;iVBORw0KGgo=\u{1b}\\\n");
    let bad = json!({"content": [{"type": "image", "data": "\u{1b}[2J", "mimeType": "image/png\u{1b}[1m"}]});
    let (out, notes) = shown(&bad, &kitty);
    assert_eq!(out, "");
    assert!(notes[0].starts_with("image/png\\x1b[1m content that is no base64"), "{notes:?}");
}

#[test]
fn resources_and_links_are_named() {
    let result = json!({"content": [
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 12},
        {"type": "resource", "resource": {"uri": "x://1", "text": "inside"}},
        {"type": "new_kind", "x": 1},
    ]});
    assert_eq!(
        out(&result, &PERSON),
        "a: file:///a (text/plain, 12 B)\n[x://1]\ninside\n{\n  \"type\": \"new_kind\",\n  \"x\": 1\n}\n"
    );
    assert!(out(&result, &PROGRAM).starts_with("a: file:///a (text/plain, 12 B)\ninside\n{"));
}
