//! Statements about options: what is accepted, and what is refused with which words before anything starts.

use anyhow::Result;
use serde_json::{Value, json};
use toolway_agent::{
    AgentError, AgentOptions, CloudOptions, LocalOptions, McpServer, McpServers, Place, Prompt, SendOptions,
    ServerChange, cloud_servers,
};
use toolway_config::SettingSource;
use toolway_secret::Secret;

use super::support::{Bench, call, faults, generations, report, run, text, tool};

fn server(entry: &Value) -> McpServer {
    McpServer::from_json(entry.as_object().cloned().unwrap_or_default())
}

fn refused(options: &AgentOptions) -> Vec<String> {
    options.check().err().as_ref().map(faults).unwrap_or_default()
}

#[tokio::test]
async fn statement_a01_an_entry_without_a_type_starts_exactly_that_command() -> Result<()> {
    let mut bench = Bench::new()?;
    let servers = McpServers::new().with("a", bench.scripted("on tools/call/x -> text it ran")?);
    let agent = generations(&bench.options(servers.clone(), LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "a__x").await?;
    assert_eq!(text(&call(&generation, "a__x", json!({})).await?), "it ran");
    let peer = bench.peer()?;
    let given = servers.get("a").map(|one| one.members()["args"].clone());
    let args = peer.start["args"].as_array().cloned().unwrap_or_default();
    assert_eq!(given, Some(Value::Array(args.get(1..).unwrap_or_default().to_vec())));
    // A child of this very process.
    let status = std::fs::read_to_string(format!("/proc/{}/status", peer.pid()))?;
    let parent = format!("PPid:\t{}\n", std::process::id());
    assert!(status.contains(&parent), "{status}");
    agent.close().await;
    bench.leaks().check(super::support::DEADLINE)
}

#[tokio::test]
async fn statement_a04_contradictions_name_server_and_field_and_nothing_starts() -> Result<()> {
    let mut bench = Bench::new()?;
    let program = bench.scripted("")?.members()["command"].clone();
    for (entry, field) in [
        (json!({"command": program, "url": "http://h"}), "mcpServers.bad"),
        (json!({"args": ["x"]}), "mcpServers.bad"),
        (json!({"command": program, "type": "http"}), "type"),
        (json!({"url": "http://h", "type": "stdio"}), "type"),
        (json!({"url": "http://h", "type": "websocket"}), "type"),
        (json!({"command": program, "env": {"A": 1}}), "env.A"),
        (json!({"url": "http://h", "headers": {"X": true}}), "headers.X"),
        (json!({"command": program, "env": {"A=B": "x"}}), "env"),
        (json!({"url": "http://h", "headers": {"a b": "x"}}), "headers"),
        (json!({"command": program, "nonsense": 1}), "nonsense"),
        (json!({"command": ""}), "command"),
        (json!({"url": "ftp://h"}), "url"),
    ] {
        let options = bench.options(McpServers::new().with("bad", server(&entry)), LocalOptions::default());
        let found = refused(&options);
        let told = |fault: &String| fault.contains("mcpServers.bad") && fault.contains(field);
        assert!(found.iter().any(told), "{entry}: {found:?}");
        let send = SendOptions {
            mcp_servers: ServerChange::Replace(options.mcp_servers.clone()),
            ..SendOptions::default()
        };
        let good = bench.options(McpServers::new(), LocalOptions::default());
        let prompt = Prompt { text: "x".to_owned(), images: Vec::new() };
        assert!(send.check(&good, &prompt).is_err_and(|error| faults(&error).iter().any(told)), "{entry}");
    }
    assert!(!bench.hub.has_arrived("server"));
    Ok(())
}

#[tokio::test]
async fn statement_a05_one_error_lists_all_and_bad_entries_of_files_spoil_themselves_only() -> Result<()> {
    let bench = Bench::new()?;
    let good = || bench.scripted("");
    let servers = McpServers::new()
        .with("one", good()?)
        .with("bad1", server(&json!({"comand": "x"})))
        .with("two", good()?)
        .with("bad2", server(&json!({"url": "http://u:p@h"})))
        .with("three", good()?);
    let found = refused(&bench.options(servers.clone(), LocalOptions::default())).join("\n");
    assert!(found.contains("mcpServers.bad1") && found.contains("mcpServers.bad2"), "{found}");
    assert!(!found.contains("one") || !found.contains("mcpServers.one"), "{found}");

    let entries: Vec<(&str, Value)> =
        servers.iter().map(|(name, one)| (name, Value::Object(one.members().clone()))).collect();
    let file = bench.servers("project/.cursor/mcp.json", &entries)?;
    let local = LocalOptions { setting_sources: vec![SettingSource::Project], ..LocalOptions::default() };
    let agent = generations(&bench.options(McpServers::new(), local))?;
    let generation = run(&agent).await?;
    for name in ["one", "two", "three"] {
        report(&generation, name, "connected").await?;
    }
    for name in ["bad1", "bad2"] {
        let report = report(&generation, name, "failed").await?;
        assert!(report.reason.is_some_and(|reason| reason.contains("configure")), "{name}");
        let told = generation.diagnostics();
        let names_both = |line: &&String| line.contains(&*file.to_string_lossy()) && line.contains(name);
        assert!(told.iter().any(|line| names_both(&line)), "{told:?}");
    }
    agent.close().await;
    Ok(())
}

#[test]
fn statement_a06_one_map_for_both_places() -> Result<()> {
    let bench = Bench::new()?;
    let entry = json!({"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}});
    let remote = json!({"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer t"}});
    let servers = McpServers::new().with("a", server(&entry)).with("b", server(&remote));
    bench.options(servers.clone(), LocalOptions::default()).check()?;
    let mut cloud = AgentOptions::cloud(bench.machine());
    cloud.mcp_servers = servers.clone();
    cloud.check()?;
    let mut expected = vec![entry, remote];
    for (entry, name) in expected.iter_mut().zip(["a", "b"]) {
        entry["name"] = name.into();
    }
    assert_eq!(cloud_servers(&servers)?, expected);
    assert_eq!(cloud_servers(&McpServers::new())?, Vec::<Value>::new());
    Ok(())
}

#[test]
fn statement_a07_a_directory_is_refused_in_the_cloud_before_anything_is_sent() -> Result<()> {
    let bench = Bench::new()?;
    for cwd in ["/tmp", ""] {
        let mut options = AgentOptions::cloud(bench.machine());
        options.mcp_servers = McpServers::new().with("db", McpServer::command("npx").cwd(cwd));
        let error = options.check().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("cannot include cwd") && error.contains("\"db\""), "{error}");
        assert!(
            cloud_servers(&options.mcp_servers).is_err_and(|e| e.to_string().contains("cannot include cwd"))
        );
        let send = SendOptions {
            mcp_servers: ServerChange::Replace(options.mcp_servers.clone()),
            ..SendOptions::default()
        };
        let prompt = Prompt { text: "x".to_owned(), images: Vec::new() };
        let sent = send.check(&AgentOptions::cloud(bench.machine()), &prompt);
        assert!(sent.is_err_and(|error| error.to_string().contains("cannot include cwd")));
        options.mcp_servers = McpServers::new().with("db", McpServer::command("npx"));
        options.check()?;
    }
    Ok(())
}

#[tokio::test]
async fn statement_a08_a_directory_is_a_local_servers_own() -> Result<()> {
    let mut bench = Bench::new()?;
    let mut cloud = AgentOptions::cloud(bench.machine());
    cloud.mcp_servers = McpServers::new().with("web", McpServer::url("https://h/mcp"));
    cloud.check()?;
    let elsewhere = bench.home();
    let servers = McpServers::new().with("a", bench.scripted("")?.cwd(elsewhere.to_string_lossy()));
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let _generation = run(&agent).await?;
    assert_eq!(bench.peer()?.start["cwd"], json!(elsewhere.canonicalize()?));
    agent.close().await;
    Ok(())
}

#[test]
fn statement_a09_two_ways_to_authorize_are_one_too_many() -> Result<()> {
    let bench = Bench::new()?;
    for entry in [
        json!({"url": "https://h", "auth": {"CLIENT_ID": "c"}, "headers": {"authorization": "Bearer x"}}),
        json!({"url": "https://h", "headers": {"X-Key": "a", "x-key": "b"}}),
    ] {
        let options = bench.options(McpServers::new().with("w", server(&entry)), LocalOptions::default());
        let found = refused(&options);
        assert!(found.iter().any(|fault| fault.starts_with("mcpServers.w.")), "{entry}: {found:?}");
    }
    Ok(())
}

#[test]
fn statement_a10_limits_of_the_cloud_are_seen_before_it() -> Result<()> {
    let bench = Bench::new()?;
    let with = |servers: McpServers, variables: &[&str]| {
        let mut options = AgentOptions::cloud(bench.machine());
        options.mcp_servers = servers;
        let env_vars = variables.iter().map(|name| ((*name).to_owned(), Secret::new("v"))).collect();
        options.place = Place::Cloud(Box::new(CloudOptions { env_vars, ..CloudOptions::default() }));
        refused(&options).join("\n")
    };
    let many: McpServers = (0..51).map(|n| (format!("s{n}"), McpServer::url("https://h"))).collect();
    assert!(with(many, &[]).contains("51 servers, at most 50"));
    let twice =
        McpServers::new().with("a", McpServer::url("https://h")).with("a", McpServer::url("https://i"));
    assert!(with(twice, &[]).contains("mcpServers.a: the name is there twice"));
    let cased =
        McpServers::new().with("a", McpServer::url("https://h")).with("A", McpServer::url("https://i"));
    assert!(with(cased, &[]).contains("case only"));
    let user = McpServers::new().with("a", McpServer::url("https://user:s3cr3t@h"));
    let told = with(user, &[]);
    assert!(told.contains("mcpServers.a.url") && !told.contains("s3cr3t"), "{told}");
    assert!(with(McpServers::new(), &["CURSOR_X"]).contains("cloud.envVars.CURSOR_X"));
    assert_eq!(with(McpServers::new(), &["OTHER"]), "");
    Ok(())
}

#[test]
fn statement_a11_sources_are_known_names_and_all_stands_alone() -> Result<()> {
    let bench = Bench::new()?;
    let read = |sources: &str| {
        AgentOptions::from_json(&format!(r#"{{"local":{{"settingSources":{sources}}}}}"#), bench.machine())
    };
    for source in ["project", "user", "team", "mdm", "plugins", "all"] {
        read(&format!("[{source:?}]"))?;
    }
    for wrong in [r#"["users"]"#, r#"["all","project"]"#, r#"["Project"]"#, r#""project""#] {
        let error = read(wrong).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("local.settingSources"), "{wrong}: {error}");
    }
    Ok(())
}

#[test]
fn statement_a12_sources_beside_local_are_told_where_to_go() -> Result<()> {
    let bench = Bench::new()?;
    let error = AgentOptions::from_json(r#"{"settingSources":["project"]}"#, bench.machine());
    let error = error.err().context_text();
    assert!(error.contains("local.settingSources"), "{error}");
    Ok(())
}

/// What an error says.
trait ContextText {
    fn context_text(self) -> String;
}

impl ContextText for Option<AgentError> {
    fn context_text(self) -> String {
        self.map(|error| error.to_string()).unwrap_or_default()
    }
}

#[tokio::test]
async fn statement_a42_without_mcp_no_server_starts_and_no_tool_of_one_is_offered() -> Result<()> {
    let mut bench = Bench::new()?;
    let custom = toolway_agent::CustomTool::new("own", "d", |_| async {
        Ok(toolway_agent::CustomOutput::Text("x".to_owned()))
    });
    for (tools, disallowed) in [(None, vec!["mcp"]), (Some(vec!["read"]), vec![]), (Some(vec![]), vec![])] {
        let words = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let local = LocalOptions {
            tools: tools.map(words),
            disallowed_tools: words(disallowed),
            custom_tools: vec![custom.clone()],
            setting_sources: vec![SettingSource::Project],
            ..LocalOptions::default()
        };
        let servers = McpServers::new().with("a", bench.scripted("")?);
        let agent = generations(&bench.options(servers, local))?;
        let generation = run(&agent).await?;
        assert!(generation.tools().is_empty() && generation.pairs().is_empty());
        assert_eq!(generation.reports()[0].state, "disabled");
        assert!(!bench.hub.has_arrived("server"));
        agent.close().await;
    }
    let local = LocalOptions { disallowed_tools: vec!["bash".to_owned()], ..LocalOptions::default() };
    let found = refused(&bench.options(McpServers::new(), local)).join("\n");
    assert!(found.contains("disallowedTools.0") && found.contains("shell, read"), "{found}");
    Ok(())
}
