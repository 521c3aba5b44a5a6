use super::*;

/// Types these lines, then ends.
struct Script {
    lines: Vec<Line>,
    shown: String,
}

impl Person for Script {
    fn tell(&mut self, text: &str) {
        self.shown.push_str(text);
    }

    fn ask(&mut self, prompt: &str) -> Line {
        self.shown.push_str(prompt);
        if self.lines.is_empty() { Line::End } else { self.lines.remove(0) }
    }
}

fn asked(params: &Value, lines: &[&str]) -> (Value, String) {
    let lines = lines.iter().map(|line| Line::Typed((*line).to_owned())).collect();
    let mut script = Script { lines, shown: String::new() };
    (elicit("s", params, &mut script), script.shown)
}

fn every_kind() -> Value {
    json!({"message": "Who \u{1b}[1mare you?", "requestedSchema": {"type": "object", "required": ["name", "age"], "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "age": {"type": "integer", "minimum": 18},
        "score": {"type": "number", "default": 0.5},
        "news": {"type": "boolean", "description": "letters"},
        "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 1},
        "note": {"type": "string"}
    }}})
}

#[test]
fn every_kind_of_field_is_filled() {
    let (answer, shown) = asked(&every_kind(), &["Bo", "40", "", "y", "2", "Small", "1, c", "", "y"]);
    let content = json!({"name": "Bo", "age": 40, "score": 0.5, "news": true, "color": "g", "size": "s", "tags": ["a", "c"]});
    assert_eq!(answer, json!({"action": "accept", "content": content}));
    assert!(shown.contains("server \"s\" asks:\nWho \\x1b[1mare you?\n"), "{shown}");
    assert!(shown.contains("Your name (text, required): "), "{shown}");
    assert!(shown.contains("  1. Red (r)\n  2. Green (g)\ncolor (number or value): "), "{shown}");
    assert!(shown.contains("score (number) [0.5]: "), "{shown}");
}

#[test]
fn what_does_not_fit_is_asked_again() {
    let lines = ["B", "", "Bo", "17", "x", "1.5", "18", "x", "1", "z", "n", "3", "r", "1", "d", "a", "", ""];
    let (answer, shown) = asked(&every_kind(), &lines);
    assert_eq!(answer["action"], "accept", "{shown}");
    for reason in [
        "at least 2 characters",
        "this one is required",
        "at least 18",
        "no whole number",
        "y or n",
        "none of these",
    ] {
        assert!(shown.contains(reason), "{reason} in {shown}");
    }
}

#[test]
fn a_person_can_decline_and_cancel() {
    assert_eq!(asked(&every_kind(), &["Bo"]).0, json!({"action": "decline"}));
    let all = ["Bo", "40", "", "", "", "", "", "", "n"];
    assert_eq!(asked(&every_kind(), &all).0, json!({"action": "decline"}));
    assert_eq!(asked(&every_kind(), &["B"; 9]).0, json!({"action": "decline"}));
    let mut script = Script { lines: vec![Line::Signal], shown: String::new() };
    assert_eq!(elicit("s", &every_kind(), &mut script), json!({"action": "cancel"}));
}

#[test]
fn a_question_without_fields_is_yes_or_no() {
    let params = json!({"message": "Delete?", "requestedSchema": {"type": "object", "properties": {}}});
    assert_eq!(asked(&params, &["y"]).0, json!({"action": "accept", "content": {}}));
    assert_eq!(asked(&params, &[""]).0, json!({"action": "decline"}));
}

#[test]
fn an_address_is_shown_and_never_opened_unasked() {
    let params =
        json!({"mode": "url", "message": "Log in", "url": "https://h/\u{1b}]0;x", "elicitationId": "1"});
    let (answer, shown) = asked(&params, &["y"]);
    assert_eq!(answer, json!({"action": "accept"}));
    assert!(shown.contains("https://h/\\x1b]0;x"), "{shown}");
    assert_eq!(asked(&params, &[""]).0, json!({"action": "decline"}));
}
