//! A home for agents, with a store, a scripted model and servers that are processes of their own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use toolway_agent::{
    Agent, AgentOptions, LocalOptions, Machine, McpServer, ModelChoice, Place as Where, Run, RunState,
    RunStatus, SendOptions, StoreChoice,
};
use toolway_secret::Secret;
use toolway_testkit::{ModelScript, ModelServer};

use crate::args::Args;
use crate::process::line;

/// The longest that one run may take.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// A folder that is removed at the end.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let tmp = args.text("--tmp").map_or_else(std::env::temp_dir, Into::into);
        std::fs::create_dir_all(&tmp)?;
        let dir = tempfile::Builder::new().prefix("agent-").tempdir_in(tmp)?;
        for folder in ["home", "work"] {
            std::fs::create_dir(dir.path().join(folder))?;
        }
        Ok(Self { dir })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// An agent with this model, its store in the home.
    pub(crate) fn options(&self, model: &str) -> Result<AgentOptions> {
        self.options_in(model, StoreChoice::Default)
    }

    pub(crate) fn options_in(&self, model: &str, store: StoreChoice) -> Result<AgentOptions> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let variables = vec![
            ("HOME".into(), self.path().join("home").into_os_string()),
            ("PATH".into(), path),
            ("OPENAI_BASE_URL".into(), model.into()),
        ];
        let machine = Machine::new(variables, self.path().join("work"))
            .with_managed_dirs(Vec::new())
            .with_helper(Some(std::env::current_exe()?));
        let mut options = AgentOptions::local(machine);
        options.api_key = Some(Secret::new("no-key-at-all"));
        options.model = Some(ModelChoice { id: "gpt-4o".into(), params: Vec::new() });
        options.place = Where::Local(Box::new(LocalOptions { store, ..LocalOptions::default() }));
        Ok(options)
    }
}

/// The harness's upstream, as this program.
pub(crate) fn upstream(name: &str, more: &[&str]) -> Result<McpServer> {
    let program = std::env::current_exe()?;
    let program = program.to_str().context("a program whose path is no text")?;
    let words = ["server", "--transport", "stdio", "--name", name];
    Ok(McpServer::command(program).args(words.iter().chain(more).copied()).required())
}

/// Sends a prompt and waits for its end, which must be a good one.
pub(crate) async fn ran(agent: &Agent, prompt: &str) -> Result<RunState> {
    ended(&agent.send(prompt, SendOptions::default()).await?).await
}

pub(crate) async fn ended(run: &Run) -> Result<RunState> {
    let state = tokio::time::timeout(LIMIT, run.wait()).await.context("the run does not end")??;
    ensure!(state.status == RunStatus::Finished, "the run ended as {state:?}");
    Ok(state)
}

/// A model in a process of its own, so that nothing of it counts.
pub(crate) struct Model {
    child: Child,
    pub(crate) url: String,
}

impl Model {
    pub(crate) fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("model").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut url));
        let model = Self { child, url: url.trim().to_owned() };
        read.context("no output")??;
        ensure!(model.url.starts_with("http"), "the model says {:?}", model.url);
        Ok(model)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Its input ends, and with it the model.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

/// The model: a prompt with the word `echo` has it call the tool `one__echo` once; everything else is answered.
pub(crate) fn serve_model() -> Result<()> {
    let call = json!({"calls": [{"name": "one__echo", "arguments": {"text": "hello"}}]});
    let script = json!({
        "rules": [{"when": {"user": "echo"}, "reply": call}],
        "otherwise": {"text": "Well done."},
    });
    let model = ModelServer::start(ModelScript::of(&script)?)?;
    line(&mut std::io::stdout(), &model.base_url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
