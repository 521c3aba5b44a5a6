//! Commands of the shell that tell about servers, and talk with them.

use anyhow::{Result, ensure};
use serde_json::json;

use super::finder::Sentinel;
use super::place::Place;

/// A file with a server of each kind, every field of which holds a secret, and what they give back.
fn servers(place: &mut Place) -> Result<()> {
    let literal = place.secret(Sentinel::awkward("a literal in env"));
    place.variable("FOR_ENV", Sentinel::awkward("a variable in env"));
    let of_file = place.secret(Sentinel::plain("envFile"));
    let of_command = place.secret(Sentinel::awkward("the output of a command"));
    let of_keyring = place.secret(Sentinel::awkward("the keyring"));
    place.run(&["auth", "secret", "set", "for one"], &of_keyring)?;
    let header = place.secret(Sentinel::header("a literal in a header"));
    place.variable("FOR_HEADER", Sentinel::plain("a variable in a header"));
    let query = place.secret(Sentinel::plain("the query of an address"));
    let client = place.secret(Sentinel::plain("a client's secret"));
    let value = place.outside("value", &of_command)?;
    let env_file = place.outside("one.env", &format!("FILED_TOKEN={of_file}\n"))?;

    let (all, body) = (place.all(), place.all_as_body());
    let spill = place.spill();
    let one = place.stdio(
        "one",
        &format!(
            "on start\n{spill}on tools/call/say -> text {all}\n\
             on tools/call/fail -> error -32001 I was sent {all}\non tools/call/die\n{spill}    exit 7\n"
        ),
    )?;
    let dead = place.stdio("dead", &format!("on start\n{spill}    exit 9\n"))?;
    let (two, three) = (
        place.http("two", &format!("on tools/call/say\n    status 500\n    body {body}\n"))?,
        place.http(
            "three",
            &format!(
                "on POST\n    status 401\n    header WWW-Authenticate: Bearer realm=\"{client}\"\n    header Content-Type: application/json\n    body {{\"error\":\"{body}\"}}\n"
            ),
        )?,
    );
    let env = json!({"LITERAL_PW": literal, "VARIABLE_PW": "${FOR_ENV}", "COMMAND_PW": format!("${{command:cat {value}}}"), "KEYRING_PW": "${keyring:for one}"});
    let file = json!({"mcpServers": {
        "one": {"command": one[0], "args": one[1..], "env": env, "envFile": env_file},
        "dead": {"command": dead[0], "args": dead[1..], "env": {"LITERAL_PW": literal}},
        "two": {
            "url": format!("http://127.0.0.1:{two}/mcp?api_key={query}"),
            "headers": {"X-Api-Key": header, "Authorization": "Bearer ${FOR_HEADER}"},
        },
        "three": {
            "url": format!("http://127.0.0.1:{three}/mcp?api_key={query}"),
            "headers": {"X-Api-Key": header},
            "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": client},
        },
        "unset": {"url": format!("http://127.0.0.1:{two}/${{NOT_SET}}"), "headers": {"X-Api-Key": header}},
    }});
    place.input("home/.config/toolway/mcp.json", &format!("{file:#}\n"))?;
    let (out, err) = place.run(&["trust", "one"], "")?;
    ensure!(out.contains("Approved one"), "{out}{err}");
    Ok(())
}

#[test]
fn what_commands_tell_of_servers() -> Result<()> {
    let mut place = Place::new("reports")?;
    servers(&mut place)?;
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["list", "-vv"],
        &["tools", "-vv"],
        &["tools", "--json"],
        &["ping", "-vv"],
        &["ping", "--json"],
        &["doctor"],
        &["doctor", "-v"],
        &["doctor", "-vv", "--json"],
        &["config", "show"],
        &["config", "show", "--explain"],
        &["config", "show", "--json", "--explain"],
        &["config", "check"],
        &["config", "path", "--json"],
        &["trust", "--list"],
        &["auth", "status"],
        &["auth", "status", "--json"],
    ] {
        let (out, err) = place.run(words, "")?;
        ensure!(!out.is_empty() || !err.is_empty(), "{words:?} said nothing");
        if words[0] == "doctor" {
            ensure!(out.contains("[redacted]"), "{out}{err}");
        }
        if words.contains(&"--json") {
            serde_json::from_str::<serde_json::Value>(&out)?;
        }
    }
    place.search(40)
}

#[test]
fn calls_and_what_becomes_of_them() -> Result<()> {
    let mut place = Place::new("calls")?;
    servers(&mut place)?;
    let (out, _) = place.run_for_stderr(&["call", "-vv", "one", "say"], "")?;
    ensure!(out.contains(" | "), "what a server gives for its caller is not touched: {out}");
    for words in [
        &["call", "-vv", "one", "fail"][..],
        &["call", "--json", "one", "fail"],
        &["call", "-vv", "one", "die"],
        &["call", "-vv", "two", "say"],
        &["call", "-vv", "three", "say"],
        &["call", "-vv", "dead", "say"],
        &["call", "unset", "say"],
        &["call", "--url", "http://127.0.0.1:1/${FOR_HEADER}", "--header", "X-Api-Key=${FOR_HEADER}", "say"],
        &["read", "-vv", "two", "file:///x"],
        &["prompt", "-vv", "two", "x"],
    ] {
        let (_, err) = place.run(words, "")?;
        ensure!(!err.is_empty(), "{words:?} said nothing");
    }
    place.search(20)
}

#[test]
fn files_that_are_written_keep_references() -> Result<()> {
    let mut place = Place::new("written")?;
    place.variable("FOR_HEADER", Sentinel::header("a variable in a header"));
    place.variable("FOR_ENV", Sentinel::awkward("a variable in env"));
    let kept = place.secret(Sentinel::awkward("the keyring"));
    place.run(&["auth", "secret", "set", "kept"], &kept)?;
    let url = "http://127.0.0.1:1/mcp";
    place.input(
        "home/.cursor/mcp.json",
        &json!({"mcpServers": {
            "web": {"url": url, "headers": {"X-Api-Key": "${env:FOR_HEADER}"}},
            "own": {"command": "no-such-server", "env": {"A_PW": "${env:FOR_ENV}"}},
        }})
        .to_string(),
    )?;
    place.run(&["import", "--from", "cursor"], "")?;
    place.run(&["add", "mine", "--url", url, "--header", "X-Api-Key=${keyring:kept}"], "")?;
    place.run(&["add", "too", "--env", "A_PW=${FOR_ENV}", "--", "no-such-server"], "")?;
    let own = std::fs::read_to_string(place.path().join("home/.config/toolway/mcp.json"))?;
    ensure!(own.contains("${keyring:kept}") && own.contains("${FOR_ENV}"), "{own}");
    for client in ["cursor", "claude-code", "codex", "vscode"] {
        let (out, err) = place.run(&["export", "--to", client, "--replace"], "")?;
        ensure!(out.contains("X-Api-Key"), "{client} knows no keyring: {out}{err}");
    }
    place.run(&["disable", "too"], "")?;
    place.search(18)
}

#[test]
fn a_secret_on_a_command_line_is_warned_about_and_not_repeated() -> Result<()> {
    let mut place = Place::new("typed")?;
    // These do stand in the list of processes, which is what the warning says: so they are no sentinels of the search.
    let typed = Sentinel::plain("typed");
    let value = typed.value.as_str();
    let header = format!("X-Api-Key={value}");
    let env = format!("A_TOKEN={value}");
    for words in [
        &["call", "--url", "http://127.0.0.1:1/mcp", "--header", &header, "x"][..],
        &["call", "--command", "no-such-server", "--env", &env, "x"],
        &["call", "--command", &format!("no-such-server --token {value}"), "x"],
        &["call", "--url", &format!("http://127.0.0.1:1/mcp?api_key={value}"), "x"],
        &["serve", "--listen", "nowhere", "--token", value],
        &["stdio", "--env", &env, "--", "no-such-server", "--api-key", value],
        &["streamable-http", "--url", "http://127.0.0.1:1/mcp", "--header", &header],
        &["add", "mine", "--url", "http://127.0.0.1:1/mcp", "--header", &header],
    ] {
        let (out, err) = place.run(words, "")?;
        let quiet = words.contains(&"nowhere");
        ensure!(quiet || err.contains("can be seen by every process"), "{words:?}: {err}");
        for said in [out, err] {
            ensure!(super::finder::found(said.as_bytes(), std::slice::from_ref(&typed)).is_empty(), "{said}");
        }
    }
    let args = json!({"mcpServers": {"leaky": {"command": "x", "args": ["--token", value]}}});
    place.input("home/.config/toolway/mcp.json", &format!("{args:#}"))?;
    for words in [&["list", "--no-start"][..], &["doctor"], &["config", "check"]] {
        let (out, err) = place.run(words, "")?;
        let said = out + &err;
        ensure!(said.contains("a secret in an argument can be seen by every process"), "{words:?}: {said}");
        ensure!(!said.contains(value), "{said}");
    }
    Ok(())
}
