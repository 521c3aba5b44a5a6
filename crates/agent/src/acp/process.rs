//! Owns the start of an agent's process and the texts of its failures: the program that was looked for, what it wrote to
//! stderr, and no secrets. It knows no protocol.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use toolway_bridge::Scrubber;
use toolway_secret::Secret;
use toolway_transport::command::{FileSystem, Search, resolve};
use toolway_transport::environment::{Environment, environment};
use toolway_transport::{Child, ChildConfig, ChildTransport, Platform};

use super::keys;
use super::options::{AcpCommand, AcpSurroundings};
use super::peer::Peer;
use crate::error::AgentError;
use crate::options::Machine;

/// So much of stderr is shown with a failure, in bytes.
const TAIL: usize = 2000;

/// Speaks of an agent without telling secrets.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    title: String,
    scrubber: Scrubber,
}

impl Teller {
    pub(super) fn new(options: &AcpCommand, machine: &Machine) -> Self {
        let mut scrubber = Scrubber::new();
        // Of the user's own variables it got its keys, and may repeat them.
        for key in options.preset.into_iter().flat_map(|preset| keys::passed(preset, machine)) {
            scrubber.add(&key);
        }
        for (_, value) in &options.env {
            scrubber.add(value);
            for key in keys::within(value.expose()) {
                scrubber.add(&key);
            }
        }
        Self { title: options.title().to_owned(), scrubber }
    }

    /// Never to be told.
    pub(super) fn keep(&mut self, secret: &Secret) {
        self.scrubber.add(secret);
    }

    /// The text without secrets.
    pub(super) fn scrub(&self, text: &str) -> String {
        self.scrubber.scrub(text).into_owned()
    }

    /// What the agent did, as a sentence.
    pub(super) fn say(&self, what: &str) -> String {
        self.scrub(&format!("the agent {}: {what}", self.title))
    }

    /// A failure of the agent.
    pub(super) fn failure(&self, what: &str) -> AgentError {
        AgentError::Runtime { message: self.say(what) }
    }

    /// A failure with what the process last wrote.
    pub(super) fn failure_of(&self, what: &str, peer: &Peer) -> AgentError {
        let stderr = peer.stderr();
        let tail = stderr.trim_end();
        let from = tail.len().saturating_sub(TAIL);
        let tail = tail.get(tail.floor_char_boundary(from)..).unwrap_or_default();
        if tail.is_empty() {
            self.failure(what)
        } else {
            self.failure(&format!("{what}; it last wrote to stderr:\n{tail}"))
        }
    }
}

/// Starts the process. Nothing was said to it yet.
pub(super) async fn start(
    options: &AcpCommand,
    surroundings: &AcpSurroundings,
    cwd: &Path,
    teller: &Teller,
) -> Result<Peer, AgentError> {
    let mut config = config(options, surroundings, cwd);
    let passed = Environment { variables: config.env.clone(), not_passed: Vec::new() };
    let platform = Platform::CURRENT;
    let home = if platform == Platform::Windows { "USERPROFILE" } else { "HOME" };
    let search = Search {
        path: passed.get("PATH", platform),
        path_ext: passed.get("PATHEXT", platform),
        cwd: cwd.as_os_str(),
        home: passed.get(home, platform),
        platform,
    };
    let found = resolve(OsStr::new(&options.program), &search, &FileSystem);
    config.program = found.map_err(|error| {
        let mut message = error.to_string();
        let advice = error.hint().or_else(|| Some(options.preset?.install.to_owned()));
        if let Some(advice) = advice {
            message = format!("{message} (hint: {advice})");
        }
        teller.failure(&format!("it cannot be started: {message}"))
    })?;
    let spawned = tokio::task::spawn_blocking(move || Child::spawn(&config)).await;
    let failed = |why: String| teller.failure(&format!("it cannot be started: {why}"));
    let child =
        spawned.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
    let transport = ChildTransport::over(child).map_err(|error| failed(error.to_string()))?;
    Ok(Peer::new(transport))
}

fn config(options: &AcpCommand, surroundings: &AcpSurroundings, cwd: &Path) -> ChildConfig {
    let passed = options.preset.into_iter().flat_map(|preset| preset.passed(&surroundings.machine)).cloned();
    let own = options.env.iter().map(|(name, value)| (name.into(), value.expose().into()));
    let given: Vec<(OsString, OsString)> = passed.chain(own).collect();
    let variables = surroundings.machine.variables().iter().cloned();
    ChildConfig {
        program: Path::new(&options.program).to_owned(),
        args: options.args.iter().map(OsString::from).collect(),
        env: environment(variables, &given, false, Platform::CURRENT).variables,
        cwd: Some(cwd.to_owned()),
        supervise: surroundings.supervise.clone(),
    }
}
