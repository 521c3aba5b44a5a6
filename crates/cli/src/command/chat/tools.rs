//! Owns the chat's own tools: what the agent is told of them, and their running. Knows no turn.

mod clipboard;
mod editor;
mod todo;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolway_agent::Question;
use toolway_bridge::{HostResult, HostTool, Provenance, RawJson};

use super::super::person::Asker;
use super::config::{ChatConfig, CommandTool};
use super::process::{self, STOPPED};
use crate::compose::Environment;

/// The names that are always there.
pub(super) const OWN: [&str; 4] = ["todo", "ask", "clipboard", "open_in_editor"];
/// How long a declared command may take, where its declaration says nothing.
const TIME: Duration = Duration::from_mins(2);

/// The tools, and what they need.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) config: ChatConfig,
    pub(super) asker: Asker,
    pub(super) own: Environment,
    pub(super) cwd: PathBuf,
    /// A person sits at a terminal.
    pub(super) asks: bool,
    todos: Mutex<Vec<todo::Todo>>,
}

impl Tools {
    pub(super) fn new(config: ChatConfig, asker: Asker, own: Environment, cwd: PathBuf, asks: bool) -> Self {
        Self { config, asker, own, cwd, asks, todos: Mutex::default() }
    }

    /// What the agent is told of all of them.
    pub(super) fn definitions(&self) -> Vec<HostTool> {
        let commands = self.config.commands.iter().map(|tool| {
            let schema = tool.parameters.clone().unwrap_or_else(|| {
                Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), json!({}))])
            });
            definition(&tool.name, &tool.description, &Value::Object(schema), "chat.json")
        });
        own_definitions().into_iter().chain(commands).collect()
    }

    /// The names of all of them.
    pub(super) fn names(&self) -> Vec<String> {
        let commands = self.config.commands.iter().map(|tool| tool.name.clone());
        OWN.map(str::to_owned).into_iter().chain(commands).collect()
    }

    /// Whether that tool has to do with the person at the terminal.
    pub(super) fn asks(&self, name: &str) -> bool {
        let confirms = |tool: &CommandTool| tool.name == name && tool.confirm;
        matches!(name, "ask" | "clipboard" | "open_in_editor") || self.config.commands.iter().any(confirms)
    }

    /// Runs one. An error is for the agent.
    pub(super) async fn run(
        &self,
        name: &str,
        arguments: &RawJson,
        cancel: &CancellationToken,
    ) -> HostResult {
        let tree = arguments.tree();
        let empty = Map::new();
        let args = tree.as_object().unwrap_or(&empty);
        let done = match name {
            "todo" => self.todo(args),
            "ask" => unless_stopped(cancel, self.ask(args)).await.flatten(),
            "clipboard" => clipboard::run(self, args, cancel).await,
            "open_in_editor" => editor::run(self, args, cancel).await,
            name => match self.config.commands.iter().find(|tool| tool.name == name) {
                Some(tool) => self.command(tool, args, cancel).await,
                None => Err(format!("there is no tool {name:?} here")),
            },
        };
        match done {
            Ok(text) => HostResult::text(&text),
            Err(reason) => HostResult::error(&reason),
        }
    }

    fn todo(&self, args: &Map<String, Value>) -> Result<String, String> {
        let mut todos = self.todos.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = args.get("todos") {
            *todos = todo::read(list)?;
        }
        Ok(todo::shown(&todos))
    }

    async fn ask(&self, args: &Map<String, Value>) -> Result<String, String> {
        let options = args.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let question = Question {
            text: required(args, "question")?.to_owned(),
            options: options.iter().filter_map(|option| Some(option.as_str()?.to_owned())).collect(),
            several: args.get("several").and_then(Value::as_bool).unwrap_or(false),
        };
        let answers = self.asker.answers(&question).await?;
        if answers.iter().all(|answer| answer.trim().is_empty()) {
            return Ok("The user gave no answer.".to_owned());
        }
        Ok(answers.join("\n"))
    }

    async fn command(
        &self,
        tool: &CommandTool,
        values: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let args = tool.fill(values)?;
        if tool.confirm {
            let words = std::iter::once(&tool.command).chain(&args);
            let line: Vec<String> = words.map(|word| crate::render::quoted(word, cfg!(windows))).collect();
            let question = format!("\n{} wants to run {}", tool.name, line.join(" "));
            if !unless_stopped(cancel, self.asker.confirms(&question)).await? {
                return Err("the user did not allow it".to_owned());
            }
        }
        let cwd = tool.cwd.as_ref().map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd));
        let time = tool.timeout_ms.map_or(TIME, Duration::from_millis);
        let ran = process::run(&tool.command, &args, &cwd, None, time, cancel).await?;
        let mut text = ran.out;
        if !ran.err.is_empty() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&ran.err);
        }
        if ran.timed_out {
            return Err(format!("{text}\n{} was ended after {} ms", tool.command, time.as_millis()));
        }
        if !ran.status.success() {
            return Err(format!("{text}\n{} ended with {}", tool.command, ran.status)
                .trim_start()
                .to_owned());
        }
        Ok(if text.is_empty() { "(no output)".to_owned() } else { text })
    }
}

/// The work, unless it is stopped. For what can be left at any moment; what has begun something ends it itself.
async fn unless_stopped<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(STOPPED.to_owned()),
        done = work => Ok(done),
    }
}

fn required<'a>(args: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let text = args.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| format!("argument `{name}` is missing, or no text"))
}

fn definition(name: &str, description: &str, schema: &Value, source: &str) -> HostTool {
    HostTool {
        name: name.to_owned(),
        description: description.to_owned(),
        guidelines: Vec::new(),
        parameters: RawJson::of(schema),
        provenance: Provenance { source: source.to_owned(), path: None, scope: None },
    }
}

fn own_definitions() -> Vec<HostTool> {
    let status = json!({"type": "string", "enum": ["pending", "in_progress", "completed"]});
    let item = json!({"type": "object", "properties": {"content": {"type": "string"}, "status": status}, "required": ["content"]});
    let text = |about: &str| json!({"type": "string", "description": about});
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let of = |name: &str, about: &str, schema: Value| definition(name, about, &schema, "chat");
    vec![
        of(
            "todo",
            "The list of tasks that the user sees. With `todos` it is replaced by these; without, it is shown.",
            object(json!({"todos": {"type": "array", "items": item}}), json!([])),
        ),
        of(
            "ask",
            "Asks the user, and waits for the answer. For what only the user can decide.",
            object(
                json!({
                    "question": text("The question"),
                    "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from"},
                    "several": {"type": "boolean", "description": "More than one may be chosen"},
                }),
                json!(["question"]),
            ),
        ),
        of(
            "clipboard",
            "Puts a text on the user's clipboard, or reads what is on it; to read it the user is asked.",
            object(
                json!({
                    "action": {"type": "string", "enum": ["copy", "paste"]},
                    "text": text("With copy: what is put there"),
                }),
                json!(["action"]),
            ),
        ),
        of(
            "open_in_editor",
            "Opens a file in the user's editor and waits until it is closed. Says whether the user changed it.",
            object(
                json!({"path": text("The file"), "line": {"type": "integer", "description": "Where to begin"}}),
                json!(["path"]),
            ),
        ),
    ]
}
