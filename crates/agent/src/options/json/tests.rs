use super::*;

fn machine() -> Machine {
    Machine::new(vec![("HOME".into(), "/nowhere".into())], std::env::current_dir().unwrap())
}

fn faults(text: &str) -> Vec<String> {
    match AgentOptions::from_json(text, machine()) {
        Err(AgentError::Configuration(faults)) => faults.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_has_its_place() {
    let text = r#"{
        // comments are fine
        "apiKey": "s3cr3t", "name": "n", "mode": "plan",
        "model": {"id": "m", "params": [{"id": "effort", "value": "high"}]},
        "mcpServers": {"db": {"command": "x", "env": {"PW": "s3cr3t"}}},
        "agents": {"a": {"description": "d", "prompt": "p", "model": "inherit", "mcpServers": ["db", {"own": {"url": "http://h"}}]}},
        "tools": ["read", "mcp", "task"], "disallowedTools": ["shell"], "systemPrompt": "s",
        "limits": {"turns": 3, "tokens": 5, "timeMs": 1000, "costUsd": 0.5},
        "local": {"dirs": ["."], "settingSources": ["project", "user"], "trust": "ask",
            "sandboxOptions": {"enabled": true}, "autoReview": true, "permissions": {"allow": ["Read(*)"]},
            "enableAgentRetries": false, "guard": {"maxResponseChars": 2000}, "timeouts": {"callMs": 5},
            "requireServers": true, "serverPatienceMs": 10, "searchAbove": 3, "planReadsOnly": true, "store": "memory"}
    }"#;
    let options = AgentOptions::from_json(text, machine()).unwrap();
    assert!(!format!("{options:?}").contains("s3cr3t"), "{options:?}");
    let model = options.model.unwrap();
    assert_eq!((model.id.as_str(), model.params.len(), options.mode), ("m", 1, Mode::Plan));
    assert_eq!(options.agents["a"].mcp_servers.as_ref().map(Vec::len), Some(2));
    assert_eq!(options.limits.time, Some(Duration::from_secs(1)));
    let Place::Local(local) = options.place else { panic!() };
    assert_eq!((local.setting_sources.len(), local.guard.preview_chars), (2, 800));
    assert_eq!(local.tools.as_deref().map(<[String]>::len), Some(3));
    assert!(local.sandbox.enabled && local.auto_review && local.require_servers && local.plan_reads_only);
    assert_eq!(local.timeouts.call, Some(Duration::from_millis(5)));
}

#[test]
fn what_stands_in_the_wrong_place_is_told_where_to_go() {
    for (text, told) in [
        (
            r#"{"settingSources": ["project"]}"#,
            "settingSources: it means nothing beside the others of an agent: write local.settingSources",
        ),
        (r#"{"envVars": {}}"#, "write cloud.envVars"),
        (r#"{"sandbox": {}}"#, "write local.sandboxOptions"),
        (r#"{"local": {"mcpServers": {}}}"#, "local.mcpServers: it stands beside local"),
        (
            r#"{"local": {"cwd": ["/a", "/b"]}}"#,
            "local.cwd: is one folder, and no array: write the others in local.dirs",
        ),
        (r#"{"local": {"customTools": {}}}"#, "local.customTools: functions and servers of a program"),
        (r#"{"local": {"settingSources": ["all", "user"]}}"#, "local.settingSources"),
        (r#"{"local": {"settingSources": ["users"]}}"#, "no setting source"),
        (r#"{"local": {"store": "disk"}}"#, "local.store"),
        (
            r#"{"mcpServers": [{"name": "x"}]}"#,
            "mcpServers: must be an object of servers by name, and is an array",
        ),
        (r#"{"mcpServers": {"x": "npx"}}"#, "mcpServers.x: must be an object"),
        (r#"{"mcpServers": {"x": {"command": "a"}, "x": {"command": "b"}}}"#, "mcpServers.x"),
        (r#"{"agentId": "x"}"#, "agentId"),
        (r#"{"mode": "fast"}"#, "mode: \"fast\" is none of agent, plan"),
        (r#"{"model": {}}"#, "model.id: is missing"),
        (r#"{"nonsense": 1}"#, "nonsense: is not known here"),
        (r#"{"cloud": {}, "tools": []}"#, "tools: is for agents on this machine"),
        (r#"{"cloud": {}, "local": {"cwd": "/"}}"#, "local.cwd: is for agents on this machine"),
        ("[]", "options: must be an object"),
        ("{", "options"),
    ] {
        let found = faults(text);
        assert!(found.iter().any(|fault| fault.contains(told)), "{text}: {found:?}");
    }
}

#[test]
fn sources_mean_nothing_in_the_cloud_and_do_no_harm() {
    let text =
        r#"{"cloud": {"env": {"type": "pool", "name": "p"}}, "local": {"settingSources": ["project"]}}"#;
    let options = AgentOptions::from_json(text, machine()).unwrap();
    assert!(matches!(options.place, Place::Cloud(_)));
}

#[test]
fn servers_of_one_prompt_are_others_or_none() {
    let change = |text: &str| SendOptions::from_json(text).map(|options| options.mcp_servers);
    assert_eq!(change("{}").unwrap(), ServerChange::Inherit);
    assert_eq!(change(r#"{"mcpServers": "none"}"#).unwrap(), ServerChange::None);
    assert_eq!(change(r#"{"mcpServers": {}}"#).unwrap(), ServerChange::Replace(McpServers::new()));
    assert!(change(r#"{"mcpServers": null}"#).is_err());
    assert!(change(r#"{"onDelta": 1}"#).unwrap_err().to_string().contains("not in JSON"));
    assert!(change(r#"{"force": true}"#).unwrap_err().to_string().contains("local.force"));
    assert!(change(r#"{"local": {}, "cloud": {}}"#).is_err());
}

#[test]
fn a_picture_by_its_address_is_refused() {
    let prompt = Prompt::from_json(r#"{"text": "t", "images": [{"data": "aGk=", "mimeType": "image/png"}]}"#);
    assert_eq!(prompt.unwrap().images.len(), 1);
    assert_eq!(Prompt::from_json("\"hi\"").unwrap().text, "hi");
    let error = Prompt::from_json(r#"{"text": "t", "images": [{"url": "http://x/y.png"}]}"#).unwrap_err();
    assert!(error.to_string().contains("images.0.url"), "{error}");
}
