//! A small editor: it starts `toolway acp`, sends messages, and keeps everything that comes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use toolway_testkit::{ModelScript, ModelServer, Rig, SOON};

use crate::TOOLWAY;

/// A private home, a folder to work in, and a model.
pub(crate) struct House {
    pub(crate) rig: Rig,
    pub(crate) model: ModelServer,
}

impl House {
    pub(crate) fn new(script: &Value) -> Result<Self> {
        let rig = Rig::new(TOOLWAY)?;
        std::fs::create_dir(rig.path().join("work"))?;
        Ok(Self { rig, model: ModelServer::start(ModelScript::of(script)?)? })
    }

    /// The folder that sessions work in.
    pub(crate) fn work(&self, name: &str) -> std::path::PathBuf {
        self.rig.path().join("work").join(name)
    }

    /// Words that name the model.
    pub(crate) fn words(&self) -> Vec<String> {
        let base = format!("baseUrl={}", self.model.base_url());
        ["--model", "scripted", "--model-param", &base].map(str::to_owned).to_vec()
    }

    /// An editor that was greeted.
    pub(crate) fn editor(&self, words: &[&str]) -> Result<Editor> {
        self.editor_that_can(words, &json!({}))
    }

    pub(crate) fn editor_that_can(&self, words: &[&str], can: &Value) -> Result<Editor> {
        let words = self.words().into_iter().chain(words.iter().map(|word| (*word).to_owned()));
        self.start(words, can)
    }

    /// An editor before an agent behind the protocol, with this script.
    pub(crate) fn before(&self, script: &Value) -> Result<Editor> {
        let agent = toolway_testkit::toolway_acp_agent()?.to_string_lossy().into_owned();
        let line = shlex::try_join([agent.as_str(), "--script", &script.to_string()])?;
        let words = ["--acp-command", &line, "--deny", "Shell(make *)"];
        self.start(words.map(str::to_owned), &json!({}))
    }

    fn start(&self, words: impl IntoIterator<Item = String>, can: &Value) -> Result<Editor> {
        let mut command = self.rig.command(std::iter::once("acp".to_owned()).chain(words));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().context("no stdout")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut editor = Editor { child, stdin, lines, last: 0, seen: Vec::new() };
        let greeting = editor.ask(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": can, "clientInfo": {"name": "t", "version": "1"}}),
        )?;
        ensure!(greeting["protocolVersion"] == 1, "{greeting}");
        Ok(editor)
    }

    /// The parameters of `session/new` with these servers.
    pub(crate) fn place(&self, servers: &[Value]) -> Value {
        json!({"cwd": self.rig.path().join("work"), "mcpServers": servers})
    }

    /// A server over stdio, as the protocol writes it.
    pub(crate) fn server(&self, name: &str, script: &str) -> Result<Value> {
        let line = self.rig.server_command(name, script)?;
        let words: Vec<String> = line.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let (command, args) = words.split_first().context("no command")?;
        Ok(json!({"name": name, "command": command, "args": args, "env": []}))
    }

    /// Nothing of this test is left.
    pub(crate) fn leave(self) -> Result<()> {
        self.rig.check_leftovers()
    }
}

/// The editor's end of a session over stdio.
pub(crate) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    /// Everything that came and was no answer to a request of ours.
    pub(crate) seen: Vec<Value>,
}

impl Editor {
    pub(crate) fn raw(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("stdin is closed")?;
        Ok(stdin.write_all(format!("{line}\n").as_bytes())?)
    }

    pub(crate) fn tell(&mut self, method: &str, params: &Value) -> Result<()> {
        self.raw(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
    }

    /// Sends a request and does not wait.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.raw(&request.to_string())?;
        Ok(self.last)
    }

    /// The next message for which this holds. What comes before it is kept.
    pub(crate) fn next(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let end = Instant::now() + SOON;
        loop {
            let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) else {
                bail!("{what} does not come: {:#?}", self.seen);
            };
            // Nothing but messages is on stdout.
            let message: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
            ensure!(message["jsonrpc"] == "2.0", "{line}");
            if holds(&message) {
                return Ok(message);
            }
            self.seen.push(message);
        }
    }

    pub(crate) fn answer(&mut self, id: u64) -> Result<Value> {
        self.next("an answer", |message| message["id"] == id && message.get("method").is_none())
    }

    /// The result of a request.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.request(method, params)?;
        let answer = self.answer(id)?;
        ensure!(answer.get("error").is_none(), "{method}: {answer}");
        Ok(answer["result"].clone())
    }

    /// The error of a request: code and text.
    pub(crate) fn refused(&mut self, method: &str, params: &Value) -> Result<(i64, String)> {
        let id = self.request(method, params)?;
        error(&self.answer(id)?)
    }

    /// A new session.
    pub(crate) fn open(&mut self, params: &Value) -> Result<String> {
        let opened = self.ask("session/new", params)?;
        opened["sessionId"].as_str().map(str::to_owned).with_context(|| opened.to_string())
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Result<u64> {
        let blocks = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": session, "prompt": blocks}))
    }

    /// Why a prompt ended.
    pub(crate) fn end(&mut self, prompt: u64) -> Result<String> {
        let answer = self.answer(prompt)?;
        answer["result"]["stopReason"].as_str().map(str::to_owned).with_context(|| answer.to_string())
    }

    /// The agent asks; this is its request.
    pub(crate) fn asked(&mut self, method: &str) -> Result<Value> {
        self.next(method, |message| message["method"] == method)
    }

    pub(crate) fn reply(&mut self, request: &Value, result: &Value) -> Result<()> {
        self.raw(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
    }

    /// Updates of one kind that came, the oldest first.
    pub(crate) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// All text of one kind of chunks.
    pub(crate) fn said(&self, kind: &str) -> String {
        self.updates(kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// Closes stdin; the exit code, and what stood on stderr.
    pub(crate) fn close(mut self) -> Result<(Option<i32>, String)> {
        self.stdin = None;
        self.ended()
    }

    pub(crate) fn ended(mut self) -> Result<(Option<i32>, String)> {
        let mut stderr = self.child.stderr.take().context("no stderr")?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut text)?;
        Ok((self.child.wait()?.code(), text))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn error(answer: &Value) -> Result<(i64, String)> {
    let error = answer.get("error").with_context(|| answer.to_string())?;
    Ok((error["code"].as_i64().context("no code")?, error["message"].as_str().unwrap_or_default().to_owned()))
}
