//! Files are changed and read back: import, export, add, remove, enable, disable.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::House;

const OWN: &str = "home/.config/toolway/mcp.json";

fn own(house: &House) -> Result<Value> {
    Ok(serde_json::from_str(&house.content(OWN)?)?)
}

#[test]
fn servers_of_other_clients_are_taken_over_and_given_back() -> Result<()> {
    let house = House::new()?;
    let cursor = "\u{feff}{\r\n  // mine\r\n  \"mcpServers\": {\"gh\": {\"command\": \"npx\", \"args\": [\"-y\", \"gh\"], \
                  \"env\": {\"T\": \"s3cr3t\"}, \"x\": 1},},\r\n}";
    let codex =
        "# mine\n[mcp_servers.web]\nurl = \"https://u:s3cr3t@web.example/mcp?key=s3cr3t\"\nenabled = false\n";
    house.write("home/.cursor/mcp.json", cursor)?;
    house.write("home/.codex/config.toml", codex)?;
    house.write("home/.config/zed/settings.json", "{\"context_servers\": {,}}")?;
    house.write(".vscode/mcp.json", r#"{"servers": {"gh": {"type": "stdio", "command": "other"}}}"#)?;

    let planned = house.run(["import", "--dry-run"])?.ended(2)?;
    planned.says(&[
        "would add 2 servers to ~/.config/toolway/mcp.json",
        "zed/settings.json:1:22: ",
        "error: ",
    ])?;
    ensure!(house.content(OWN).is_err(), "a dry run wrote a file");

    let told = house.run(["import"])?.ended(2)?;
    let page = "Cursor: ~/.cursor/mcp.json\n  + gh: npx\n      kept as a note for Cursor: x\nCodex: \
                ~/.codex/config.toml\n  + web: web.example, switched off\nadded 2 servers to \
                ~/.config/toolway/mcp.json\nVS Code: ";
    ensure!(told.out.starts_with(page), "{}", told.out);
    told.says(&["  + gh: other\nadded 1 server to "])?;
    ensure!(!told.out.contains("s3cr3t") && !told.err.contains("s3cr3t"), "{told:#?}");
    ensure!(house.content(".toolway/mcp.json")?.contains("\"other\""));
    house.run(["import", "--from", "cursor"])?.ended(0)?.says(&["  = gh: there already\nadded 0 servers"])?;

    // The client's file is what it was, also after its servers were lost.
    house.run(["export", "--to", "cursor", "gh"])?.ended(0)?.says(&["  = gh\nwrote 0 servers"])?;
    assert_eq!(house.content("home/.cursor/mcp.json")?, cursor);
    house.run(["remove", "gh", "--in", "cursor"])?.ended(0)?;
    house.run(["export", "--to", "cursor", "gh"])?.ended(0)?.says(&["  + gh\nwrote 1 server"])?;
    let back = house.content("home/.cursor/mcp.json")?;
    ensure!(back.starts_with("\u{feff}{\r\n  // mine\r\n  \"mcpServers\": {"), "{back:?}");
    ensure!(back.contains("\"x\": 1") && back.contains("s3cr3t"), "{back}");
    house.leave()
}

#[test]
fn what_a_client_cannot_have_is_told_and_fails() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({
        "off": {"command": "x", "enabled": false},
        "var": {"command": "x", "env": {"A": "${B}"}},
        "ok": {"command": "x", "tools": {"deny": ["d"]}},
    }))?;
    let told = house.run(["export", "--to", "claude-desktop"])?.ended(1)?;
    told.says(&[
        "! off: it is switched off, and there is no switch for that there",
        "! var: env.A: ${B} has no counterpart there",
        "+ ok\n      left out, Claude Desktop has no word for it: tools.deny",
        "wrote 1 server",
    ])?;
    house.run(["export", "--to", "windsurf", "--project"])?.ended(0)?.says(&["there are no servers in"])?;
    house
        .run(["export", "--to", "nobody"])?
        .ended(2)?
        .says(&["no client \"nobody\"", "cursor, claude-code"])?;
    house.run(["import", "--from", "nobody"])?.ended(2)?;
    house.leave()
}

#[test]
fn servers_are_added_switched_and_removed() -> Result<()> {
    let house = House::new()?;
    house.write(OWN, "{\n  // mine\n  \"mcpServers\": {}\n}\n")?;
    house.run(["add", "a", "--env", "K=${K}", "--", "npx", "-y", "thing"])?.is(
        0,
        "added a to ~/.config/toolway/mcp.json\n",
        "",
    )?;
    house.run(["add", "b", "--url", "https://h.example/mcp", "--header", "X=y"])?.ended(0)?;
    let servers = json!({
        "a": {"command": "npx", "args": ["-y", "thing"], "env": {"K": "${K}"}},
        "b": {"url": "https://h.example/mcp", "headers": {"X": "y"}},
    });
    ensure!(house.content(OWN)?.contains("// mine"));
    house.run(["add", "A", "--", "x"])?.ended(2)?.says(&["server \"a\": is there already"])?;
    house.run(["add", "a b", "--", "x"])?.ended(2)?;
    house.run(["add", "c"])?.ended(2)?.says(&["neither what to start nor where it is"])?;
    house.run(["add", "c", "--url", "ftp://h"])?.ended(2)?;
    house.run(["disable", "a"])?.is(0, "switched a off in ~/.config/toolway/mcp.json\n", "")?;
    house.run(["disable", "a"])?.is(0, "a is switched off already in ~/.config/toolway/mcp.json\n", "")?;
    let listed = house.run(["list", "--json", "--no-start"])?.ended(0)?.json()?;
    assert_eq!(listed["servers"][0]["state"], "disabled");
    house.run(["enable", "a"])?.ended(0)?;
    house.run(["remove", "b"])?.ended(0)?;
    house.run(["remove", "b"])?.ended(2)?.says(&["server \"b\": is not in this file"])?;
    let left: Value = serde_json::from_str(&house.content(OWN)?.replace("// mine", ""))?;
    assert_eq!(left["mcpServers"]["a"]["command"], servers["a"]["command"]);
    assert_eq!(left["mcpServers"]["a"]["enabled"], true);
    assert_eq!(left["mcpServers"].get("b"), None);
    house.leave()
}

#[test]
fn a_server_from_elsewhere_is_switched_off_by_an_entry_of_its_own() -> Result<()> {
    let house = House::new()?;
    house.write("home/.cursor/mcp.json", r#"{"mcpServers": {"far": {"command": "x"}}}"#)?;
    house.run(["disable", "far"])?.is(0, "switched far off in ~/.config/toolway/mcp.json\n", "")?;
    assert_eq!(own(&house)?["mcpServers"]["far"], json!({"enabled": false}));
    let states = |house: &House| -> Result<Vec<String>> {
        let listed = house.run(["list", "--json", "--no-start"])?.ended(0)?.json()?;
        let servers = listed["servers"].as_array().cloned().unwrap_or_default();
        Ok(servers.iter().map(|server| server["state"].as_str().unwrap_or_default().to_owned()).collect())
    };
    ensure!(states(&house)?.contains(&"disabled".to_owned()), "{:?}", states(&house)?);
    house.run(["enable", "far"])?.ended(0)?;
    assert_eq!(own(&house)?["mcpServers"], json!({}));
    house.run(["enable", "far"])?.ended(2)?.says(&["is not switched off"])?;
    house.run(["disable", "near"])?.ended(2)?.says(&["server \"near\": is not configured", "far"])?;
    house
        .run(["disable", "far", "--in", "cursor"])?
        .ended(2)?
        .says(&["Cursor has no switch in its files"])?;
    house.run(["add", "far", "--in", "codex", "--", "x"])?.ended(0)?;
    house.run(["disable", "far", "--in", "codex"])?.ended(0)?;
    assert_eq!(
        house.content("home/.codex/config.toml")?,
        "[mcp_servers.far]\ncommand = \"x\"\nargs = []\nenabled = false\n"
    );
    house.leave()
}

#[test]
fn the_portable_file_is_claude_codes_and_what_cannot_be_read_is_told() -> Result<()> {
    let house = House::new()?;
    house.write(".mcp.json", r#"{"mcpServers": {"p": {"command": "x", "env": {"A": "${T}"}}}}"#)?;
    house.write("home/.cursor/mcp.json", "")?;
    let file = |path: &str| house.rig.path().join(path);
    std::fs::File::create(file("home/big.json"))?.set_len(50 << 20)?;
    std::os::unix::fs::symlink("circle.json", file("home/circle.json"))?;
    house.run(["import"])?.ended(0)?.says(&["Claude Code: ", "  + p: x\nadded 1 server to "])?;
    let own: Value = serde_json::from_str(&house.content(".toolway/mcp.json")?)?;
    assert_eq!(own["mcpServers"]["p"]["env"], json!({"A": "${T}"}));
    for (name, told) in [
        ("home/big.json", "is too large for a configuration file: 52428800 bytes"),
        ("home/circle.json", "cannot be read"),
        ("home/gone.json", "cannot be read"),
        ("home", "it is a directory"),
    ] {
        house.run(["import", "--from", "cursor", "--file", name])?.ended(2)?.says(&[told])?;
    }
    house.write(OWN, "{\"mcpServers\": {\n")?;
    let before = house.content(OWN)?;
    house.run(["add", "a", "--", "x"])?.ended(2)?.says(&["toolway/mcp.json:1:16: this { is never closed"])?;
    assert_eq!(house.content(OWN)?, before);
    house.leave()
}
