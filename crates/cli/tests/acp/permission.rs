//! Permission and questions: asked at the editor, with what an answer allows.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::editor::House;

fn script() -> Value {
    json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Done with it."}},
        {"when": {"user": "make it"}, "reply": {"calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}},
    ]})
}

fn chosen(id: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

#[test]
fn what_nothing_allows_is_asked_at_the_editor() -> Result<()> {
    let house = House::new(&script())?;
    let made = house.work("made");
    let mut editor = house.editor(&[])?;
    let session = editor.open(&house.place(&[]))?;

    let prompt = editor.prompt(&session, "make it")?;
    let asked = editor.asked("session/request_permission")?;
    let call = &asked["params"]["toolCall"];
    ensure!(call["kind"] == "execute" && call["rawInput"]["command"] == "touch made", "{asked}");
    ensure!(call["title"].as_str().is_some_and(|title| title.starts_with("`touch made`")), "{asked}");
    let options = asked["params"]["options"].to_string();
    for part in ["allow_once", "allow_always", "reject_once", "Shell(touch"] {
        ensure!(options.contains(part), "{part} is not in {options}");
    }
    ensure!(!made.exists());
    editor.reply(&asked, &chosen("no"))?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    ensure!(!made.exists());
    let result = house.model.requests()[1].results().join("\n");
    ensure!(result.contains("refused"), "{result}");

    let prompt = editor.prompt(&session, "make it")?;
    let asked = editor.asked("session/request_permission")?;
    editor.reply(&asked, &chosen("session"))?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    ensure!(made.exists());
    std::fs::remove_file(&made)?;

    // From now on it is not asked in this session.
    let prompt = editor.prompt(&session, "make it")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    ensure!(made.exists());
    std::fs::remove_file(&made)?;

    // In another one it is, and a question that is open does not hold up a cancellation.
    let other = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&other, "make it")?;
    let asked = editor.asked("session/request_permission")?;
    editor.tell("session/cancel", &json!({"sessionId": other}))?;
    editor.reply(&asked, &json!({"outcome": {"outcome": "cancelled"}}))?;
    assert_eq!(editor.end(prompt)?, "cancelled");
    ensure!(!made.exists());
    drop(editor);
    house.leave()
}

#[test]
fn the_end_of_stdin_while_something_is_asked_ends_everything() -> Result<()> {
    let house = House::new(&script())?;
    let mut editor = house.editor(&[])?;
    let server = house.server("one", "")?;
    let session = editor.open(&house.place(&[server]))?;
    editor.prompt(&session, "make it")?;
    editor.asked("session/request_permission")?;
    assert_eq!(editor.close()?.0, Some(0));
    ensure!(!house.work("made").exists());
    house.leave()
}

#[test]
fn questions_are_forms_where_the_editor_shows_them() -> Result<()> {
    let ask = json!({"name": "askQuestion", "arguments": {"question": "Which colour?", "options": ["red", "blue"]}});
    let house = House::new(&json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Good."}},
        {"when": {"user": "paint"}, "reply": {"calls": [ask]}},
    ]}))?;
    let mut editor = house.editor_that_can(&[], &json!({"elicitation": {"form": {}}}))?;
    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "paint")?;
    let asked = editor.asked("elicitation/create")?;
    ensure!(asked["params"]["message"] == "Which colour?" && asked["params"]["mode"] == "form", "{asked}");
    let choices = &asked["params"]["requestedSchema"]["properties"]["answer"]["enum"];
    assert_eq!(choices, &json!(["red", "blue"]));
    editor.reply(&asked, &json!({"action": "accept", "content": {"answer": "blue"}}))?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    assert_eq!(house.model.requests()[1].results(), ["blue"]);
    drop(editor);

    let mut editor = house.editor(&[])?;
    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "paint")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    let results = house.model.requests()[3].results();
    ensure!(results[0].contains("put the question into your answer"), "{results:?}");
    drop(editor);
    house.leave()
}
