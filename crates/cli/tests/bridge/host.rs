//! The host of these tests: a script on the stdin and stdout of the real binary.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolway_testkit::{Client, SOON};

use crate::agent::Agent;

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A host, with a private home.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) client: Client,
    home: TempDir,
    last: u64,
}

/// A run that was opened.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) opened: Value,
}

/// A private home.
pub(crate) fn home() -> Result<TempDir> {
    let home = tempfile::Builder::new().prefix("toolway-host-").tempdir()?;
    for name in ["tmp", ".pi/agent", ".config/toolway"] {
        std::fs::create_dir_all(home.path().join(name))?;
    }
    Ok(home)
}

/// The command, in that home.
pub(crate) fn command(home: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(TOOLWAY);
    command.arg("bridge").args(options).env_clear().current_dir(home);
    command.env("HOME", home).env("TMPDIR", home.join("tmp")).env("XDG_CONFIG_HOME", home.join(".config"));
    command
}

impl Host {
    /// Starts the bridge and says hello, in this profile.
    pub(crate) fn start(profile: &str) -> Result<Self> {
        Self::start_with(home()?, profile, json!({}))
    }

    /// The same in that home, with more members of `initialize`.
    pub(crate) fn start_with(home: TempDir, profile: &str, more: Value) -> Result<Self> {
        let mut host = Self::silent(home)?;
        let mut params = json!({"protocolVersion": 1, "host": {"name": "test"}, "profile": profile});
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        host.ask("initialize", params)?;
        Ok(host)
    }

    /// A bridge to which nobody has spoken.
    pub(crate) fn silent(home: TempDir) -> Result<Self> {
        Self::silent_with(home, &[])
    }

    /// The same with more options.
    pub(crate) fn silent_with(home: TempDir, options: &[&str]) -> Result<Self> {
        let options = [&["--log", "debug"], options].concat();
        let client = Client::start(&mut command(home.path(), &options))?;
        Ok(Self { client, home, last: 0 })
    }

    /// A bridge with an agent behind it, and these variables, to which was said hello.
    pub(crate) fn with_agent_behind(options: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        let home = home()?;
        let mut command = command(home.path(), options);
        command.envs(variables.iter().copied());
        let mut host = Self { client: Client::start(&mut command)?, home, last: 0 };
        let hello = json!({"protocolVersion": 1, "host": {"name": "test"}, "profile": "pi"});
        let hello = host.ask("initialize", hello)?;
        ensure!(hello["turns"] == true, "{hello}");
        Ok(host)
    }

    /// Starts a turn and reads it to its end.
    pub(crate) fn turn(&mut self, messages: &[Value], model: &str) -> Result<Value> {
        let cwd = self.home().to_path_buf();
        let names = ["read", "bash", "cursor"];
        let params = json!({"messages": messages, "model": model, "cwd": cwd, "contextTools": names, "wrappers": names});
        let turn = self.ask("turn/start", params)?["turn"].clone();
        loop {
            let told = self.told("turn/event")?;
            ensure!(told["turn"] == turn, "{told}");
            if told["event"]["kind"] == "end" {
                return Ok(told["event"].clone());
            }
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Sends a request; gives its id.
    #[expect(clippy::needless_pass_by_value, reason = "what is sent is written where it is sent")]
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Result<u64> {
        self.last += 1;
        self.client.send(
            &json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).to_string(),
        )?;
        Ok(self.last)
    }

    /// Sends a request and waits for its response.
    pub(crate) fn respond(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.send(method, params)?;
        self.response(id)
    }

    pub(crate) fn response(&mut self, id: u64) -> Result<Value> {
        Ok(serde_json::from_slice(&self.client.answer(&id.to_string())?)?)
    }

    /// Sends a request and waits for its result.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let response = self.respond(method, params)?;
        Ok(response.get("result").with_context(|| format!("{method}: {response}"))?.clone())
    }

    /// Sends a request and waits for its error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Result<Value> {
        let response = self.respond(method, params)?;
        Ok(response.get("error").with_context(|| format!("{method}: {response}"))?.clone())
    }

    /// The params of the next notification of this method.
    pub(crate) fn told(&mut self, method: &str) -> Result<Value> {
        let line = self.client.line_that(SOON, method, |line| is_notification(line, method))?;
        let message: Value = serde_json::from_slice(&line)?;
        Ok(message["params"].clone())
    }

    /// The next call.
    pub(crate) fn call(&mut self) -> Result<Value> {
        let params = self.told("calls/started")?;
        ensure!(params["calls"].as_array().is_some_and(|calls| calls.len() == 1), "{params}");
        Ok(params["calls"][0].clone())
    }

    /// Declares tools of these names in `main`.
    pub(crate) fn declare(&mut self, names: &[&str]) -> Result<Value> {
        let tools: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "description": "A tool."})).collect();
        self.ask("tools/declare", json!({"tools": tools}))
    }

    /// Opens a run.
    pub(crate) fn open(&mut self, params: Value) -> Result<Run> {
        let opened = self.ask("run/open", params)?;
        let text = |value: &Value| {
            Ok::<_, anyhow::Error>(value.as_str().with_context(|| opened.to_string())?.to_owned())
        };
        Ok(Run { id: text(&opened["run"])?, url: text(&opened["server"]["url"])?, opened: opened.clone() })
    }

    /// Declares the tools, opens a run, and connects an agent.
    pub(crate) fn with_agent(&mut self, names: &[&str]) -> Result<(Run, Agent)> {
        self.declare(names)?;
        let run = self.open(json!({}))?;
        let agent = Agent::connect(&run.url)?;
        Ok((run, agent))
    }

    /// Answers a call with a text.
    pub(crate) fn answer(&mut self, call: &Value, text: &str) -> Result<bool> {
        let content = json!([{"type": "text", "text": text}]);
        let settled = self.ask("call/result", json!({"call": call["call"], "content": content}))?;
        Ok(settled["settled"] == true)
    }

    /// Asks for the end and waits for it.
    pub(crate) fn shut_down(&mut self) -> Result<ExitStatus> {
        self.ask("shutdown", json!({}))?;
        self.told("bridge/closing")?;
        self.client.wait_exit(SOON)
    }

    pub(crate) fn wait_exit(&mut self) -> Result<ExitStatus> {
        self.client.wait_exit(Duration::from_secs(10))
    }
}

/// The line is a notification of this method.
pub(crate) fn is_notification(line: &[u8], method: &str) -> bool {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    message.get("id").is_none() && message["method"] == method
}
