//! Owns putting the children of a configuration into a sandbox. It decides nothing about what that closes.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use toolway_proxy::gateway::{ServerConfig, ServerEntry, ServerState, Stage, Target};
use toolway_transport::Platform;
use toolway_transport::command::{FileSystem, Search, resolve};

use crate::error::AgentError;
use crate::options::Machine;
use crate::sandbox::Sandbox;

/// Every entry whose server is a child of ours, in the box; where there is none, refused for that reason.
pub(super) fn boxed(
    entries: Vec<ServerEntry>,
    sandbox: &Result<Sandbox, AgentError>,
    machine: &Machine,
) -> Vec<ServerEntry> {
    let change = |entry: ServerEntry| {
        let plan = entry.plan.and_then(|config| child(config, sandbox, machine));
        ServerEntry { plan, ..entry }
    };
    entries.into_iter().map(change).collect()
}

fn child(
    config: Arc<ServerConfig>,
    sandbox: &Result<Sandbox, AgentError>,
    machine: &Machine,
) -> Result<Arc<ServerConfig>, ServerState> {
    let Target::Child(target) = &config.target else { return Ok(config) };
    let sandbox = sandbox.as_ref().map_err(|error| refused(Stage::Configure, &error.to_string()))?;
    let child = &target.child;
    let cwd = child.cwd.clone().unwrap_or_else(|| machine.cwd().to_owned());
    // Looked up here: what is started is the box, and it would be said of that that it was not found.
    let search = Search {
        path: child.env.get(OsStr::new("PATH")).map(OsString::as_os_str),
        path_ext: None,
        cwd: cwd.as_os_str(),
        home: Some(machine.home().as_os_str()),
        platform: Platform::CURRENT,
    };
    let program: PathBuf = resolve(OsStr::new(&target.command), &search, &FileSystem).map_err(|error| {
        ServerState::Failed { stage: Stage::Resolve, reason: error.to_string(), hint: error.hint() }
    })?;
    let wrapped = sandbox.server_command(program, child.args.clone(), &cwd, machine.helper());
    let (program, args) = wrapped.map_err(|error| refused(Stage::Configure, &error.to_string()))?;
    let mut target = target.clone();
    target.command = program.to_string_lossy().into_owned();
    target.child.args = args;
    Ok(Arc::new(ServerConfig { target: Target::Child(target), ..ServerConfig::clone(&config) }))
}

fn refused(stage: Stage, reason: &str) -> ServerState {
    ServerState::Failed { stage, reason: reason.to_owned(), hint: None }
}

#[cfg(test)]
mod tests {
    use toolway_config::{LoadOptions, Loader, TrustMode};
    use toolway_proxy::gateway::Timeouts;

    use super::*;
    use crate::compose::server_entries;
    use crate::sandbox::{SANDBOX_COMMAND, SandboxConfig};

    fn entries(machine: &Machine) -> Vec<ServerEntry> {
        let inline = serde_json::json!({
            "a": {"command": "sh", "args": ["-c", "true"]},
            "b": {"url": "http://127.0.0.1:1/mcp"},
            "c": {"command": "there-is-no-such-program"},
        });
        let options = LoadOptions {
            sources: Vec::new(),
            files: Vec::new(),
            inline: inline.as_object().unwrap().clone(),
            per_send: serde_json::Map::new(),
            trust: TrustMode::Given,
            team_document: None,
        };
        let resolved = Loader::default().load(&options, machine.environment());
        server_entries(&resolved, machine, Timeouts::default())
    }

    fn machine() -> Machine {
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        Machine::new(vec![path], "/".into()).with_helper(Some("/opt/toolway".into()))
    }

    #[test]
    fn children_are_put_in_the_box_and_remote_servers_are_not() {
        let machine = machine();
        let config = SandboxConfig::default();
        let Ok((sandbox, _)) = Sandbox::close(&config, &["/w".into()], "/t".as_ref(), None) else {
            // There is none here, so there is nothing to put anything into.
            return;
        };
        let entries = boxed(entries(&machine), &Ok(sandbox), &machine);
        let plan = |name: &str| &entries.iter().find(|entry| entry.name == name).unwrap().plan;
        let Target::Child(child) = &plan("a").as_ref().unwrap().target else { panic!("no child") };
        assert_eq!(child.command, "/opt/toolway");
        let args: Vec<&str> = child.child.args.iter().filter_map(|arg| arg.to_str()).collect();
        assert_eq!(args.first().unwrap(), &SANDBOX_COMMAND);
        assert!(args.ends_with(&["-c", "true"]) && args[3].ends_with("/sh"), "{args:?}");
        assert!(matches!(plan("b").as_ref().unwrap().target, Target::Remote(_)));
        let Err(ServerState::Failed { stage: Stage::Resolve, reason, .. }) = plan("c") else {
            panic!("found")
        };
        assert!(reason.contains("there-is-no-such-program"), "{reason}");
    }

    #[test]
    fn without_a_box_no_child_is_started() {
        let machine = machine();
        let none = Err(AgentError::fault("local.sandbox", "there is no sandbox"));
        let entries = boxed(entries(&machine), &none, &machine);
        for entry in &entries {
            match &entry.plan {
                Ok(config) => assert!(matches!(config.target, Target::Remote(_)), "{}", entry.name),
                Err(ServerState::Failed { reason, .. }) => {
                    assert!(reason.contains("there is no sandbox"), "{reason}");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}
