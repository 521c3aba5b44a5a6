//! Servers from files: which one a name means, what needs approval, and what a child process gets.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use toolway_testkit::FakeTransport;

use crate::House;

const HI: &str = "on tools/call/hi -> text hello";

#[test]
fn a_server_is_found_by_its_name() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"greeter": house.entry("greeter", HI)?, "other": house.entry("other", HI)?}))?;
    house.run(["call", "greeter", "hi"])?.is(0, "hello\n", "")?;
    house.run(["call", "greter", "hi"])?.is(
        2,
        "",
        "error: no server is called \"greter\"\nhint: did you mean greeter?\n",
    )?;
    house.run(["call", "zzz", "hi"])?.is(
        2,
        "",
        "error: no server is called \"zzz\"\nhint: configured are greeter, other\n",
    )?;
    house.leave()
}

#[test]
fn a_named_file_is_read_alone_and_needs_no_approval() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"of-user": house.entry("user", HI)?}))?;
    let servers = json!({"mcpServers": {"mine": house.entry("mine", HI)?}});
    house.write("own.json", &format!("// comment\n{servers:#}"))?;
    house.run(["call", "--config", "own.json", "mine", "hi"])?.is(0, "hello\n", "")?;
    house.run(["call", "--config", "own.json", "of-user", "hi"])?.ended(2)?;
    house.run(["list", "--config", "gone.json"])?.ended(2)?.says(&["cannot read gone.json"])?;
    house.leave()
}

#[test]
fn a_file_with_a_fault_is_named_with_its_place() -> Result<()> {
    let house = House::new()?;
    house.write("own.json", "{\n  \"mcpServers\": {,}\n}")?;
    let call = house.run(["call", "--config", "own.json", "s", "t"])?.ended(2)?;
    call.says(&["own.json:2:", "no server is called \"s\""])?;
    house.run(["list", "--config", "own.json"])?.ended(2)?.says(&["own.json:2:"])?;
    let listed = house.run(["list", "--json", "--config", "own.json"])?.ended(2)?.json()?;
    assert_eq!(listed["problems"][0]["line"], 2, "{listed:#}");
    // What is found by itself is told, and keeps nothing else from being shown.
    house.write("home/.cursor/mcp.json", "{")?;
    house.configure(&json!({"good": house.entry("good", HI)?}))?;
    house.run(["list"])?.ended(0)?.says(&["connected", ".cursor/mcp.json:1:"])?;
    house.run(["call", "good", "hi"])?.is(0, "hello\n", "")?;
    house.leave()
}

#[test]
fn a_project_starts_nothing_before_it_is_approved() -> Result<()> {
    let mut house = House::new()?;
    let servers = json!({"mcpServers": {"local": house.entry("local", HI)?}});
    house.write(".cursor/mcp.json", &servers.to_string())?;
    let told = house.run(["call", "local", "hi"])?.ended(3)?;
    told.says(&["server \"local\" is not approved", "toolway trust local"])?;
    for line in [["tools", "local"], ["read", "local"], ["prompt", "local"], ["ping", "local"]] {
        house.run(line)?.ended(3)?;
    }
    house.run(["ping"])?.ended(3)?;
    let listed = house.run(["list", "--json"])?.ended(0)?.json()?;
    assert_eq!(listed["servers"][0]["state"], "untrusted");
    ensure!(!house.rig.has_started(), "it was started");
    house.leave()
}

#[test]
fn what_was_approved_starts_until_its_meaning_changes() -> Result<()> {
    let house = House::new()?;
    let mut servers = json!({"mcpServers": {"local": house.entry("local", HI)?}});
    house.write(".cursor/mcp.json", &servers.to_string())?;
    house.run(["trust", "local"])?.ended(0)?;
    house.run(["call", "local", "hi"])?.is(0, "hello\n", "")?;
    house.write(".cursor/mcp.json", &format!("// the same\n{servers:#}"))?;
    house.run(["call", "local", "hi"])?.is(0, "hello\n", "")?;
    servers["mcpServers"]["local"]["env"] = json!({"NEW": "1"});
    house.write(".cursor/mcp.json", &servers.to_string())?;
    house.run(["call", "local", "hi"])?.ended(3)?.says(&["changed", "toolway trust local"])?;
    house.leave()
}

#[test]
fn a_team_has_its_servers_at_an_address() -> Result<()> {
    let good = House::new()?;
    let servers = json!({"mcpServers": {"of-team": good.entry("team", HI)?}});
    let answer =
        format!("on GET -> status 200 OK\n    header Content-Type: application/json\n    body {servers}");
    let (house, upstream, url) = House::new()?.serve(FakeTransport::Http, &answer)?;
    let house = house.with_variable("TOOLWAY_TEAM_CONFIG", &url);
    let listed = house.run(["list", "--json", "--no-start", "--sources", "team"])?.ended(0)?.json()?;
    assert_eq!(listed["servers"][0]["name"], "of-team", "{listed:#}");
    assert_eq!(listed["servers"][0]["source"]["kind"], "team");
    drop(upstream);
    house.leave()?;
    good.leave()
}

#[test]
fn sources_are_chosen() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"of-user": house.entry("user", HI)?}))?;
    let project = json!({"mcpServers": {"of-project": house.entry("project", HI)?}});
    house.write(".cursor/mcp.json", &project.to_string())?;
    let names = |list: &str| -> Result<Vec<String>> {
        let listed = house.run(["list", "--json", "--no-start", "--sources", list])?.ended(0)?.json()?;
        let servers = listed["servers"].as_array().context("no servers")?;
        Ok(servers.iter().filter_map(|server| server["name"].as_str().map(str::to_owned)).collect())
    };
    assert_eq!(names("user")?, ["of-user"]);
    assert_eq!(names("project")?, ["of-project"]);
    assert_eq!(names("project,user")?, ["of-project", "of-user"]);
    house.run(["list", "--sources", "users"])?.ended(2)?.says(&["no setting source \"users\""])?;
    house.leave()
}

#[test]
fn filters_and_names_of_tools_hold_in_a_shell_too() -> Result<()> {
    let house = House::new()?;
    let script =
        "on tools/call/read -> text read\non tools/call/write -> text written\non tools/call/hi -> text hi";
    let mut entry = house.entry("s", script)?;
    entry["tools"] = json!({"deny": ["wri*"], "rename": {"hi": "greet"}, "describe": {"hi": "Says hello."}});
    house.configure(&json!({"s": entry}))?;
    house.run(["tools", "s"])?.is(0, "read\ngreet  Says hello.\n", "")?;
    house.run(["call", "s", "greet"])?.is(0, "hi\n", "")?;
    house.run(["call", "s", "hi"])?.is(0, "hi\n", "")?;
    house.run(["call", "s", "write"])?.is(
        2,
        "",
        "error: tool \"write\" of server \"s\" is denied by \"wri*\" (its settings, tools)\n",
    )?;
    house.leave()
}

/// The environment that a server of this entry gets.
fn environment(extra: &Value) -> Result<(Value, String)> {
    let mut house = House::new()?
        .with_variable("SECRET_OF_ME", "1")
        .with_variable("SHELL", "/bin/x")
        .with_variable("ALSO", "yes");
    let mut entry = house.entry("s", HI)?;
    for (name, value) in extra.as_object().context("no object")? {
        entry[name] = value.clone();
    }
    house.configure(&json!({"s": entry}))?;
    house.run(["call", "s", "hi"])?.is(0, "hello\n", "")?;
    let start = house.rig.arrival()?.start.clone();
    let cwd = start["cwd"].as_str().context("no cwd")?.to_owned();
    house.leave()?;
    Ok((start["env"].clone(), cwd))
}

#[test]
fn a_child_gets_its_own_variables_and_the_safe_set() -> Result<()> {
    let (env, _) = environment(&json!({"env": {"NODE_OPTIONS": "--x", "COPY": "${ALSO}"}}))?;
    assert_eq!((&env["NODE_OPTIONS"], &env["COPY"]), (&json!("--x"), &json!("yes")));
    let env = env.as_object().context("no env")?;
    let known = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "NODE_OPTIONS", "COPY", "TOOLWAY_DEPTH"];
    let others: Vec<_> = env.keys().filter(|name| !known.contains(&name.as_str())).collect();
    ensure!(others.is_empty(), "{others:?}");
    let (env, _) = environment(&json!({"inheritEnv": ["ALSO"]}))?;
    ensure!(env.get("ALSO").is_some() && env.get("SECRET_OF_ME").is_none(), "{env}");
    let (env, _) = environment(&json!({"inheritEnv": true}))?;
    ensure!(env.get("SECRET_OF_ME").is_some(), "{env}");
    Ok(())
}

#[test]
fn a_child_runs_where_its_entry_says() -> Result<()> {
    let (_, cwd) = environment(&json!({"cwd": "/"}))?;
    assert_eq!(cwd, "/");
    Ok(())
}

#[test]
fn a_command_is_found_in_the_path_of_its_entry() -> Result<()> {
    let house = House::new()?;
    let words = house.words("s", HI)?;
    let (command, args) = words.split_first().context("no command")?;
    let (directory, name) = command.rsplit_once('/').context("no directory")?;
    house.configure(&json!({
        "s": {"command": name, "args": args, "env": {"PATH": directory}},
        "absolute": {"command": command, "args": args},
        "gone": {"command": "no-such-binary-xyz", "args": [], "env": {"PATH": "/first:/second"}},
    }))?;
    house.run(["call", "s", "hi"])?.is(0, "hello\n", "")?;
    house.run(["call", "absolute", "hi"])?.is(0, "hello\n", "")?;
    let told = house.run(["call", "gone", "hi"])?.ended(4)?;
    told.says(&["command not found: no-such-binary-xyz", "searched: /first:/second"])?;
    house.leave()
}

#[test]
fn a_command_of_a_version_manager_is_named() -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new()?;
    let place = "home/.nvm/versions/node/v22.1.0/bin/my-npx";
    house.write(place, "#!/bin/sh\n")?;
    let file = house.rig.path().join(place);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
    house.configure(&json!({"s": {"command": "my-npx", "args": [], "env": {"PATH": "/usr/bin:/bin"}}}))?;
    let told = house.run(["ping", "s"])?.ended(4)?;
    told.says(&["command not found: my-npx; searched: /usr/bin:/bin"])?;
    house.run(["call", "s", "x"])?.ended(4)?.says(&["v22.1.0/bin/my-npx"])?;
    house.leave()
}
