//! Statements about files: which are read, who wins, what stands for what, and what a reload brings.

use anyhow::Result;
use serde_json::{Value, json};
use toolway_agent::{LocalOptions, McpServers, SendOptions};
use toolway_config::SettingSource::{self, Mdm, Plugins, Project, Team, User};

use super::support::{Bench, DEADLINE, call, generations, names, report, run, text, tool};

fn from(sources: &[SettingSource]) -> LocalOptions {
    LocalOptions { setting_sources: sources.to_vec(), ..LocalOptions::default() }
}

#[tokio::test]
async fn statement_a27_without_sources_no_file_brings_a_server() -> Result<()> {
    let mut bench = Bench::new()?;
    bench.servers("project/.cursor/mcp.json", &[("p", bench.entry("")?)])?;
    bench.servers("home/.cursor/mcp.json", &[("u", bench.entry("")?)])?;
    let agent = generations(&bench.options(McpServers::new(), LocalOptions::default()))?;
    let generation = run(&agent).await?;
    assert!(generation.reports().is_empty() && names(&generation).is_empty());
    assert!(!bench.hub.has_arrived("server"));
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a28_each_source_brings_its_own_and_the_project_wins() -> Result<()> {
    let bench = Bench::new()?;
    let entry = |word: &str| bench.entry(&format!("on tools/call/who -> text {word}"));
    bench.servers("project/.cursor/mcp.json", &[("p", entry("p")?), ("both", entry("project")?)])?;
    bench.servers("project/nested/.cursor/mcp.json", &[("n", entry("n")?)])?;
    bench.servers("home/.cursor/mcp.json", &[("u", entry("u")?), ("both", entry("user")?)])?;
    std::fs::create_dir_all(bench.project().join("nested"))?;
    for (sources, expected, winner) in [
        (&[Project][..], vec!["both", "p"], "project"),
        (&[User], vec!["both", "u"], "user"),
        (&[Project, User], vec!["both", "p", "u"], "project"),
    ] {
        let local = LocalOptions { cwd: Some(bench.project().join("nested")), ..from(sources) };
        let agent = generations(&bench.options(McpServers::new(), local))?;
        let generation = run(&agent).await?;
        for name in &expected {
            report(&generation, name, "connected").await?;
        }
        let reports = generation.reports();
        let mut up: Vec<&str> =
            reports.iter().filter(|one| one.state == "connected").map(|one| one.name.as_str()).collect();
        up.sort_unstable();
        assert_eq!(up, expected, "{sources:?}");
        assert_eq!(text(&call(&generation, "both__who", json!({})).await?), winner);
        agent.close().await;
    }
    Ok(())
}

#[tokio::test]
async fn statement_a29_all_sources_are_applied_and_every_server_is_told_with_its_source() -> Result<()> {
    let mut bench = Bench::new()?;
    bench.servers("project/.cursor/mcp.json", &[("p", bench.entry("")?)])?;
    bench.servers("home/.cursor/mcp.json", &[("u", bench.entry("")?)])?;
    let team = bench.servers("team.json", &[("t", bench.entry("")?)])?;
    bench.variable("TOOLWAY_TEAM_CONFIG", &team.to_string_lossy());
    let managed =
        json!({"mcpServers": {"m": bench.entry("")?}, "policy": {"deny": [{"command": "*forbidden*"}]}});
    bench.write("managed/mcp.json", &managed.to_string())?;
    let plugin = json!({"mcpServers": {"x": bench.entry("")?}});
    bench.write("home/.cursor/plugins/local/acme/.mcp.json", &plugin.to_string())?;
    let agent = generations(&bench.options(McpServers::new(), from(&SettingSource::ALL)))?;
    let generation = run(&agent).await?;
    for (name, source) in
        [("p", "project"), ("u", "user"), ("t", "team"), ("m", "mdm"), ("plugin-acme-x", "plugin acme")]
    {
        let report = report(&generation, name, "connected").await?;
        assert_eq!((report.source.as_str(), report.place.is_some()), (source, true), "{report:?}");
    }
    agent.close().await;
    for part in [Team, Mdm, Plugins] {
        let agent = generations(&bench.options(McpServers::new(), from(&[part])))?;
        assert_eq!(run(&agent).await?.reports().len(), 1, "{part:?}");
        agent.close().await;
    }
    Ok(())
}

#[tokio::test]
async fn statement_a30_one_process_for_one_name_and_it_is_the_inline_one() -> Result<()> {
    let bench = Bench::new()?;
    let entry = |word: &str| bench.entry(&format!("on tools/call/who -> text {word}"));
    let name = "plugin-acme-x";
    bench.servers("project/.cursor/mcp.json", &[(name, entry("project")?), ("p", entry("p")?)])?;
    bench.servers("home/.cursor/mcp.json", &[(name, entry("user")?), ("u", entry("u")?)])?;
    let plugin = json!({"mcpServers": {"x": entry("plugin")?}});
    bench.write("home/.cursor/plugins/local/acme/.mcp.json", &plugin.to_string())?;
    let inline = McpServers::new().with(name, bench.scripted("on tools/call/who -> text inline")?);
    let agent = generations(&bench.options(inline, from(&[Project, User, Plugins])))?;
    let generation = run(&agent).await?;
    for other in ["p", "u"] {
        report(&generation, other, "connected").await?;
    }
    tool(&generation, "plugin-acme-x__who").await?;
    assert_eq!(text(&call(&generation, "plugin-acme-x__who", json!({})).await?), "inline");
    let reports = generation.reports();
    let mut told: Vec<(&str, &str)> = reports
        .iter()
        .filter(|one| one.name == name)
        .map(|one| (one.source.as_str(), one.state.as_str()))
        .collect();
    told.sort_unstable();
    let shadowed = [("plugin acme", "shadowed"), ("project", "shadowed"), ("user", "shadowed")];
    assert_eq!(told, [&[("inline", "connected")][..], &shadowed].concat());
    assert_eq!(bench.leaks().processes().len(), 3);
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a31_placeholders_of_files_are_replaced_and_inline_text_is_not() -> Result<()> {
    let mut bench = Bench::new()?;
    bench.variable("T", "t0ken");
    let mut web = bench.web("", "http")?;
    let scripted = bench.entry("")?;
    let mut args = scripted["args"].as_array().cloned().unwrap_or_default();
    let placeholders = [
        "${env:T}",
        "${userHome}",
        "${workspaceFolder}",
        "${workspaceFolderBasename}",
        "a${pathSeparator}b",
        "a${/}b",
    ];
    args.extend(placeholders.iter().map(|one| json!(format!("--{one}"))));
    bench.variable("FAKE", scripted["command"].as_str().unwrap_or_default());
    bench.variable("PORT", &web.peer.port().to_string());
    bench.servers(
        "project/.cursor/mcp.json",
        &[
            ("s", json!({"command": "${env:FAKE}", "args": args, "env": {"E": "<${env:T}>"}})),
            ("w", json!({"url": "http://127.0.0.1:${env:PORT}/mcp", "headers": {"X": "Bearer ${env:T}"}})),
            ("unset", json!({"url": web.url, "headers": {"X": "Bearer ${env:UNSET_X}"}})),
        ],
    )?;
    let inline = McpServers::new().with("i", bench.scripted("")?.env("E", "<${env:T}>"));
    let agent = generations(&bench.options(inline, from(&[Project])))?;
    let generation = run(&agent).await?;
    for name in ["s", "w", "i"] {
        report(&generation, name, "connected").await?;
    }
    let unset = report(&generation, "unset", "failed").await?.reason.unwrap_or_default();
    assert!(unset.contains("UNSET_X"), "{unset}");
    let (one, other) = (bench.peer()?, bench.peer()?);
    let envs = [one.start["env"]["E"].clone(), other.start["env"]["E"].clone()];
    assert!(envs.contains(&json!("<t0ken>")) && envs.contains(&json!("<${env:T}>")), "{envs:?}");
    let file = if envs[0] == json!("<t0ken>") { one } else { other };
    let started = file.start["args"].as_array().cloned().unwrap_or_default();
    let (home, project) = (bench.home(), bench.project());
    let slash = std::path::MAIN_SEPARATOR;
    for expected in [
        "--t0ken".to_owned(),
        format!("--{}", home.display()),
        format!("--{}", project.display()),
        "--project".to_owned(),
        format!("--a{slash}b"),
    ] {
        assert!(started.contains(&Value::from(expected.as_str())), "{expected}: {started:?}");
    }
    let requests = web.peer.requests();
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(request.header("x"), Some("Bearer t0ken"), "{request:?}");
    }
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a32_a_file_of_variables_stands_below_env_and_a_missing_one_fails_its_server() -> Result<()>
{
    let mut bench = Bench::new()?;
    bench.write("project/.env", "A=from-file\nB=from-file\n")?;
    let mut with = bench.entry("")?;
    with["envFile"] = "${workspaceFolder}/.env".into();
    with["env"] = json!({"A": "from-env"});
    let mut without = bench.entry("")?;
    without["envFile"] = "${workspaceFolder}/none.env".into();
    bench.servers("project/.cursor/mcp.json", &[("with", with), ("without", without)])?;
    let agent = generations(&bench.options(McpServers::new(), from(&[Project])))?;
    let generation = run(&agent).await?;
    report(&generation, "with", "connected").await?;
    let reason = report(&generation, "without", "failed").await?.reason.unwrap_or_default();
    assert!(reason.contains("none.env"), "{reason}");
    let env = bench.peer()?.start["env"].clone();
    assert_eq!((env["A"].clone(), env["B"].clone()), (json!("from-env"), json!("from-file")));
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a33_a_reload_brings_and_takes_servers() -> Result<()> {
    let bench = Bench::new()?;
    let file = "project/.cursor/mcp.json";
    bench.servers(file, &[("a", bench.entry("")?)])?;
    let agent = generations(&bench.options(McpServers::new(), from(&[Project])))?;
    tool(&*run(&agent).await?, "a__echo").await?;
    bench.servers(file, &[("a", bench.entry("")?), ("b", bench.entry("")?)])?;
    assert!(agent.reload().await?.is_new);
    let generation = run(&agent).await?;
    for exposed in ["a__echo", "b__echo"] {
        tool(&generation, exposed).await?;
        assert!(!call(&generation, exposed, json!({})).await?.is_error);
    }
    drop(generation);
    bench.servers(file, &[("b", bench.entry("")?)])?;
    assert!(agent.reload().await?.is_new);
    let generation = run(&agent).await?;
    tool(&generation, "b__echo").await?;
    assert_eq!(names(&generation), ["b__echo"]);
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a34_a_run_keeps_what_it_began_with_to_its_end() -> Result<()> {
    let mut bench = Bench::new()?;
    let file = "project/.cursor/mcp.json";
    bench.servers(file, &[("x", bench.entry("on tools/call/who -> text still here")?)])?;
    let agent = generations(&bench.options(McpServers::new(), from(&[Project])))?;
    let in_flight = run(&agent).await?;
    tool(&in_flight, "x__who").await?;
    let mut peer = bench.peer()?;
    bench.servers(file, &[])?;
    assert!(agent.reload().await?.is_new);
    assert!(names(&*run(&agent).await?).is_empty());
    assert_eq!(text(&call(&in_flight, "x__who", json!({})).await?), "still here");
    drop(in_flight);
    tokio::task::spawn_blocking(move || peer.wait_gone(DEADLINE)).await??;
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a35_a_bad_file_changes_nothing_and_says_why() -> Result<()> {
    let bench = Bench::new()?;
    let file = "project/.cursor/mcp.json";
    let path = bench.servers(file, &[("a", bench.entry("")?)])?;
    let agent = generations(&bench.options(McpServers::new(), from(&[Project])))?;
    let before = agent.reload().await?;
    assert!(!before.is_new && before.diagnostics.is_empty(), "nothing was started yet");
    let first = run(&agent).await?;
    tool(&first, "a__echo").await?;
    bench.write(file, "{\"mcpServers\": {")?;
    let told = agent.reload().await?;
    assert!(!told.is_new);
    assert!(told.diagnostics.iter().any(|line| line.contains(&*path.to_string_lossy())), "{told:?}");
    let second = run(&agent).await?;
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    assert!(!call(&second, "a__echo", json!({})).await?.is_error);
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a36_a_plugin_reaches_nothing_outside_of_itself() -> Result<()> {
    let bench = Bench::new()?;
    for (plugin, path) in [("one", "/etc/servers.json"), ("two", "../one/servers.json")] {
        let manifest = json!({"name": plugin, "mcpServers": path}).to_string();
        bench.write(&format!("home/.cursor/plugins/local/{plugin}/plugin.json"), &manifest)?;
        bench.servers(
            &format!("home/.cursor/plugins/local/{plugin}/servers.json"),
            &[("s", bench.entry("")?)],
        )?;
    }
    let agent = generations(&bench.options(McpServers::new(), from(&[Plugins])))?;
    let generation = agent.for_run(&SendOptions::default()).await?;
    assert!(generation.reports().iter().all(|report| report.state != "connected"));
    let agent_told = agent.for_run(&SendOptions::default()).await?.diagnostics();
    for plugin in ["one", "two"] {
        assert!(agent_told.iter().any(|line| line.contains(&format!("/{plugin}/"))), "{agent_told:?}");
    }
    agent.close().await;
    bench.leaks().check(DEADLINE)
}
