//! What a server says and asks while it is asked: resources, prompts, pings, logs, questions.

use anyhow::{Result, ensure};
use base64::Engine as _;
use serde_json::json;
use toolway_testkit::{FakeTransport, SOON};

use crate::House;

const RESOURCES: &str = r#"set capabilities {"tools":{},"resources":{},"prompts":{},"logging":{}}
on resources/list -> answer {"resources":[{"uri":"x://a","name":"a","description":"The a."}]}
on resources/templates/list -> answer {"resourceTemplates":[{"uriTemplate":"x://{name}","name":"any"}]}
on resources/read 1 -> answer {"contents":[{"uri":"x://a","text":"inside\nit"}]}
on resources/read 2 -> answer {"contents":[{"uri":"x://a","blob":"AAEC/w=="}]}
on prompts/list -> answer {"prompts":[{"name":"review","description":"Reviews.","arguments":[{"name":"path","required":true},{"name":"tone"}]}]}
on prompts/get -> answer {"messages":[{"role":"user","content":{"type":"text","text":"Look."}},{"role":"assistant","content":{"type":"text","text":"Yes."}}]}
"#;

#[test]
fn resources_are_listed_and_read() -> Result<()> {
    let (house, upstream, url) = House::new()?.serve(FakeTransport::Http, RESOURCES)?;
    house.run(["read", "--url", &url])?.is(0, "x://a       a: The a.\nx://{name}  any\n", "")?;
    house.run(["read", "--url", &url, "x://a"])?.is(0, "inside\nit\n", "")?;
    let output = house.rig.command(["read", "--url", &url, "x://a"]).output()?;
    ensure!(output.stdout == [0, 1, 2, 255], "{output:?}");
    drop(upstream);
    house.leave()
}

#[test]
fn prompts_are_listed_and_filled_in() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(RESOURCES)?;
    house.run(["prompt", "--command", &command])?.is(0, "review  path= [tone=]  Reviews.\n", "")?;
    let told = house.run(["prompt", "--command", &command, "review", "path=12"])?;
    told.is(0, "user:\nLook.\nassistant:\nYes.\n", "")?;
    let missing = house.run(["prompt", "--command", &command, "review"])?.ended(2)?;
    missing.says(&["path (string)"])?;
    drop(house.rig.arrival()?);
    house.rig.arrival()?.wait_for(r#""arguments":{"path":"12"}"#, SOON)?;
    house.leave()
}

#[test]
fn a_ping_says_how_long_it_took() -> Result<()> {
    let house = House::new()?;
    let command = house.command("")?;
    let told = house.run(["ping", "--command", &command])?.ended(0)?;
    ensure!(told.out.starts_with("ad-hoc: ") && told.out.ends_with(" ms (2025-11-25, stdio)\n"), "{told:?}");
    let json = house.run(["ping", "--json", "--command", &command])?.ended(0)?.json()?;
    assert_eq!(json["servers"][0]["state"], "connected");
    ensure!(json["servers"][0]["pingMs"].as_f64().is_some(), "{json}");
    house.leave()
}

#[test]
fn logs_are_shown_when_asked_for() -> Result<()> {
    let house = House::new()?;
    let command = house.command(
        r#"set capabilities {"tools":{},"logging":{}}
on tools/call/t
    send {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"db","data":"slow \u001b[1m"}}
    text done"#,
    )?;
    house.run(["call", "--command", &command, "t"])?.is(0, "done\n", "")?;
    house.run(["call", "-v", "--command", &command, "t"])?.is(
        0,
        "done\n",
        "ad-hoc [warning] db: slow \\x1b[1m\n",
    )?;
    house.leave()
}

#[test]
fn a_question_is_declined_where_nobody_can_answer() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(
        r#"on tools/call/t
    send {"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}
    wait response:"q1"
    text went on"#,
    )?;
    let told = house.run(["call", "--command", &command, "t"])?.ended(0)?;
    assert_eq!(told.out, "went on\n");
    told.says(&["Your name?", "declined"])?;
    let mut server = house.rig.arrival()?;
    server.wait_for(r#""action":"decline""#, SOON)?;
    house.leave()
}

#[test]
fn a_model_is_refused_by_name() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(
        r#"on tools/call/t
    send {"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}
    wait response:"q1"
    text went on"#,
    )?;
    let told = house.run(["call", "--command", &command, "t"])?.ended(0)?;
    assert_eq!(told.out, "went on\n");
    told.says(&["sampling/createMessage", "refused"])?;
    house.rig.arrival()?.wait_for("sampling/createMessage is refused", SOON)?;
    house.leave()
}

#[test]
fn progress_keeps_a_call_alive() -> Result<()> {
    let house = House::new()?;
    let step = "    delay 600ms\n    send {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":{token},\"progress\":{count}}}\n";
    let command = house.command(&format!("on tools/call/t\n{}    text done", step.repeat(5)))?;
    // Without progress it would be over after the second step.
    house.run(["call", "--timeout", "1500ms", "--command", &command, "t"])?.is(0, "done\n", "")?;
    house.leave()
}

#[test]
fn pictures_are_saved_and_their_path_is_printed() -> Result<()> {
    let house = House::new()?;
    let command = house.command(
        r#"on tools/call/t -> answer {"content":[{"type":"text","text":"see"},{"type":"image","data":"{png:3000}","mimeType":"image/png"}]}"#,
    )?;
    let told = house.run(["call", "--save-to", "pictures", "--command", &command, "t"])?.ended(0)?;
    let line = told.out.lines().nth(1).unwrap_or_default();
    let path = line.rsplit(": ").next().and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
    ensure!(line.starts_with("[image/png, "), "{told:?}");
    let saved = std::fs::read(house.rig.path().join(path))?;
    let raw = house.run(["call", "--json", "--command", &command, "t"])?.ended(0)?.json()?;
    let sent = base64::engine::general_purpose::STANDARD
        .decode(raw["content"][1]["data"].as_str().unwrap_or_default())?;
    ensure!(saved == sent, "{} bytes saved, {} sent", saved.len(), sent.len());
    assert_eq!(raw["content"][0], json!({"type": "text", "text": "see"}));
    house.leave()
}
