//! Causes that show when a process is started.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Cause, good, holds, sick, well};
use crate::House;

#[test]
fn npx_that_only_a_version_manager_has_is_found_there() -> Result<()> {
    for folder in
        [".nvm/versions/node/v24.1.0/bin", ".local/share/fnm/node-versions/v24.1.0/installation/bin"]
    {
        let house = House::new()?;
        let program = format!("home/{folder}/npx-of-test");
        house.write(&program, "#!/bin/sh\n")?;
        std::fs::set_permissions(house.rig.path().join(&program), std::fs::Permissions::from_mode(0o755))?;
        house.configure(&json!({"n": {"command": "npx-of-test", "env": {"PATH": "/usr/bin:/bin"}}}))?;
        let found = sick(&house, &[])?;
        let cause = Cause {
            server: "n",
            layer: "command",
            says: &["npx-of-test", "/usr/bin"],
            fix: "bin/npx-of-test",
        };
        holds(&found, "fault", cause)?;
        house.leave()?;
    }
    Ok(())
}

#[test]
fn a_command_that_is_nowhere_tells_where_it_was_searched() -> Result<()> {
    let house = House::new()?;
    house.write("home/script.sh", "#!/bin/sh\n")?;
    let script = house.rig.path().join("home/script.sh");
    house.configure(&json!({
        "gone": {"command": "no-such-binary-xyz"},
        "plain": {"command": script},
        "place": {"command": "true", "cwd": "/no/such/folder"},
        "good": good(&house)?,
    }))?;
    let found = sick(&house, &[])?;
    for cause in [
        Cause { server: "gone", layer: "command", says: &["no-such-binary-xyz", "searched"], fix: "install" },
        Cause { server: "plain", layer: "command", says: &["script.sh", "not executable"], fix: "" },
        Cause { server: "place", layer: "spawn", says: &["/no/such/folder"], fix: "" },
    ] {
        holds(&found, "fault", cause)?;
    }
    house.leave()
}

/// A server's script, and what is wrong with it.
const SCRIPTS: [(&str, Cause); 6] = [
    (
        "on start -> stderr starting\n    stderr TypeError: cannot read x\n    exit 7",
        Cause { server: "s", layer: "spawn", says: &["7", "TypeError: cannot read x"], fix: "last words" },
    ),
    ("on start -> exit 0", Cause { server: "s", layer: "spawn", says: &["0"], fix: "" }),
    (
        "on initialize -> never\non server/discover -> never",
        Cause { server: "s", layer: "generation", says: &["initialize"], fix: "startupTimeoutMs" },
    ),
    (
        "on initialize -> error -32603 no licence\non server/discover -> error -32603 no licence",
        Cause { server: "s", layer: "generation", says: &["no licence"], fix: "" },
    ),
    (
        "on tools/list -> error -32603 database is down",
        Cause { server: "s", layer: "tools", says: &["database is down"], fix: "author" },
    ),
    ("on tools/list -> never", Cause { server: "s", layer: "tools", says: &["tools/list"], fix: "author" }),
];

#[test]
fn a_server_that_does_not_come_up_says_why() -> Result<()> {
    for (script, cause) in SCRIPTS {
        let house = House::new()?;
        house.configure(&json!({"s": house.entry("s", script)?, "good": good(&house)?}))?;
        let found = sick(&house, &[])?;
        holds(&found, "fault", cause)?;
        house.leave()?;
    }
    Ok(())
}

#[test]
fn a_variable_that_is_not_handed_on_shows_in_the_last_words() -> Result<()> {
    let house = House::new()?.with_variable("SPECIAL_HOME", "/x");
    let script = "test -n \"$SPECIAL_HOME\" || { echo 'SPECIAL_HOME is not set' >&2; exit 1; }; exec \"$@\"";
    let words = house.words("s", "on tools/call/hi -> text hello")?;
    let mut args = vec!["-c".to_owned(), script.to_owned(), "sh".to_owned()];
    args.extend(words);
    let entry = json!({"command": "sh", "args": args});
    house.configure(&json!({"s": entry}))?;
    let found = sick(&house, &[])?;
    let cause = Cause { server: "s", layer: "spawn", says: &["SPECIAL_HOME is not set"], fix: "inheritEnv" };
    holds(&found, "fault", cause)?;
    let mut handed = entry;
    handed["inheritEnv"] = json!(["SPECIAL_HOME"]);
    house.configure(&json!({"s": handed}))?;
    well(&house, &[])?;
    house.leave()
}

#[test]
fn tools_that_would_break_clients_are_told_one_by_one() -> Result<()> {
    let house = House::new()?;
    let long = "n".repeat(70);
    let script = format!(
        "tool {{\"name\":\"fine\",\"inputSchema\":{{\"type\":\"object\"}}}}\n\
         tool {{\"name\":\"bare\"}}\n\
         tool {{\"name\":\"{long}\",\"inputSchema\":{{\"type\":\"object\"}}}}\n"
    );
    house.configure(&json!({"s": house.entry("s", &script)?}))?;
    let found = well(&house, &[])?;
    holds(
        &found,
        "warning",
        Cause { server: "s", layer: "tools", says: &["\"bare\"", "inputSchema"], fix: "author" },
    )?;
    holds(
        &found,
        "warning",
        Cause { server: "s", layer: "tools", says: &["do not fit", "shown as"], fix: "tools.rename" },
    )?;
    let tools = &found["servers"][0]["tools"];
    assert_eq!(tools["quarantined"][0]["tool"], "bare");
    assert_eq!(tools["renamed"][0]["tool"], long);
    ensure!(tools["renamed"][0]["shown"].as_str().is_some_and(|shown| shown.len() <= 64), "{tools:#}");
    house.leave()
}

#[test]
fn paging_without_end_is_told_and_what_came_is_used() -> Result<()> {
    let house = House::new()?;
    let page = r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"x"}"#;
    house.configure(&json!({"s": house.entry("s", &format!("on tools/list -> answer {page}"))?}))?;
    let found = well(&house, &[])?;
    holds(&found, "warning", Cause { server: "s", layer: "tools", says: &["cursor"], fix: "author" })?;
    house.leave()
}

#[test]
fn a_filter_that_hides_everything_is_named() -> Result<()> {
    let house = House::new()?;
    let mut entry = good(&house)?;
    entry["tools"] = json!({"allow": ["nothing-like-this"]});
    house.configure(&json!({"s": entry}))?;
    let found = well(&house, &[])?;
    holds(
        &found,
        "warning",
        Cause { server: "s", layer: "tools", says: &["hides every tool"], fix: "tools.allow" },
    )?;
    house.leave()
}
