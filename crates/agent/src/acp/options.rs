//! Owns which agent is started and how, and what the engine is made with beside it. It starts nothing.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toolway_secret::Secret;

use super::preset::AcpPreset;
use crate::error::{AgentError, Fault};
use crate::options::{AcpOptions, AgentOptions, Machine};
use crate::policy::Gate;

/// How long the end of a process may take.
const PROCESS_END: Duration = Duration::from_secs(5);

/// An agent of the Agent Client Protocol, ready to be started. `Debug` shows no values.
#[derive(Clone)]
pub struct AcpCommand {
    /// The preset that it was made from, for advice.
    pub preset: Option<&'static AcpPreset>,
    /// The program: a path, or a name that is searched in `PATH`.
    pub program: String,
    /// Its arguments. Secrets do not belong here: other users of the machine can read them.
    pub args: Vec<String>,
    /// Variables beside those that every child process gets.
    pub env: Vec<(String, Secret)>,
    /// The way to sign in that it is asked to take, by its id.
    pub authenticate: Option<String>,
    /// How long it may take.
    pub timeouts: AcpTimeouts,
}

/// How long an agent may take. When a time is over the agent's process is ended, and the error says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcpTimeouts {
    /// To answer `initialize`.
    pub start: Duration,
    /// To sign in: a person may have to do it in a browser.
    pub sign_in: Duration,
    /// To open or load a session with its servers, and to set its model and mode.
    pub session: Duration,
    /// To end a prompt after `session/cancel`.
    pub cancel: Duration,
}

impl Default for AcpTimeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_mins(1),
            sign_in: Duration::from_mins(10),
            session: Duration::from_mins(2),
            cancel: Duration::from_secs(4),
        }
    }
}

impl fmt::Debug for AcpCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { preset, program, args, env, authenticate, timeouts } = self;
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("AcpCommand")
            .field("preset", &preset.map(|preset| preset.name))
            .field("program", program)
            .field("args", &args.len())
            .field("env", &names)
            .field("authenticate", authenticate)
            .field("timeouts", timeouts)
            .finish()
    }
}

impl AcpCommand {
    /// What the options say: a preset, a program, or a preset with another program.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn of(options: &AcpOptions) -> Result<Self, AgentError> {
        let AcpOptions { preset, command, args, env, authenticate } = options;
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: String| {
            faults.push(Fault { subject: None, field: field.to_owned(), message });
        };
        let known = preset.as_ref().and_then(|name| AcpPreset::named(name));
        if let (Some(name), None) = (preset, known) {
            let names: Vec<&str> = AcpPreset::all().iter().map(|preset| preset.name).collect();
            let names = names.join(", ");
            fault(
                "local.acp.preset",
                format!("{name:?} is no preset: there are {names}; another program is given as command"),
            );
        }
        let program = command.as_deref().or(known.map(|preset| preset.command)).unwrap_or_default();
        if program.trim().is_empty() && preset.is_none() {
            fault("local.acp.command", "is missing: give a command or a preset".to_owned());
        }
        if args.iter().any(|arg| arg.contains('\0')) {
            fault("local.acp.args", "holds a NUL character".to_owned());
        }
        for (name, value) in env {
            if name.is_empty() || name.contains(['=', '\0']) || value.expose().contains('\0') {
                fault(&format!("local.acp.env.{name}"), "is no variable".to_owned());
            }
        }
        if !faults.is_empty() {
            return Err(AgentError::Configuration(faults));
        }
        let args = match (known, args.as_slice()) {
            (Some(preset), []) => preset.args.iter().map(|arg| (*arg).to_owned()).collect(),
            (_, args) => args.to_vec(),
        };
        Ok(Self {
            preset: known,
            program: program.to_owned(),
            args,
            env: env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            authenticate: authenticate.clone(),
            timeouts: AcpTimeouts::default(),
        })
    }

    /// What an agent's other options ask for and no agent behind the protocol can be made to do. It is refused, not
    /// ignored.
    ///
    /// # Errors
    /// All of it.
    pub fn check(options: &AgentOptions) -> Result<(), AgentError> {
        let Some(local) = options.local_options() else { return Ok(()) };
        let asked = [
            (
                "local.tools",
                local.tools.is_some(),
                "the agent brings its own tools: deny what it may not do by local.permissions",
            ),
            (
                "local.disallowedTools",
                local.disallowed_tools.iter().any(|tool| tool != "mcp"),
                "the agent brings its own tools, so only \"mcp\" can be left out: deny what it may not do by local.permissions",
            ),
            (
                "local.sandboxOptions",
                local.sandbox.enabled,
                "the agent runs its own commands, which no sandbox of Toolway's holds: use the agent's own",
            ),
            ("agents", !options.agents.is_empty(), "the agent brings its own subagents"),
        ];
        let faults: Vec<Fault> = asked
            .into_iter()
            .filter(|(_, is_asked, _)| *is_asked)
            .map(|(field, _, message)| Fault {
                subject: None,
                field: field.to_owned(),
                message: format!("cannot be kept to by an agent behind the Agent Client Protocol: {message}"),
            })
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(AgentError::Configuration(faults)) }
    }

    /// How long a cancelled run may take: the agent's own time to end its prompt, and that of the end of its process.
    pub fn grace(&self) -> Duration {
        self.timeouts.cancel + PROCESS_END
    }

    /// For people: the preset's name, else the program.
    pub fn title(&self) -> &str {
        self.preset.map_or(&self.program, |preset| preset.name)
    }
}

/// What the engine is made with beside the agent's command.
#[derive(Clone)]
pub struct AcpSurroundings {
    /// The machine: a child gets a few of its variables.
    pub machine: Machine,
    /// Who says what the agent may do.
    pub gate: Gate,
    /// The folders that it may work in beside the run's own.
    pub roots: Vec<PathBuf>,
    /// The `toolway` binary, for agents that take no servers over HTTP. `None`: with such an agent and servers a run
    /// fails with advice.
    pub shim: Option<PathBuf>,
    /// The binary that supervises children, see `toolway_transport::ChildConfig::supervise`.
    pub supervise: Option<PathBuf>,
    /// In place of the agent's own words to the model. Where the agent cannot, a run fails with advice.
    pub system_prompt: Option<String>,
}

impl fmt::Debug for AcpSurroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, gate: _, roots, shim, supervise, system_prompt } = self;
        f.debug_struct("AcpSurroundings")
            .field("machine", machine)
            .field("roots", roots)
            .field("shim", shim)
            .field("supervise", supervise)
            .field("system_prompt", system_prompt)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_a_name_and_its_program_may_be_another() {
        let options = AcpOptions { preset: Some("opencode".to_owned()), ..AcpOptions::default() };
        let command = AcpCommand::of(&options).unwrap();
        assert_eq!(
            (command.program.as_str(), command.args.as_slice()),
            ("opencode", &["acp".to_owned()][..])
        );
        let mut options = AcpOptions { preset: Some("gemini".to_owned()), ..AcpOptions::default() };
        options.command = Some("/opt/gemini".to_owned());
        options.env.insert("GEMINI_API_KEY".to_owned(), Secret::new("secret-key"));
        let command = AcpCommand::of(&options).unwrap();
        assert_eq!(
            (command.program.as_str(), command.args.len(), command.title()),
            ("/opt/gemini", 1, "gemini")
        );
        assert!(!format!("{command:?}").contains("secret-key"));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let mut options = AcpOptions { args: vec!["a\0".to_owned()], ..AcpOptions::default() };
        options.env.insert("A=".to_owned(), Secret::new("x"));
        let AgentError::Configuration(faults) = AcpCommand::of(&options).unwrap_err() else { panic!() };
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["local.acp.command", "local.acp.args", "local.acp.env.A="]);
        let unknown = AcpOptions { preset: Some("nobody".to_owned()), ..AcpOptions::default() };
        assert!(AcpCommand::of(&unknown).unwrap_err().to_string().contains("opencode"));
    }
}
