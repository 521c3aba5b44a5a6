//! Tests of hooks: files, answers, failures, processes.
#![cfg(unix)]

mod files;
mod runs;

use std::collections::BTreeMap;
use std::path::PathBuf;

use toolway_bridge::RawJson;
use toolway_config::{Environment, Platform, SettingSource};

use super::{HookCall, HookFacts, Hooks, McpServerUse};
use crate::sources::Sources;

/// A home, a project in it, and a folder of the administrator's.
struct Machine {
    _dir: tempfile::TempDir,
    home: PathBuf,
    project: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        let project = home.join("project");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        std::fs::create_dir_all(home.join(".cursor")).unwrap();
        Self { _dir: dir, home, project }
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// One hook in the project's file.
    fn hook(&self, event: &str, entry: &serde_json::Value) {
        self.hooks(&serde_json::json!({ event: [entry] }));
    }

    fn hooks(&self, hooks: &serde_json::Value) {
        let text = serde_json::json!({"version": 1, "hooks": hooks}).to_string();
        self.write("project/.cursor/hooks.json", &text);
    }

    fn sources(&self, chosen: &[SettingSource]) -> Sources {
        let vars = BTreeMap::from([
            ("HOME".to_owned(), self.home.display().to_string()),
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("SERVICE_TOKEN".to_owned(), "hunter2-is-a-secret".to_owned()),
        ]);
        let environment = Environment::new(vars, self.project.clone(), Platform::Linux);
        let mut sources = Sources::new(environment, self.project.clone(), chosen.to_vec());
        sources.system_dirs = vec![self.home.join("managed")];
        sources
    }

    fn load(&self, chosen: &[SettingSource]) -> Hooks {
        Hooks::load(&self.sources(chosen), None)
    }

    fn project_hooks(&self) -> Hooks {
        self.load(&[SettingSource::Project])
    }
}

/// A call of a tool, at a server or built in.
struct Call {
    facts: HookFacts,
    tool: &'static str,
    server: Option<McpServerUse>,
    input: RawJson,
}

impl Call {
    fn of_server(input: &str) -> Self {
        let server = McpServerUse {
            name: "db".to_owned(),
            explicit: true,
            command: Some("npx db-server".to_owned()),
            url: None,
        };
        Self { server: Some(server), tool: "query", ..Self::of_tool(input) }
    }

    fn of_tool(input: &str) -> Self {
        let facts = HookFacts {
            conversation_id: "agent-1".to_owned(),
            generation_id: "run-1".to_owned(),
            model: "m".to_owned(),
            cwd: "/w".into(),
            roots: vec!["/w".into()],
        };
        Self { facts, tool: "shell", server: None, input: RawJson::new(input.to_owned()).unwrap() }
    }

    fn call(&self) -> HookCall<'_> {
        HookCall {
            facts: &self.facts,
            call_id: "call-1",
            tool: self.tool,
            server: self.server.as_ref(),
            input: &self.input,
        }
    }
}
