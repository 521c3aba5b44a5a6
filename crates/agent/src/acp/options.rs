//! Owns which agent is started and how, as types and as JSON. It starts nothing.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use toolway_secret::Secret;

use super::preset::AcpPreset;
use crate::error::Fault;

/// An agent of the Agent Client Protocol. In JSON it is the name of a preset, or
/// `{preset?, command?, args?, env?, authMethod?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct AcpOptions {
    /// The preset that it was made from, for advice.
    pub preset: Option<&'static AcpPreset>,
    /// The program: a path, or a name that is searched in `PATH`.
    pub command: String,
    /// Its arguments. Secrets do not belong here: other users of the machine can read them.
    pub args: Vec<String>,
    /// Variables beside those that every child process gets.
    pub env: Vec<(String, Secret)>,
    /// The way to sign in, of those that the agent offers, to be used before a session is opened.
    pub auth_method: Option<String>,
    /// How long it may take.
    pub timeouts: AcpTimeouts,
}

/// How long an agent may take. When a time is over the agent's process is ended, and the error says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcpTimeouts {
    /// To answer `initialize` and `authenticate`.
    pub start: Duration,
    /// To open or load a session, with its servers, and to set its model and mode.
    pub session: Duration,
    /// To end a prompt after `session/cancel`.
    pub cancel: Duration,
}

impl Default for AcpTimeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            session: Duration::from_secs(120),
            cancel: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for AcpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { preset, command, args, env, auth_method, timeouts } = self;
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("AcpOptions")
            .field("preset", &preset.map(|preset| preset.name))
            .field("command", command)
            .field("args", &args.len())
            .field("env", &names)
            .field("auth_method", auth_method)
            .field("timeouts", timeouts)
            .finish()
    }
}

impl AcpOptions {
    /// This program, with no arguments.
    pub fn command(command: impl Into<String>) -> Self {
        Self {
            preset: None,
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            auth_method: None,
            timeouts: AcpTimeouts::default(),
        }
    }

    /// A known agent.
    pub fn preset(preset: &'static AcpPreset) -> Self {
        let args = preset.args.iter().map(|arg| (*arg).to_owned()).collect();
        Self { preset: Some(preset), args, ..Self::command(preset.command) }
    }

    /// For people: the preset's name, else the command.
    pub fn title(&self) -> &str {
        self.preset.map_or(&self.command, |preset| preset.name)
    }

    /// Reads the member `acp` of an agent's options.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn from_json(value: &Value) -> Result<Self, Vec<Fault>> {
        match value {
            Value::String(name) => named(name).map_err(|fault| vec![fault]),
            Value::Object(members) => from_members(members),
            _ => Err(vec![fault("acp", "is a preset's name, or an object with a command")]),
        }
    }
}

fn fault(field: &str, message: impl Into<String>) -> Fault {
    Fault { subject: None, field: field.to_owned(), message: message.into() }
}

fn named(name: &str) -> Result<AcpOptions, Fault> {
    AcpPreset::named(name).map(AcpOptions::preset).ok_or_else(|| {
        let names: Vec<&str> = AcpPreset::all().iter().map(|preset| preset.name).collect();
        let known = names.join(", ");
        fault(
            "acp",
            format!("{name:?} is no preset ({known}); another program is given as {{\"command\": ...}}"),
        )
    })
}

fn from_members(members: &serde_json::Map<String, Value>) -> Result<AcpOptions, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut options = AcpOptions::command("");
    match members.get("preset") {
        None => {}
        Some(Value::String(name)) => match named(name) {
            Ok(preset) => options = preset,
            Err(fault) => faults.push(Fault { field: "acp.preset".to_owned(), ..fault }),
        },
        Some(_) => faults.push(fault("acp.preset", "is a text")),
    }
    for (key, value) in members {
        let field = format!("acp.{key}");
        match (key.as_str(), value) {
            ("preset", _) => {}
            ("command", Value::String(command)) if !command.trim().is_empty() => {
                options.command.clone_from(command);
            }
            ("command", _) => faults.push(fault(&field, "is the program's name or path")),
            ("args", Value::Array(list)) => match list.iter().map(text).collect() {
                Some(args) => options.args = args,
                None => faults.push(fault(&field, "is a list of texts")),
            },
            ("args", _) => faults.push(fault(&field, "is a list of texts")),
            ("env", Value::Object(variables)) => {
                for (name, value) in variables {
                    match variable(name, value) {
                        Ok(variable) => options.env.push(variable),
                        Err(why) => faults.push(fault(&format!("acp.env.{name}"), why)),
                    }
                }
            }
            ("env", _) => faults.push(fault(&field, "is an object of texts")),
            ("authMethod", Value::String(method)) => options.auth_method = Some(method.clone()),
            ("authMethod", _) => faults.push(fault(&field, "is a text")),
            _ => faults.push(fault(&field, "is not known: preset, command, args, env, authMethod")),
        }
    }
    if options.command.is_empty() && faults.is_empty() {
        faults.push(fault("acp.command", "is missing: give a command or a preset"));
    }
    if faults.is_empty() { Ok(options) } else { Err(faults) }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.contains('\0')).map(str::to_owned)
}

fn variable(name: &str, value: &Value) -> Result<(String, Secret), &'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("is no name of a variable");
    }
    let value = text(value).ok_or("is a text")?;
    Ok((name.to_owned(), Secret::new(value)))
}

/// What the engine is made with beside the agent's own options.
#[derive(Clone)]
pub struct AcpSurroundings {
    /// The machine's variables, of which a child gets a few.
    pub variables: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// The folders that it may work in beside the agent's own.
    pub roots: Vec<PathBuf>,
    /// The `toolway` binary, for agents that take no servers over HTTP. `None`: such agents get no servers, and the run
    /// fails with advice.
    pub shim: Option<PathBuf>,
    /// The binary that supervises children, see `toolway_transport::ChildConfig::supervise`.
    pub supervise: Option<PathBuf>,
}

impl fmt::Debug for AcpSurroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variables, roots, shim, supervise } = self;
        f.debug_struct("AcpSurroundings")
            .field("variables", &variables.len())
            .field("roots", roots)
            .field("shim", shim)
            .field("supervise", supervise)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_preset_is_a_name_and_may_be_changed() {
        let options = AcpOptions::from_json(&json!("opencode")).unwrap();
        assert_eq!((options.command.as_str(), options.args.as_slice()), ("opencode", &["acp".to_owned()][..]));
        let changed = json!({"preset": "gemini", "command": "/opt/gemini", "env": {"GEMINI_API_KEY": "secret-key"}});
        let options = AcpOptions::from_json(&changed).unwrap();
        assert_eq!((options.command.as_str(), options.args.len()), ("/opt/gemini", 1));
        assert!(!format!("{options:?}").contains("secret-key"));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let faults = AcpOptions::from_json(&json!({"args": [1], "env": {"A=": "x", "B": 2}, "cwd": "/"})).unwrap_err();
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["acp.args", "acp.env.A=", "acp.env.B", "acp.cwd"]);
        assert_eq!(AcpOptions::from_json(&json!({})).unwrap_err()[0].field, "acp.command");
        let unknown = AcpOptions::from_json(&json!("nobody")).unwrap_err();
        assert!(unknown[0].message.contains("opencode"), "{unknown:?}");
    }
}
