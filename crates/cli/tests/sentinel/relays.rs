//! The relays, before servers that give everything back.

use anyhow::{Result, ensure};
use toolway_testkit::{Client, SOON};

use super::finder::Sentinel;
use super::place::Place;

#[test]
fn a_relay_before_a_process() -> Result<()> {
    let mut place = Place::new("stdio")?;
    place.variable("GIVEN_PW", Sentinel::awkward("--env by a variable"));
    place.variable("OF_OURS_TOKEN", Sentinel::awkward("a variable of ours that the server inherits"));
    let filed = place.secret(Sentinel::awkward("--env by a file"));
    let file = place.outside("pw", &format!("{filed}\n"))?;
    let kept = place.secret(Sentinel::awkward("--env by the keyring"));
    place.run(&["auth", "secret", "set", "for the relay"], &kept)?;
    let script = format!(
        "on start\n{}on tools/call/say -> text {}\non tools/call/die\n    stderr last words\n{}    exit 3\n",
        place.spill(),
        place.all(),
        place.spill(),
    );
    let record = place.path().join("recorded.jsonl");
    let server = place.stdio("say", &script)?;
    let mut words = vec![
        "stdio".to_owned(),
        "--log=trace".to_owned(),
        format!("--record={}", record.display()),
        "--inherit-env".to_owned(),
        "--env=A_PW=x${GIVEN_PW}y".to_owned(),
        format!("--env=B_PW=${{file:{file}}}"),
        "--env=C_PW=${keyring:for the relay}".to_owned(),
        "--".to_owned(),
    ];
    words.extend(server);
    let mut client = Client::start(&mut place.command(words))?;
    client.handshake()?;
    client.call("1", "say", "{}")?;
    ensure!(client.answer("1")?.windows(3).any(|part| part == b"got" || part == b" | "));
    client.call("2", "die", "{}")?;
    let answer = client.answer("2")?;
    ensure!(String::from_utf8_lossy(&answer).contains("error"));
    place.note("the answer to a call that never came back", answer);
    client.close_stdin();
    client.wait_exit(SOON)?;
    let stderr = client.stderr();
    ensure!(stderr.contains("got [redacted] from you"), "{stderr}");
    place.note("stderr of the relay", stderr);
    ensure!(std::fs::read_to_string(record)?.contains("[redacted]"));
    place.search(4)
}

#[test]
fn a_relay_before_an_address() -> Result<()> {
    let mut place = Place::new("http")?;
    let query = place.variable("OF_QUERY", Sentinel::plain("the query of an address"));
    place.variable("OF_HEADER", Sentinel::header("--header by a variable"));
    let filed = place.secret(Sentinel::header("--header by a file"));
    let file = place.outside("key", &filed)?;
    let basic = place.secret(Sentinel::plain("a password of Basic"));
    let credential = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(format!("joe:{basic}"))
    };
    place.set("OF_BASIC", format!("Basic {credential}"));
    let (text, body) = (place.all(), place.all_as_body());
    let challenge = format!("Bearer realm=\"{query}\", error_description=\"{basic}\"");
    let script = format!(
        "on tools/call/say -> text {text}\n\
         on tools/call/refuse -> status 401 -> header WWW-Authenticate: {challenge}\n\
         on tools/call/wrong\n    status 401\n    header WWW-Authenticate: {challenge}\n    header Content-Type: application/json\n    body {{\"error\":\"invalid_token\",\"error_description\":\"{body}\"}}\n\
         on tools/call/broken\n    status 500\n    header Content-Type: text/plain\n    body {body}\n\
         on tools/call/odd\n    status 200\n    header Content-Type: text/plain\n    body not MCP {body}\n"
    );
    let script = script
        .replace(" -> header WWW-Authenticate", "\n    header WWW-Authenticate")
        .replace("refuse -> status", "refuse\n    status");
    let port = place.http("say", &script)?;
    let record = place.path().join("recorded.jsonl");
    place.set("TOOLWAY_URL", format!("http://127.0.0.1:{port}/mcp?api_key={query}"));
    let words = [
        "streamable-http".to_owned(),
        "--log=trace".to_owned(),
        format!("--record={}", record.display()),
        "--header=X-Api-Key=${OF_HEADER}".to_owned(),
        format!("--header=X-Other=${{file:{file}}}"),
        "--header=Authorization=${OF_BASIC}".to_owned(),
    ];
    let mut client = Client::start(&mut place.command(words))?;
    client.handshake()?;
    client.call("1", "say", "{}")?;
    client.answer("1")?;
    for (id, tool) in [("2", "refuse"), ("3", "wrong"), ("4", "broken"), ("5", "odd")] {
        client.call(id, tool, "{}")?;
        let answer = client.answer(id)?;
        ensure!(String::from_utf8_lossy(&answer).contains("error"), "{tool}");
        place.note(format!("the answer to {tool}"), answer);
    }
    client.close_stdin();
    client.wait_exit(SOON)?;
    place.note("stderr of the relay", client.stderr());
    ensure!(std::fs::read_to_string(record)?.contains("[redacted]"));
    place.search(5)
}
