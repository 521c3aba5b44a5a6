//! What a person at a terminal sees. The terminal is a real one.

use anyhow::{Result, ensure};
use serde_json::json;
use toolway_testkit::Seat;

use crate::{House, calls};

#[test]
fn answers_are_markdown_unless_colours_are_unwanted() -> Result<()> {
    let reply = json!({"replies": [{"text": "# Top\n- **one**\u{1b}[2J\n"}]});
    let house = House::new(&reply)?;
    let mut seat = house.seat(&[])?;
    seat.sees("> ")?;
    seat.types("hi\n")?;
    seat.sees("• \u{1b}[1mone\u{1b}[0m\\x1b[2J")?;
    seat.types("\u{4}")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && seen.contains("\u{1b}[1m\u{1b}[4mTop\u{1b}[0m"), "{code:?} {seen:?}");
    house.leave()?;

    let house = House::new(&reply)?.with_variable("NO_COLOR", "1");
    let mut seat = house.seat(&[])?;
    seat.types("hi\n")?;
    seat.sees("# Top\r\n- **one**\\x1b[2J")?;
    seat.types("/quit\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && !seen.contains('\u{1b}'), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn the_person_is_asked_and_answers() -> Result<()> {
    let house = House::new(&calls(
        "host__ask",
        &json!({"question": "Tea or coffee?", "options": ["tea", "coffee"]}),
    ))?;
    let mut seat = house.seat(&[])?;
    seat.sees("> ")?;
    seat.types("go\n")?;
    seat.sees("  2. coffee")?;
    seat.types("2\n")?;
    seat.sees("That is it.")?;
    seat.types("/quit\n")?;
    assert_eq!(seat.ends()?.0, Some(0));
    let result = house.model.requests()[1].results().join("");
    ensure!(result.contains("coffee"), "{result}");
    house.leave()
}

#[test]
fn the_editor_has_the_terminal_and_a_change_is_told() -> Result<()> {
    let house = House::new(&calls("host__open_in_editor", &json!({"path": "draft.txt"})))?;
    let editor = "sh -c 'read line; echo \"$line\" > \"$0\"'";
    let house = house.with_variable("EDITOR", editor);
    let mut seat = house.seat(&[])?;
    seat.sees("> ")?;
    seat.types("go\n")?;
    seat.sees("open_in_editor")?;
    seat.types("typed in the editor\n")?;
    seat.sees("That is it.")?;
    seat.types("/quit\n")?;
    assert_eq!(seat.ends()?.0, Some(0));
    assert_eq!(std::fs::read_to_string(house.rig.path().join("work/draft.txt"))?, "typed in the editor\n");
    let result = house.model.requests()[1].results().join("");
    ensure!(result.contains("the user changed"), "{result}");
    house.leave()
}

#[test]
fn two_interrupts_in_a_row_end_it() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Yes."}]}))?;
    let mut seat = house.seat(&[])?;
    seat.sees("> ")?;
    seat.interrupts()?;
    seat.sees("Ctrl-C once more, or /quit, ends the chat")?;
    seat.interrupts()?;
    assert_eq!(seat.ends()?.0, Some(130));
    house.leave()
}

#[test]
fn what_goes_on_is_said_on_one_line_and_taken_away() -> Result<()> {
    let mut house = House::new(&json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "It came."}},
        {"when": {"user": "go"}, "reply": {"calls": [{"name": "one__slow", "arguments": {}}]}},
    ]}))?;
    let servers = house.servers(&[(
        "one",
        r#"tool {"name":"slow","inputSchema":{"type":"object"}}
on tools/call/slow
    send {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{token},"progress":3,"total":10,"message":"half\u001b[1m way 日本語日本語日本語"}}
    wait go
    text done"#,
    )])?;
    let words = house.words(&["--mcp-config", &servers, "--allow", "Mcp(one:*)"]);
    let mut seat = Seat::narrow(house.rig.command(words), 40)?;
    seat.sees("> ")?;
    seat.types("go\n")?;
    // 39 columns and no more.
    seat.sees("s · one: slow · 3/10 half\\x1b[1m")?;
    let mut server = house.rig.arrival()?;
    server.tell("arm go")?;
    seat.sees("It came.")?;
    seat.types("/quit\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && !seen.contains("日本語日本"), "{code:?} {seen:?}");
    ensure!(seen.contains("\u{1b}[0m\r\u{1b}[K\u{1b}[32m●"), "it is taken away first: {seen:?}");
    house.leave()
}

#[test]
fn an_interrupt_at_a_question_stops_the_turn_and_what_is_typed_then_is_a_prompt() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"user": "then"}, "reply": {"text": "A prompt."}},
        {"when": {"user": "touch"}, "reply": {"calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}},
    ]}))?;
    let mut seat = house.seat(&[])?;
    seat.sees("> ")?;
    seat.types("touch\n")?;
    seat.sees("what to do instead: ")?;
    seat.interrupts()?;
    seat.sees_after("stopping; Ctrl-C once more ends the chat", "> ")?;
    seat.types("y then\n")?;
    seat.sees("A prompt.")?;
    seat.types("/quit\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && !house.rig.path().join("work/made").exists(), "{code:?} {seen:?}");
    ensure!(house.model.requests()[1].last().contains("y then"), "{:?}", house.model.requests()[1].last());
    house.leave()
}
