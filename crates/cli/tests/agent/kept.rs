//! What is kept of agents.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::House;

#[test]
fn an_agent_is_resumed_with_what_was_said() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Hello, Bo."}, {"text": "You are Bo."}]}))?;
    house.run(&["--name", "greeter", "I am Bo."])?.ended(0)?;
    let id = house.ids()?.remove(0);
    let words = house.words();
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let told = house.agent(&[&["resume", &id, "Who am I?"], words.as_slice()].concat())?.ended(0)?;
    assert_eq!(told.out, "You are Bo.\n");
    let asked = &house.model.requests()[1];
    ensure!(asked.text.contains("I am Bo.") && asked.text.contains("Hello, Bo."), "{}", asked.text);
    assert_eq!(house.ids()?.len(), 1);

    let shown = house.agent(&["show", &id])?.ended(0)?;
    shown.says(&[
        "(greeter): native in ",
        "> I am Bo.\n\nHello, Bo.\n\n> Who am I?\n",
        "Runs:\n",
        "finished, scripted",
        "In all: ",
    ])?;
    let json = house.agent(&["show", &id, "--json"])?.ended(0)?.json()?;
    let run = json["runs"][0]["id"].as_str().unwrap_or_default().to_owned();
    assert_eq!(json["messages"].as_array().map(Vec::len), Some(4), "{json:#}");
    house.agent(&["show", &id, &run])?.ended(0)?.says(&["Finished", "> I am Bo."])?;
    let events = house.agent(&["show", &id, &run, "--json"])?.ended(0)?.lines()?;
    assert_eq!((&events[0]["type"], &events[0]["offset"]), (&json!("system"), &json!(1)));
    house.leave()
}

#[test]
fn agents_are_listed_put_away_and_removed() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Yes."}]}))?;
    house.agent(&["list"])?.ended(0)?.says(&["no agents yet"])?;
    house.run(&["x"])?.ended(0)?;
    let id = house.ids()?.remove(0);
    house.agent(&["list"])?.ended(0)?.says(&["AGENT", &id, "native", "idle"])?;
    house.agent(&["archive", &id])?.ended(0)?;
    house.agent(&["list"])?.ended(0)?.says(&["no agents yet"])?;
    house.agent(&["list", "--all"])?.ended(0)?.says(&["archived"])?;
    house
        .run(&["--agent", &id, "y"])?
        .ended(1)?
        .says(&["[agent_archived]", &format!("hint: toolway agent unarchive {id}")])?;
    house.agent(&["unarchive", &id])?.ended(0)?;
    house.run(&["--agent", &id, "y"])?.ended(0)?;
    house.agent(&["delete", &id])?.ended(0)?.says(&["is deleted"])?;
    house.agent(&["show", &id])?.ended(1)?.says(&["[agent_not_found]", "hint: toolway agent list --all"])?;
    house.agent(&["show", "nonsense"])?.ended(2)?.says(&["AGENT", "toolway agent list"])?;
    house.leave()
}

#[test]
fn agents_may_be_kept_elsewhere() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Yes."}]}))?;
    for place in ["sqlite:kept", "jsonl:lines"] {
        house.run(&["--store", place, "x"])?.ended(0)?;
        let list = house.agent(&["list", "--json", "--store", place])?.ended(0)?.json()?;
        assert_eq!(list["agents"].as_array().map(Vec::len), Some(1), "{place}");
    }
    house.run(&["--store", "memory", "x"])?.ended(0)?;
    assert_eq!(house.ids()?.len(), 0, "nothing is kept at the usual place");
    let elsewhere = house.with_variable("TOOLWAY_STORE", "sqlite:kept");
    assert_eq!(elsewhere.ids()?.len(), 1);
    elsewhere.leave()
}
