//! Owns the way from configuration files and command lines to the gateway's settings: every configured entry, with how
//! to run it or why not.

mod ad_hoc;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolway_agent::{Machine, gateway_circle, server_entries, wait_for_calls};
use toolway_config::{FileStatus, LoadOptions, Loader, Problem, Resolved, SettingSource, Standing};
use toolway_proxy::gateway::{ServerConfig, ServerEntry, Target, Timeouts};
use toolway_transport::{HttpConfig, fetch, supervisor};

pub(crate) use ad_hoc::ad_hoc;

use super::{Environment, UsageError};
use crate::args::SourceArgs;

/// Which sources a person at a shell means.
const DEFAULT_SOURCES: [SettingSource; 2] = [SettingSource::Project, SettingSource::User];

/// How long the team's document is waited for.
const TEAM_TIME: Duration = Duration::from_secs(10);
/// The most bytes of it.
const TEAM_BYTES: usize = 16 << 20;

/// What is configured.
#[derive(Debug)]
pub(crate) struct Servers {
    /// As the files say it.
    pub(crate) resolved: Resolved,
    /// The same entries for the gateway, in the same order.
    pub(crate) entries: Vec<ServerEntry>,
}

impl Servers {
    /// Reads what the arguments name. Faults of single entries are states, not errors.
    pub(crate) fn load(args: &SourceArgs, own: &Environment) -> Result<Self, UsageError> {
        Self::load_again(args, own, &mut Loader::default())
    }

    /// The same again and again: a file that is bad at a later load keeps what it said before.
    pub(crate) fn load_again(
        args: &SourceArgs,
        own: &Environment,
        loader: &mut Loader,
    ) -> Result<Self, UsageError> {
        let own_machine = own_machine(own)?;
        let machine = own_machine.environment();
        let sources = sources(args, own)?;
        let team_document = if sources.contains(&SettingSource::Team) { team(machine) } else { None };
        let options = LoadOptions { sources, files: files(args)?, team_document, ..LoadOptions::default() };
        let resolved = loader.load(&options, machine);
        let entries = server_entries(&resolved, &own_machine, Timeouts::default());
        Ok(Self { resolved, entries })
    }

    /// The entry that the name means: not one that lost to another.
    pub(crate) fn find(&self, name: &str) -> Option<&ServerEntry> {
        let entry = self.resolved.entry(name)?;
        let at = self.resolved.entries.iter().position(|own| std::ptr::eq(own, entry))?;
        self.entries.get(at)
    }

    /// Names that can be meant, each once, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for entry in &self.entries {
            if !names.contains(&entry.name.as_str()) {
                names.push(&entry.name);
            }
        }
        names
    }

    /// Why files could not be used at all.
    pub(crate) fn failed_files(&self) -> impl Iterator<Item = &Problem> {
        self.resolved.files.iter().filter_map(|file| match &file.status {
            FileStatus::Failed(problem) => Some(problem),
            _ => None,
        })
    }

    /// What works in the entry that the name means, and perhaps not as meant.
    pub(crate) fn warnings(&self, name: &str) -> impl Iterator<Item = &Problem> {
        let file = self.resolved.entry(name).map(|entry| &entry.place.file);
        let own = move |problem: &&Problem| {
            !problem.is_error() && problem.server.as_deref() == Some(name) && Some(&problem.file) == file
        };
        self.resolved.problems.iter().filter(own)
    }

    /// Why the entry that the name means is not approved, where that is so.
    pub(crate) fn distrust(&self, name: &str) -> Option<&str> {
        match &self.resolved.entry(name)?.standing {
            Standing::Untrusted { reason } => Some(reason),
            _ => None,
        }
    }
}

/// Sources as the flag, or `TOOLWAY_SOURCES`, names them.
fn sources(args: &SourceArgs, own: &Environment) -> Result<Vec<SettingSource>, UsageError> {
    if !args.config.is_empty() {
        return Ok(Vec::new());
    }
    let Some(value) = own.option(args.sources.clone(), "sources", None)? else {
        return Ok(DEFAULT_SOURCES.to_vec());
    };
    let parsed = SettingSource::parse_list(value.text.split(','));
    parsed.map_err(|problem| {
        let error = UsageError::new(&value.from, problem.message);
        match problem.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    })
}

/// The team's document, where it stands at an address.
fn team(machine: &toolway_config::Environment) -> Option<Result<Vec<u8>, String>> {
    let url = toolway_config::team_url(machine)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let fetched = HttpConfig::new(url).map_err(|error| error.to_string()).and_then(|mut config| {
        config.timeout = TEAM_TIME;
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(fetch(&config, TEAM_BYTES))
    });
    Some(fetched)
}

/// Named files must be there; other sources may be absent.
fn files(args: &SourceArgs) -> Result<Vec<PathBuf>, UsageError> {
    let checked = args.config.iter().map(|file| {
        let path = std::path::absolute(file).map_err(|error| error.to_string());
        path.and_then(|path| std::fs::metadata(&path).map(|_| path).map_err(|error| error.to_string()))
            .map_err(|reason| {
                UsageError::new("--config", format!("cannot read {}: {reason}", file.display()))
            })
    });
    checked.collect()
}

/// The machine and the user, for the configuration.
pub(crate) fn machine(own: &Environment) -> Result<toolway_config::Environment, UsageError> {
    Ok(own_machine(own)?.environment().clone())
}

/// The machine and the user. Child processes are supervised by this binary.
pub(crate) fn own_machine(own: &Environment) -> Result<Machine, UsageError> {
    let cwd = std::env::current_dir()
        .map_err(|error| UsageError::new("working directory", format!("there is none: {error}")))?;
    Ok(Machine::new(own.all().collect(), cwd).with_helper(supervisor::own_binary().ok()))
}

/// A gateway that stands behind so many others is part of a circle.
pub(crate) fn refuse_circle(own: &Environment) -> Result<(), UsageError> {
    let Some(above) = gateway_circle(&own_machine(own)?) else { return Ok(()) };
    Err(UsageError::new("serve", format!("{above} gateways stand above this one: it would serve itself"))
        .with_hint("take the entry that runs `toolway serve` out of the files that it reads, or name others by --config"))
}

/// The settings with other bounds of time: a person at a shell waits as long as they say.
pub(crate) fn with_timeout(config: &Arc<ServerConfig>, timeout: Option<Duration>) -> Arc<ServerConfig> {
    let Some(timeout) = timeout else { return Arc::clone(config) };
    let mut config = ServerConfig::clone(config);
    config.timeouts.startup = timeout;
    config.timeouts.list = timeout;
    config.timeouts.call_idle = timeout;
    config.timeouts.call_max = config.timeouts.call_max.max(timeout);
    if let Target::Remote(remote) = &mut config.target {
        wait_for_calls(&mut remote.http, &config.timeouts);
    }
    Arc::new(config)
}
