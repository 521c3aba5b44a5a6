//! Owns the options that all relays have.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolway_guard::{
    Glob, Guard, GuardConfig, OutputSchema, PathMap, QueryProcess, ReadBack, StoreConfig, ToolRule,
    UnknownResults,
};
use toolway_proxy::{Recorder, RelayConfig};
use toolway_secret::Redactor;
use toolway_transport::supervisor;
use tracing::level_filters::LevelFilter;

use super::UsageError;
use super::profile::PROFILES;
use super::value::{Environment, Value};
use crate::args::CommonArgs;
use crate::render::quoted_path;
use crate::units;

/// The least limit: a notice and a path must fit.
const LEAST_LIMIT: u64 = 1000;
/// A message that may pass is held in memory up to this.
const MEMORY: std::ops::RangeInclusive<u64> = 4 << 20..=64 << 20;
const DRAIN: Duration = Duration::from_secs(10);

/// What all relays are made of.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) guard: GuardConfig,
    pub(crate) drain: Duration,
    pub(crate) record: Option<Recorder>,
    pub(crate) redactor: Option<Arc<Redactor>>,
    pub(crate) log: LevelFilter,
}

impl Common {
    /// The relay of one session with the server of that name.
    pub(crate) fn relay(self, server: String) -> RelayConfig {
        RelayConfig {
            guard: Guard::new(self.guard),
            server,
            session: session_name(),
            drain: self.drain,
            record: self.record,
            redactor: self.redactor,
        }
    }
}

/// Checks the common options.
pub(crate) fn common(args: CommonArgs, environment: &Environment) -> Result<Common, UsageError> {
    let option = |flag: Option<String>, name: &str| environment.option(flag, name, None);
    let dir =
        output_dir(environment.option(args.output_dir, "output-dir", Some("OUTPUT_DIR"))?, environment)?;
    let mut guard = GuardConfig::new(dir);
    guard.saved_command = saved_command(&guard.store.dir, environment);
    let profile = match option(args.client, "client")? {
        Some(client) => client.choice(PROFILES)?,
        None => PROFILES[0].1,
    };
    let limit =
        environment.option(args.max_response_chars, "max-response-chars", Some("MAX_RESPONSE_CHARS"))?;
    let preview = environment.option(args.preview_chars, "preview-chars", Some("PREVIEW_CHARS"))?;
    guard.max_response_chars = match &limit {
        Some(limit) => limit.parse(|text| at_least(text, LEAST_LIMIT))?,
        None => profile.max_response_chars,
    };
    let preview = match &preview {
        Some(preview) if limit.is_none() => {
            preview.parse(|text| at_least(text, 1))?.min(guard.max_response_chars * 2 / 5)
        }
        Some(preview) => below(preview, guard.max_response_chars)?,
        None => profile.preview_chars.min(guard.max_response_chars * 2 / 5),
    };
    guard.preview_chars = usize::try_from(preview).unwrap_or(usize::MAX);
    guard.memory =
        usize::try_from(guard.max_response_chars.clamp(*MEMORY.start(), *MEMORY.end())).unwrap_or(4 << 20);
    if let Some(value) = option(args.media_limit, "media-limit")? {
        guard.media_limit = value.parse(units::bytes)?;
    }
    if let Some(value) = option(args.output_schema, "output-schema")? {
        guard.output_schema =
            value.choice(&[("relax", OutputSchema::Relax), ("keep", OutputSchema::Keep)])?;
    }
    if let Some(value) = option(args.unknown_results, "unknown-results")? {
        guard.unknown_results =
            value.choice(&[("error", UnknownResults::Error), ("pass", UnknownResults::Pass)])?;
    }
    if let Some(value) = option(args.read_back, "read-back")? {
        let words = [("off", ReadBack::Off), ("session", ReadBack::Session), ("user", ReadBack::User)];
        guard.read_back = value.choice(&words)?;
    }
    if guard.read_back != ReadBack::Off {
        guard.query_process = Some(QueryProcess::new(running_binary()?));
    }
    if let Some(value) = option(args.max_message_bytes, "max-message-bytes")? {
        guard.max_message_bytes = value.parse(units::bytes)?;
    }
    guard.tool_rules = args.tool_limit.iter().map(|rule| tool_rule(rule)).collect::<Result<_, _>>()?;
    guard.pass_saved =
        args.pass_saved.iter().map(|text| glob("--pass-saved", text)).collect::<Result<_, _>>()?;
    guard.path_map = args.path_map.iter().map(|map| path_map(map)).collect::<Result<_, _>>()?;
    retention(&mut guard.store, [args.keep_for, args.max_saved, args.keep_at_least], environment)?;
    let redactor = option(args.redact, "redact")?.map(|file| redactor(&file)).transpose()?;
    guard.redaction.clone_from(&redactor);
    let record = option(args.record, "record")?.map(|file| recorder(&file, redactor.clone())).transpose()?;
    let drain = option(args.drain, "drain")?.map_or(Ok(DRAIN), |value| value.parse(units::duration))?;
    let log = option(args.log, "log")?.map_or(Ok(LevelFilter::WARN), |value| log_level(&value))?;
    Ok(Common { guard, drain, record, redactor, log })
}

fn whole(text: &str) -> Result<u64, String> {
    text.trim().replace('_', "").parse::<u64>().map_err(|_| "is not a whole number".to_owned())
}

fn at_least(text: &str, least: u64) -> Result<u64, String> {
    let number = whole(text)?;
    if number < least { Err(format!("is less than {least}")) } else { Ok(number) }
}

fn below(preview: &Value, limit: u64) -> Result<u64, UsageError> {
    let number = preview.parse(|text| at_least(text, 1))?;
    if number >= limit {
        let reason =
            format!("{number} is not less than the limit of {limit} characters (--max-response-chars)");
        return Err(UsageError::new(&preview.from, reason));
    }
    Ok(number)
}

fn tool_rule(text: &str) -> Result<(Glob, ToolRule), UsageError> {
    let what = "--tool-limit";
    let form = || UsageError::new(what, format!("{text:?} is not GLOB=N, GLOB=save or GLOB=pass"));
    let (glob, rule) = text.rsplit_once('=').ok_or_else(form)?;
    if glob.is_empty() {
        return Err(form());
    }
    let rule = match rule {
        "save" => ToolRule::Save,
        "pass" => ToolRule::Pass,
        number => {
            let limit = at_least(number, LEAST_LIMIT)
                .map_err(|reason| UsageError::new(what, format!("{text:?}: {number:?} {reason}")))?;
            ToolRule::Limit(limit)
        }
    };
    Ok((self::glob(what, glob)?, rule))
}

fn glob(what: &str, text: &str) -> Result<Glob, UsageError> {
    Glob::new(text).map_err(|error| UsageError::new(what, format!("{text:?}: {error}")))
}

fn path_map(text: &str) -> Result<PathMap, UsageError> {
    PathMap::parse(text).ok_or_else(|| UsageError::new("--path-map", format!("{text:?} is not FROM=TO")))
}

fn retention(
    store: &mut StoreConfig,
    [keep_for, max_saved, keep_at_least]: [Option<String>; 3],
    environment: &Environment,
) -> Result<(), UsageError> {
    if let Some(value) = environment.option(keep_for, "keep-for", None)? {
        store.keep_for = Some(value.parse(units::duration)?);
    }
    if let Some(value) = environment.option(max_saved, "max-saved", None)? {
        store.max_saved = Some(value.parse(units::bytes)?);
    }
    if let Some(value) = environment.option(keep_at_least, "keep-at-least", None)? {
        store.keep_at_least = value.parse(units::duration)?;
    }
    Ok(())
}

/// The directory of saved results: as given, or the one that is documented.
pub(crate) fn output_dir(given: Option<Value>, environment: &Environment) -> Result<PathBuf, UsageError> {
    let no_home = |what: &str| {
        UsageError::new(what, "there is no home directory").with_hint("name a directory with --output-dir")
    };
    match given {
        None => default_output_dir(environment).ok_or_else(|| no_home("--output-dir")),
        Some(value) => match value.text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
                let home = home(environment).ok_or_else(|| no_home(&value.from))?;
                Ok(home.join(rest.trim_start_matches(['/', '\\'])))
            }
            _ => std::path::absolute(&value.text)
                .map_err(|error| UsageError::new(value.from, error.to_string())),
        },
    }
}

/// The directory of saved results that is documented; none without a home.
pub(crate) fn default_output_dir(environment: &Environment) -> Option<PathBuf> {
    Some(home(environment)?.join(".cache").join("cursor-mcp-response-proxy"))
}

fn home(environment: &Environment) -> Option<PathBuf> {
    environment.get(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(PathBuf::from)
}

/// What a person, or an agent with a shell, types to read the saved results of this directory.
pub(crate) fn saved_command(directory: &Path, environment: &Environment) -> String {
    let mut command = format!("{} saved", own_command(environment));
    if default_output_dir(environment).is_none_or(|default| default != directory) {
        command.extend([" --output-dir ", &quoted_path(directory)]);
    }
    command
}

/// `toolway` where the search path finds it, our own file otherwise.
fn own_command(environment: &Environment) -> String {
    let name = if cfg!(windows) { "toolway.exe" } else { "toolway" };
    let path = environment.get("PATH").unwrap_or_default();
    let found = std::env::split_paths(path).any(|directory| directory.join(name).is_file());
    match std::env::current_exe() {
        Ok(own) if !found => quoted_path(&own),
        _ => "toolway".to_owned(),
    }
}

/// The binary that runs: on Linux the very file, even when an update has put another one in its place meanwhile.
fn running_binary() -> Result<PathBuf, UsageError> {
    let running = PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() {
        return Ok(running);
    }
    supervisor::own_binary()
        .map_err(|error| UsageError::new("--read-back", format!("cannot find our own program: {error}")))
}

fn redactor(file: &Value) -> Result<Arc<Redactor>, UsageError> {
    let read =
        |error: std::io::Error| UsageError::new(&file.from, format!("cannot read {}: {error}", file.text));
    let text = std::fs::read_to_string(&file.text).map_err(read)?;
    let redactor = Redactor::with_patterns(&text);
    redactor.map(Arc::new).map_err(|error| UsageError::new(&file.from, format!("{}: {error}", file.text)))
}

fn recorder(file: &Value, redactor: Option<Arc<Redactor>>) -> Result<Recorder, UsageError> {
    Recorder::create(file.text.as_ref(), redactor)
        .map_err(|error| UsageError::new(&file.from, format!("cannot write {}: {error}", file.text)))
}

pub(crate) fn log_level(value: &Value) -> Result<LevelFilter, UsageError> {
    value.choice(&[
        ("off", LevelFilter::OFF),
        ("error", LevelFilter::ERROR),
        ("warn", LevelFilter::WARN),
        ("info", LevelFilter::INFO),
        ("debug", LevelFilter::DEBUG),
        ("trace", LevelFilter::TRACE),
    ])
}

/// A name that no other session has.
pub(crate) fn session_name() -> String {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = u64::from(std::process::id()).to_be_bytes();
    }
    format!("{:016x}", u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests;
