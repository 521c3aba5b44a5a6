//! Owns the way from options and files to the servers of a generation, and from entries of the configuration to the
//! gateway's settings. The reading itself is the configuration's. It starts nothing.

mod boxed;
mod depth;
mod plan;

pub use depth::gateway_circle;
pub(crate) use plan::quoted;
pub use plan::{child_target, server_entries, wait_for_calls};

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolway_config::{
    FileStatus, LoadOptions, Loader, Problem, Resolved, SettingSource, Source, Target, TrustMode, team_url,
};
use toolway_proxy::gateway::{ServerEntry, ServerState, Timeouts};
use toolway_secret::{Redactor, Secret};
use toolway_transport::{HttpConfig, fetch};

use crate::options::{AgentOptions, Machine, ServerTimeouts, Trust};
use crate::sandbox::Sandbox;

/// How long the team's document is waited for.
const TEAM_TIME: Duration = Duration::from_secs(10);
/// The most bytes of it.
const TEAM_BYTES: usize = 16 << 20;

/// What is to be composed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// The map of servers that the agent was made with.
    pub(crate) inline: Map<String, Value>,
    /// Those of one prompt.
    pub(crate) per_send: Map<String, Value>,
}

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    /// Everything that is configured, those that stand highest first.
    pub(crate) configured: Vec<Configured>,
    /// What the gateway is given: of each name one.
    pub(crate) entries: Vec<ServerEntry>,
    /// What is wrong with files, for people.
    pub(crate) diagnostics: Vec<String>,
    /// Some file could not be used at all.
    pub(crate) has_bad_file: bool,
}

/// One configured server, as it is reported.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    pub(crate) name: String,
    /// `inline`, `project`, ...
    pub(crate) source: String,
    /// The file and line.
    pub(crate) place: Option<String>,
    /// As far as its definition says it.
    pub(crate) transport: Option<&'static str>,
    /// What it is; `None`: the gateway knows.
    pub(crate) state: Option<ServerState>,
    /// The first call to the model waits for it.
    pub(crate) required: bool,
    /// It is started by its first call.
    pub(crate) lazy: bool,
    /// Its command line, as it is written.
    pub(crate) command: Option<String>,
    /// Its address, without a query.
    pub(crate) url: Option<String>,
    /// Values that no text may repeat, where they do not stand in what the program gave.
    pub(crate) secrets: Vec<Secret>,
}

/// Composes the servers of one agent, again and again: a file that is bad at a later time keeps what it said before.
#[derive(Debug)]
pub(crate) struct Composer {
    machine: Machine,
    sources: Vec<SettingSource>,
    trust: TrustMode,
    timeouts: Timeouts,
    loader: Loader,
    /// Folders that the sandbox for children leaves open; `None`: there is none.
    boxed: Option<Vec<PathBuf>>,
}

impl Composer {
    /// Reads nothing.
    pub(crate) fn new(options: &AgentOptions) -> Self {
        let local = options.local_options();
        let trust = match local.map(|local| local.trust).unwrap_or_default() {
            Trust::Given => TrustMode::Given,
            Trust::Ask => TrustMode::Ask,
        };
        Self {
            machine: options.work_machine(),
            sources: local.map(|local| local.setting_sources.clone()).unwrap_or_default(),
            trust,
            timeouts: timeouts(&local.map(|local| local.timeouts).unwrap_or_default()),
            loader: Loader::default(),
            boxed: local.filter(|local| local.sandbox.enabled).map(|local| local.dirs.clone()),
        }
    }

    /// The same for servers that no file brings: those of a subagent.
    pub(crate) fn without_files(&self) -> Self {
        Self {
            machine: self.machine.clone(),
            sources: Vec::new(),
            trust: self.trust,
            timeouts: self.timeouts,
            loader: Loader::default(),
            boxed: self.boxed.clone(),
        }
    }

    /// Bounds of time of servers that say nothing of them.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Reads all that is named and judges it. What blocks runs on a thread for that.
    pub(crate) async fn compose(&mut self, wanted: Wanted) -> Composed {
        if self.sources.is_empty() && wanted.inline.is_empty() && wanted.per_send.is_empty() {
            return Composed::default();
        }
        let team_document = self.team().await;
        let options = LoadOptions {
            sources: self.sources.clone(),
            files: Vec::new(),
            inline: wanted.inline,
            per_send: wanted.per_send,
            trust: self.trust,
            team_document,
        };
        let mut loader = std::mem::take(&mut self.loader);
        let (machine, timeouts, dirs) = (self.machine.clone(), self.timeouts, self.boxed.clone());
        let work = tokio::task::spawn_blocking(move || {
            let resolved = loader.load(&options, machine.environment());
            let mut entries = server_entries(&resolved, &machine, timeouts);
            let mut notes = Vec::new();
            if let Some(dirs) = dirs {
                let sandbox = Sandbox::open(machine.environment(), &options.sources, &dirs);
                let sandbox = sandbox.map(|(sandbox, more)| {
                    notes = more.0;
                    sandbox
                });
                entries = boxed::boxed(entries, &sandbox, &machine);
            }
            let mut composed = composed(&resolved, entries);
            composed.diagnostics.extend(notes);
            (loader, composed)
        });
        match work.await {
            Ok((loader, composed)) => {
                self.loader = loader;
                composed
            }
            Err(error) => {
                tracing::error!(%error, "the configuration could not be read");
                let told = "the configuration could not be read: an internal fault".to_owned();
                Composed { diagnostics: vec![told], has_bad_file: true, ..Composed::default() }
            }
        }
    }

    /// The team's document, where it stands at an address.
    async fn team(&self) -> Option<Result<Vec<u8>, String>> {
        let url =
            team_url(self.machine.environment()).filter(|_| self.sources.contains(&SettingSource::Team))?;
        let config = HttpConfig::new(url).map_err(|error| error.to_string());
        Some(match config {
            Ok(mut config) => {
                config.timeout = TEAM_TIME;
                fetch(&config, TEAM_BYTES).await
            }
            Err(reason) => Err(reason),
        })
    }
}

/// Toolway's own bounds, and what the options put in their place.
fn timeouts(options: &ServerTimeouts) -> Timeouts {
    let default = Timeouts::default();
    let call_idle = options.call.unwrap_or(default.call_idle);
    Timeouts {
        startup: options.startup.unwrap_or(default.startup),
        list: options.list.unwrap_or(default.list),
        call_idle,
        call_max: options.call_max.unwrap_or(default.call_max).max(call_idle),
    }
}

fn composed(resolved: &Resolved, entries: Vec<ServerEntry>) -> Composed {
    let mut composed = Composed::default();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (at, (entry, planned)) in resolved.entries.iter().zip(entries).enumerate() {
        let means = resolved.entry(&entry.name).is_some_and(|winner| std::ptr::eq(winner, entry));
        let given = !entry.place.file.as_os_str().is_empty();
        let plan = planned.plan.as_ref();
        let mut configured = Configured {
            name: entry.name.clone(),
            source: source(&entry.source),
            place: given.then(|| entry.place.to_string()),
            transport: entry.definition.as_ref().map(|definition| transport(&definition.target)),
            state: plan.err().cloned(),
            required: plan.is_ok_and(|config| config.required),
            lazy: plan.is_ok_and(|config| config.lazy),
            command: entry.definition.as_ref().and_then(|definition| command_line(&definition.target)),
            url: entry.definition.as_ref().and_then(|definition| address(&definition.target)),
            secrets: plan.map(|config| config.secrets.clone()).unwrap_or_default(),
        };
        if means && named.insert(&entry.name) {
            composed.entries.push(planned);
        } else if configured.state.is_none() {
            tracing::error!(at, "an entry that lost is ready");
            configured.state = Some(ServerState::Missing);
        }
        composed.configured.push(configured);
    }
    composed.has_bad_file =
        resolved.files.iter().any(|file| matches!(file.status, FileStatus::Failed(_) | FileStatus::Kept(_)));
    // What is wrong with what a program gave was told to the program.
    let of_files = |problem: &&Problem| !problem.file.as_os_str().is_empty();
    composed.diagnostics = resolved.problems.iter().filter(of_files).map(Problem::to_string).collect();
    composed
}

/// The word of a report.
fn source(source: &Source) -> String {
    match source {
        Source::Plugin { plugin, .. } => format!("plugin {plugin}"),
        other => other.name().to_owned(),
    }
}

/// The command line as it is written: placeholders stay, and what looks like a secret goes.
fn command_line(target: &Target) -> Option<String> {
    let Target::Stdio(stdio) = target else { return None };
    let arguments = stdio.args.iter().flatten().map(toolway_config::Text::raw);
    let words: Vec<&str> = std::iter::once(stdio.command.raw()).chain(arguments).collect();
    Some(Redactor::known().redact(&words.join(" ")).into_owned())
}

/// The address as it is written, without a query: that may be a secret.
fn address(target: &Target) -> Option<String> {
    let Target::Remote(remote) = target else { return None };
    let url = remote.url.raw();
    Some(url.split(['?', '#']).next().unwrap_or_default().to_owned())
}

fn transport(target: &Target) -> &'static str {
    match target {
        Target::Stdio(_) => "stdio",
        Target::Remote(remote) if remote.kind == toolway_config::RemoteKind::Sse => "sse",
        Target::Remote(_) => "http",
    }
}

/// The settings of an entry that the gateway has, whatever it is.
pub(crate) fn failed_entry(name: &str, source: &str, state: ServerState) -> ServerEntry {
    ServerEntry { name: name.to_owned(), source: source.to_owned(), plan: Err::<Arc<_>, _>(state) }
}
