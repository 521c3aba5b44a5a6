//! New-era and unknown methods are carried, and numbers are unharmed.

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, Rig, files};

use crate::answer::{Answer, same};
use crate::{TOOLWAY, stdio};

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
const THING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"x-vendor/thing","params":{"n":9007199254740993,"f":1.0,"e":1e2,"z":null}}"#;
const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"instructions":"{i*20000}"}}"#;
const ASKED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"n":9007199254740993,"f":1.0,"e":1e2,"z":null,"resultType":"input_required","requestState":"{s*12000}"}}"#;
const COMPLETE: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"n":9007199254740993,"f":1.0,"e":1e2,"z":null,"requestState":"{s*12000}"}}"#;

fn whole(text: &str) -> String {
    text.replace("{i*20000}", &"i".repeat(20_000)).replace("{s*12000}", &"s".repeat(12_000))
}

#[test]
fn both_go_through_byte_for_byte() -> Result<()> {
    let script = format!(
        "set defaults off\non server/discover -> send {DISCOVERED}\non x-vendor/thing -> send {ASKED}"
    );
    let mut session = stdio(&script)?;
    session.client.send(DISCOVER)?;
    same(&session.client.answer("1")?, &whole(DISCOVERED))?;
    session.client.send(THING)?;
    same(&session.client.answer("2")?, &whole(ASKED))?;
    let received = session.upstream()?.received();
    same(&received, &format!("{DISCOVER}\n{THING}\n"))?;
    let saved: Vec<_> = files(&session.rig().saved())
        .into_iter()
        .filter(|f| !f.to_string_lossy().contains("index"))
        .collect();
    ensure!(saved.is_empty(), "saved: {saved:?}");
    session.finish().map(drop)
}

#[test]
fn an_unknown_result_that_is_too_large_is_an_error_with_its_path() -> Result<()> {
    let mut session = stdio(&format!("set defaults off\non x-vendor/thing -> send {COMPLETE}"))?;
    session.client.send(THING)?;
    let answer = Answer::of(&session.client.answer("2")?)?;
    let (code, message) = answer.error()?;
    let data = &answer.tree["error"]["data"];
    let path = data["saved_path"].as_str().context("no saved_path")?;
    ensure!(code == -32000, "{code}");
    ensure!(message.contains(path), "no full path: {message}");
    ensure!(data["original_chars"].as_u64() == Some(whole(COMPLETE).len() as u64), "{data}");
    same(&std::fs::read(path)?, &whole(COMPLETE))?;
    session.finish().map(drop)
}

#[test]
fn an_unknown_result_passes_when_told_to() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--unknown-results", "pass"]);
    let script = format!("set defaults off\non x-vendor/thing -> send {COMPLETE}");
    let mut session = rig.script(&script).start(FakeTransport::Stdio)?;
    session.client.send(THING)?;
    same(&session.client.answer("2")?, &whole(COMPLETE))?;
    session.finish().map(drop)
}

/// Methods whose large results always pass whole, as the upstream spelled them.
const KNOWN: [&str; 14] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "completion/complete",
    "logging/setLevel",
    "tasks/list",
    "tasks/get",
    "tasks/cancel",
    "resources/subscribe",
    "subscriptions/listen",
];

#[test]
fn known_methods_pass_whole_however_large() -> Result<()> {
    let script: String = KNOWN
        .iter()
        .map(|method| format!("on {method} -> answer {{\"z\":1.0,\"a\":\"\\u00e9{{x*30000}}\"}}\n"))
        .collect::<Vec<_>>()
        .concat();
    let mut session = stdio(&script)?;
    for (n, method) in KNOWN.iter().enumerate() {
        let id = format!("\"{n}\"");
        session
            .client
            .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#))?;
        let sent = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"z":1.0,"a":"\u00e9{}"}}}}"#,
            "x".repeat(30_000)
        );
        same(&session.client.answer(&id)?, &sent).context(*method)?;
    }
    session.finish().map(drop)
}

#[test]
fn resources_prompts_errors_and_logs_keep_their_shape() -> Result<()> {
    let script = r#"
on resources/read -> answer {"contents":[{"uri":"x://a","text":"{x*20000}"},{"uri":"x://b","blob":"{base64:9000}","mimeType":"application/pdf"}]}
on prompts/get -> answer {"description":"mine","messages":[{"role":"assistant","content":{"type":"text","text":"{x*20000}"}}]}
on tools/call/fail -> send {"jsonrpc":"2.0","id":{id},"error":{"code":-32042,"message":"HEAD {x*20000}","data":{"k":1}}}
on tools/call/log
    send {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"db","data":"{x*20000}"}}
    send {"jsonrpc":"2.0","method":"notifications/x-other","params":{"data":"{x*20000}"}}
    send {"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{"systemPrompt":"{x*20000}"}}
    text done"#;
    let mut session = stdio(script)?;
    session.client.handshake()?;
    session.client.send(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://a"}}"#)?;
    let read = Answer::of(&session.client.answer("1")?)?;
    let contents = read.result()?["contents"].as_array().context("no contents")?;
    let uris: Vec<_> = contents.iter().filter_map(|c| c["uri"].as_str()).collect();
    ensure!(uris.contains(&"x://a") && uris.contains(&"x://b"), "{uris:?}");
    ensure!(contents[0]["mimeType"] == "text/plain" && contents[0]["text"].is_string(), "{}", contents[0]);
    ensure!(read.line.contains("file://") && read.chars() <= 10_000, "{:.300}", read.line);
    session.client.send(r#"{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p"}}"#)?;
    let prompt = Answer::of(&session.client.answer("2")?)?;
    ensure!(prompt.result()?["description"] == "mine", "{:.300}", prompt.line);
    let messages = prompt.result()?["messages"].as_array().context("no messages")?;
    ensure!(messages.len() == 1 && messages[0]["role"] == "user", "{messages:?}");
    session.client.call("3", "fail", "{}")?;
    let failed = Answer::of(&session.client.answer("3")?)?;
    let (code, message) = failed.error()?;
    ensure!(code == -32042 && message.contains("HEAD") && failed.chars() <= 10_000, "{code} {message:.100}");
    let path =
        failed.line.split('"').find(|part| part.rsplit('.').next() == Some("json")).context("no path")?;
    ensure!(std::fs::metadata(path)?.len() > 20_000, "{path}");
    session.client.call("4", "log", "{}")?;
    session.client.answer("4")?;
    session.client.send(r#"{"jsonrpc":"2.0","id":"s-1","result":{}}"#)?;
    let lines = session.finish()?;
    ensure!(lines.len() == 3, "{} lines", lines.len());
    let log = Answer::of(lines[0].as_bytes())?;
    ensure!(
        log.chars() <= 10_000
            && log.tree["params"]["level"] == "warning"
            && log.tree["params"]["logger"] == "db",
        "{:.300}",
        lines[0]
    );
    ensure!(lines[1].len() > 20_000 && lines[2].len() > 20_000, "others are cut");
    Ok(())
}
