//! What needs permission: asked on a terminal, denied without one, allowed by rules.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::House;

fn script() -> Value {
    json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Done with it."}},
        {"when": {"user": "make it"}, "reply": {"calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}},
    ]})
}

#[test]
fn without_a_terminal_it_is_denied_and_the_flag_is_named() -> Result<()> {
    let house = House::new(&script())?;
    let made = house.rig.path().join("work/made");
    let told = house.run(&["make it"])?.ended(0)?;
    told.says(&[
        "denied: run touch made",
        "hint: nobody can be asked here (no terminal)",
        "--allow 'Shell(touch)'",
        "--yes",
    ])?;
    ensure!(!made.exists());
    let result = house.model.requests()[1].results().join("\n");
    ensure!(result.contains("Nobody can be asked"), "{result}");

    house.run(&["--allow", "Shell(touch)", "make it"])?.ended(0)?;
    ensure!(made.exists());
    std::fs::remove_file(&made)?;
    house.run(&["--yes", "make it"])?.ended(0)?;
    ensure!(made.exists());
    std::fs::remove_file(&made)?;
    house.run(&["--yes", "--deny", "Shell(touch)", "make it"])?.ended(0)?;
    ensure!(!made.exists(), "what is denied is denied, whatever else is said");
    house.run(&["--allow", "Sell(touch)", "make it"])?.ended(2)?.says(&["Sell(touch)", "--allow"])?;
    house.leave()
}

#[test]
fn on_a_terminal_it_is_asked() -> Result<()> {
    let house = House::new(&script())?;
    let made = house.rig.path().join("work/made");
    let mut seat = house.seat(&["make it"])?;
    seat.sees("shell wants to run touch made")?;
    seat.sees("[y] once, [a] for this agent, [w] always,")?;
    ensure!(!made.exists());
    seat.types("y\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && seen.contains("Done with it.") && made.exists(), "{code:?} {seen}");

    std::fs::remove_file(&made)?;
    let mut seat = house.seat(&["make it"])?;
    seat.sees("[n] no")?;
    seat.types("use a file of another name\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && !made.exists(), "{code:?} {seen}");
    let asked = house.model.requests();
    let result = asked.last().map(|asked| asked.results().join("\n")).unwrap_or_default();
    ensure!(result.contains("use a file of another name"), "{result}");
    house.leave()
}

#[test]
fn the_models_questions_are_put_to_the_person() -> Result<()> {
    let ask = json!({"name": "askQuestion", "arguments": {"question": "Which colour?", "options": ["red", "blue"]}});
    let house = House::new(&json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Good."}},
        {"when": {"user": "paint"}, "reply": {"calls": [ask]}},
    ]}))?;
    let mut seat = house.seat(&["paint"])?;
    seat.sees("Which colour?")?;
    seat.sees("  2. blue")?;
    seat.types("2\n")?;
    assert_eq!(seat.ends()?.0, Some(0));
    let results = house.model.requests()[1].results();
    ensure!(results == ["blue"], "{results:?}");
    house.run(&["paint"])?.ended(0)?;
    let results = house.model.requests()[3].results();
    ensure!(results[0].contains("Nobody can be asked"), "{results:?}");
    house.leave()
}
