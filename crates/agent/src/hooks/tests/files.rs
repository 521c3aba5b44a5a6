//! Which hooks are read, and what is wrong with them.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use SettingSource::{Mdm, Plugins, Project, User};

#[test]
fn only_files_of_the_chosen_sources_are_read_the_administrators_first() {
    let machine = Machine::new();
    let one =
        |command: &str| json!({"version": 1, "hooks": {"preToolUse": [{"command": command}]}}).to_string();
    machine.write("project/.cursor/hooks.json", &one("project"));
    machine.write(".cursor/hooks.json", &one("user"));
    machine.write("managed/hooks.json", &one("mdm"));
    machine.write(".cursor/plugins/local/p/plugin.json", r#"{"name": "p"}"#);
    machine.write(".cursor/plugins/local/p/hooks/hooks.json", &one("plugin"));
    let commands = |chosen: &[SettingSource]| -> Vec<String> {
        machine.load(chosen).all.iter().map(|hook| hook.command.clone().unwrap()).collect()
    };
    assert!(commands(&[]).is_empty());
    assert_eq!(commands(&[User]), ["user"]);
    assert_eq!(commands(&[Plugins]), ["plugin"]);
    assert_eq!(commands(&SettingSource::ALL), ["mdm", "project", "user", "plugin"]);
    let mut sources = machine.sources(&[Project]);
    sources.trust_project = false;
    let hooks = Hooks::load(&sources, None);
    assert!(hooks.is_empty() && hooks.diagnostics()[0].to_string().contains("trusted"));
    let folders: Vec<PathBuf> =
        machine.load(&[Project, User]).all.iter().map(|hook| hook.cwd.clone()).collect();
    assert_eq!(folders, [machine.project.clone(), machine.home.join(".cursor")]);
}

#[test]
fn what_is_not_run_is_told() {
    let machine = Machine::new();
    machine.hooks(&json!({
        "beforeShellExecution": [{"command": "x"}],
        "preToolUse": [
            {"command": "good", "matcher": "Shell|MCP:.*", "timeout": 1.5},
            {"command": ""},
            {"type": "prompt", "prompt": "is it good?"},
            {"command": "x", "matcher": "("},
            {"command": "x", "timeout": "soon"},
            "x"
        ],
        "postToolUse": {"command": "x"},
    }));
    let hooks = machine.project_hooks();
    assert_eq!(hooks.all.len(), 1);
    assert_eq!(hooks.all[0].timeout, std::time::Duration::from_millis(1500));
    let told: Vec<String> = hooks.diagnostics().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 7, "{told:#?}");
    assert!(told.iter().all(|text| text.contains("hooks.json:1:")), "{told:#?}");
    assert!(told[0].contains("beforeShellExecution"), "{told:#?}");
}

#[tokio::test]
async fn a_broken_hook_that_fails_closed_lets_nothing_through() {
    let machine = Machine::new();
    machine.hook("preToolUse", &json!({"type": "prompt", "failClosed": true}));
    let call = Call::of_tool("{}");
    let before = machine.project_hooks().before_tool(call.call(), &CancellationToken::new()).await;
    assert!(before.deny.unwrap().contains("must agree"));
    // So does every file of the administrator's that cannot be understood.
    for bad in ["{", "[]", r#"{"version": 1}"#, r#"{"hooks": []}"#, r#"{"hooks": {"preToolUse": 7}}"#] {
        machine.write("managed/hooks.json", bad);
        let hooks = machine.load(&[Mdm]);
        assert!(!hooks.diagnostics().is_empty(), "{bad}");
        let before = hooks.before_tool(call.call(), &CancellationToken::new()).await;
        assert!(before.deny.is_some(), "{bad}");
    }
    machine.write("project/.cursor/hooks.json", "{");
    let hooks = machine.project_hooks();
    assert!(hooks.is_empty() && hooks.diagnostics().len() == 1);
}

#[test]
fn statement_a36_a_plugin_names_no_hooks_outside_of_itself() {
    for named in
        ["../hooks.json", "/etc/hooks.json", "a/../../hooks.json", "https://x/hooks.json", "out.json"]
    {
        let machine = Machine::new();
        let hooks = r#"{"version": 1, "hooks": {"preToolUse": [{"command": "evil"}]}}"#;
        machine.write(".cursor/plugins/hooks.json", hooks);
        machine.write(".cursor/plugins/local/hooks.json", hooks);
        machine
            .write(".cursor/plugins/local/p/plugin.json", &json!({"name": "p", "hooks": named}).to_string());
        let outside = machine.write("outside.json", hooks);
        std::os::unix::fs::symlink(outside, machine.home.join(".cursor/plugins/local/p/out.json")).unwrap();
        let loaded = machine.load(&[Plugins]);
        assert!(loaded.is_empty(), "{named}");
        let told = loaded.diagnostics()[0].to_string();
        assert!(told.contains("plugin.json:1") && told.contains("relative"), "{named}: {told}");
    }
}
