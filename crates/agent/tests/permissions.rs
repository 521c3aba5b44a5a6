//! Permissions, hooks and texts of chosen sources, as a program has them.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio_util::sync::CancellationToken;
use toolway_agent::{
    ContextSources, Gate, GateOptions, HookFacts, Hooks, McpServerUse, PermissionMode, PermissionRules,
    Sources, ToolUse, Verdict,
};
use toolway_bridge::RawJson;
use toolway_config::{Environment, Platform, SettingSource};

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().context("a path in a folder")?)?;
    Ok(std::fs::write(path, text)?)
}

fn home() -> Result<(tempfile::TempDir, PathBuf)> {
    let dir = tempfile::tempdir()?;
    let home = dir.path().canonicalize()?.join("home");
    std::fs::create_dir_all(home.join("project/.git"))?;
    Ok((dir, home))
}

fn sources(home: &Path, chosen: &[SettingSource]) -> Sources {
    let vars = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let environment = Environment::new(vars, home.join("project"), Platform::Linux);
    let mut sources = Sources::new(environment, home.join("project"), chosen.to_vec());
    sources.environment.managed_dirs = vec![home.join("managed")];
    sources.system_dirs = vec![home.join("managed")];
    sources
}

fn gate(sources: &Sources) -> Gate {
    Gate::new(GateOptions {
        mode: PermissionMode::Unrestricted,
        rules: PermissionRules::load(sources),
        approver: None,
        hooks: Hooks::load(sources, None),
        environment: sources.environment.clone(),
        cwd: sources.cwd.clone(),
        roots: Vec::new(),
    })
}

fn database() -> McpServerUse {
    McpServerUse { name: "db".to_owned(), explicit: true, ..McpServerUse::default() }
}

async fn call(gate: &Gate, tool: &str, input: &str) -> Result<Verdict> {
    let server = database();
    let tool_use = ToolUse {
        call_id: "call-1",
        tool,
        server: Some(&server),
        input: RawJson::new(input.to_owned())?,
        actions: &|_| Vec::new(),
        facts: &HookFacts::default(),
    };
    Ok(gate.before(&tool_use, &CancellationToken::new()).await)
}

#[tokio::test]
async fn a_hook_that_denies_refuses_a_call_of_an_explicit_server() -> Result<()> {
    let (_dir, home) = home()?;
    let command =
        r#"grep -q '"tool_name":"drop"' && echo '{"permission":"deny","agent_message":"not that"}'; true"#;
    let hooks = serde_json::json!({"version": 1, "hooks": {"beforeMCPExecution": [{"command": command}]}});
    write(&home.join("project/.cursor/hooks.json"), &hooks.to_string())?;
    let gate = gate(&sources(&home, &[SettingSource::Project]));
    let Verdict::Refused(text) = call(&gate, "drop", "{}").await? else { bail!("it went") };
    ensure!(text.contains("permission denied") && text.contains("not that"), "{text}");
    ensure!(matches!(call(&gate, "read", "{}").await?, Verdict::Go(_)));
    Ok(())
}

#[tokio::test]
async fn statement_a29_all_brings_plugins_and_what_the_administrator_wants() -> Result<()> {
    let (_dir, home) = home()?;
    let deny =
        r#"{"version": 1, "hooks": {"beforeMCPExecution": [{"command": "exit 2", "matcher": "^drop$"}]}}"#;
    write(&home.join("managed/hooks.json"), deny)?;
    write(&home.join("managed/permissions.json"), r#"{"permissions": {"deny": ["Mcp(db:grant)"]}}"#)?;
    let plugin = home.join(".cursor/plugins/local/p");
    write(&plugin.join("plugin.json"), r#"{"name": "p"}"#)?;
    write(&plugin.join("rules/r.mdc"), "---\nalwaysApply: true\n---\nBe kind.")?;
    write(&plugin.join("agents/a.md"), "---\ndescription: d\n---\nPrompt.")?;
    write(&plugin.join("skills/s/SKILL.md"), "---\ndescription: d\n---\nSkill.")?;
    let chosen = SettingSource::parse_list(["all"]).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    let all = sources(&home, &chosen);
    for (tool, goes) in [("drop", false), ("grant", false), ("read", true)] {
        let verdict = call(&gate(&all), tool, "{}").await?;
        ensure!(matches!(verdict, Verdict::Go(_)) == goes, "{tool}: {verdict:?}");
    }
    let context = ContextSources::load(&all);
    ensure!((context.rules.len(), context.skills.len(), context.subagents.len()) == (1, 1, 1), "{context:?}");
    let some = sources(&home, &[SettingSource::Project, SettingSource::User]);
    ensure!(ContextSources::load(&some).rules.is_empty());
    ensure!(matches!(call(&gate(&some), "drop", "{}").await?, Verdict::Go(_)));
    Ok(())
}

#[tokio::test]
async fn hooks_change_arguments_and_results_of_servers() -> Result<()> {
    let (_dir, home) = home()?;
    let hooks = serde_json::json!({"version": 1, "hooks": {
        "preToolUse": [{"command": r#"echo '{"updated_input":{"table":"copy"}}'"#, "matcher": "MCP:"}],
        "postToolUse": [{"command": r#"echo '{"updated_mcp_tool_output":"hidden"}'"#, "matcher": "MCP:"}]
    }});
    write(&home.join("project/.cursor/hooks.json"), &hooks.to_string())?;
    let gate = gate(&sources(&home, &[SettingSource::Project]));
    let Verdict::Go(input) = call(&gate, "read", r#"{"table": "real"}"#).await? else {
        bail!("it was refused")
    };
    ensure!(input.text() == r#"{"table":"copy"}"#, "{}", input.text());
    let server = database();
    let tool_use = ToolUse {
        call_id: "call-1",
        tool: "read",
        server: Some(&server),
        input: input.clone(),
        actions: &|_| Vec::new(),
        facts: &HookFacts::default(),
    };
    let result = RawJson::new(r#"{"content": [{"type": "text", "text": "secret"}]}"#)?;
    let cancel = CancellationToken::new();
    let after = gate.after(&tool_use, &input, &result, Duration::from_millis(3), &cancel).await;
    let shown = after.result.context("another result")?;
    ensure!(shown.text().contains("hidden") && !shown.text().contains("secret"), "{}", shown.text());
    Ok(())
}
