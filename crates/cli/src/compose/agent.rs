//! Owns the meaning of the arguments by which agents are made: one function for every command that makes them. It starts
//! nothing.

mod files;

use std::path::Path;

use toolway_agent::{
    AcpOptions, AgentOptions, EngineChoice, Limits, LocalOptions, Mode, ModelChoice, PermissionOptions,
    Person, Place, SandboxOptions, StoreChoice, Trust,
};
use toolway_config::SettingSource;
use toolway_secret::{Secret, secret_name, secret_value};
use tracing::level_filters::LevelFilter;

use super::servers::own_machine;
use super::value::{Environment, Value};
use super::{UsageError, log_level};
use crate::args::{OfferArgs, RuntimeArgs};
use crate::units;

pub(crate) use files::{prompt_image, text_or_file};

/// Which sources a person at a shell means.
const DEFAULT_SOURCES: [SettingSource; 2] = [SettingSource::Project, SettingSource::User];

/// What agents are made with. `person` is who is asked and answers; without one, everything is done that no rule denies.
pub(crate) fn agent_options(
    args: RuntimeArgs,
    offer: OfferArgs,
    person: Person,
    own: &Environment,
) -> Result<AgentOptions, UsageError> {
    let engine = engine(&args, own)?;
    let mut local = LocalOptions {
        cwd: args.cwd.as_deref().map(|cwd| folder("--cwd", cwd)).transpose()?,
        setting_sources: sources(args.setting_sources, own)?,
        // A person at a shell approves what a project starts: `toolway trust`.
        trust: Trust::Ask,
        sandbox: SandboxOptions { enabled: args.sandbox },
        permissions: PermissionOptions { allow: args.allow, deny: args.deny },
        person,
        store: store(args.store, own)?,
        engine,
        tools: offer.tools.as_deref().map(words),
        disallowed_tools: words(&offer.disallowed_tools),
        system_prompt: offer.system_prompt.map(|text| text_or_file("--system-prompt", &text)).transpose()?,
        ..LocalOptions::default()
    };
    for dir in &args.add_dir {
        local.dirs.push(folder("--add-dir", dir)?);
    }
    let limits = Limits {
        turns: number(own.option(args.limit_turns, "limit-turns", None)?)?,
        tokens: number(own.option(args.limit_tokens, "limit-tokens", None)?)?,
        time: own
            .option(args.limit_time, "limit-time", None)?
            .map(|value| value.parse(units::duration))
            .transpose()?,
        cost: number(own.option(args.limit_cost, "limit-cost", None)?)?,
    };
    let model = own.option(args.model, "model", None)?.map(|value| value.text);
    let params = args.model_param.iter().map(|text| param(text)).collect::<Result<Vec<_>, _>>()?;
    if model.is_none() && !params.is_empty() {
        return Err(UsageError::new("--model-param", "there is no model that it is for")
            .with_hint("name one with --model"));
    }
    let mut options = AgentOptions::local(own_machine(own)?);
    options.model = model.map(|id| ModelChoice { id, params });
    options.mode = if offer.plan { Mode::Plan } else { Mode::Agent };
    options.limits = limits;
    for file in &args.mcp_config {
        for (name, server) in files::servers(file, own)? {
            options.mcp_servers.insert(name, server);
        }
    }
    options.place = Place::Local(Box::new(local));
    Ok(options)
}

/// Where agents are kept, and nothing else: for commands that look at them.
pub(crate) fn kept_options(place: Option<String>, own: &Environment) -> Result<AgentOptions, UsageError> {
    let mut options = AgentOptions::local(own_machine(own)?);
    let local = LocalOptions { store: store(place, own)?, ..LocalOptions::default() };
    options.place = Place::Local(Box::new(local));
    Ok(options)
}

/// How much is logged.
pub(crate) fn agent_log(level: Option<String>, own: &Environment) -> Result<LevelFilter, UsageError> {
    own.option(level, "log", None)?.map_or(Ok(LevelFilter::WARN), |value| log_level(&value))
}

fn engine(args: &RuntimeArgs, own: &Environment) -> Result<EngineChoice, UsageError> {
    let preset = own.option(args.acp.clone(), "acp", None)?;
    let command = own.option(args.acp_command.clone(), "acp-command", None)?;
    let is_acp = match own.option(args.runtime.clone(), "runtime", None)? {
        Some(value) => value.choice(&[("native", false), ("acp", true)])?,
        None => preset.is_some() || command.is_some(),
    };
    let way_in = own.option(args.acp_auth.clone(), "acp-auth", None)?;
    if !is_acp {
        return match (&args.acp, &args.acp_command) {
            (None, None) if args.acp_auth.is_some() || !args.acp_env.is_empty() => {
                let option = if args.acp_auth.is_some() { "--acp-auth" } else { "--acp-env" };
                Err(UsageError::new(option, "is for an agent of the protocol, and none is named")
                    .with_hint("name it: --acp PRESET, or --acp-command 'CMD ARGS'"))
            }
            (None, None) => Ok(EngineChoice::Native),
            _ => Err(UsageError::new("--runtime", "native does not go with an agent of the protocol")
                .with_hint("leave --acp and --acp-command out, or say --runtime acp")),
        };
    }
    let mut acp = AcpOptions { authenticate: way_in.map(|way| way.text), ..AcpOptions::default() };
    match (command.filter(|_| args.acp.is_none()), preset) {
        (Some(command), _) => {
            let mut words = command.parse(|text| {
                let words = shlex::split(text).filter(|words| !words.is_empty());
                words.ok_or_else(|| "is no command line: a quote is not closed, or it is empty".to_owned())
            })?;
            acp.command = Some(words.remove(0));
            acp.args = words;
        }
        (None, Some(preset)) => acp.preset = Some(preset.text),
        (None, None) => {
            return Err(UsageError::new("--runtime", "acp is which agent?")
                .with_hint("name it: --acp opencode, or --acp-command 'CMD ARGS'"));
        }
    }
    for name in &args.acp_env {
        let value = own
            .get(name)
            .and_then(|value| value.to_str())
            .ok_or_else(|| UsageError::new("--acp-env", format!("the variable {name} is not set")))?;
        let known = secret_name(name) || secret_value(value);
        let value = if known { Secret::in_use(value) } else { Secret::new(value) };
        acp.env.insert(name.clone(), value);
    }
    Ok(EngineChoice::Acp(acp))
}

fn sources(given: Option<String>, own: &Environment) -> Result<Vec<SettingSource>, UsageError> {
    let Some(value) = own.option(given, "setting-sources", None)? else {
        return Ok(DEFAULT_SOURCES.to_vec());
    };
    if value.text.trim() == "none" {
        return Ok(Vec::new());
    }
    let parsed = SettingSource::parse_list(value.text.split(',').map(str::trim));
    parsed.map_err(|problem| {
        let error = UsageError::new(&value.from, problem.message);
        error.with_hint(problem.hint.unwrap_or_else(|| "none is none of them".to_owned()))
    })
}

fn store(given: Option<String>, own: &Environment) -> Result<StoreChoice, UsageError> {
    let Some(value) = own.option(given, "store", None)? else { return Ok(StoreChoice::Default) };
    let at = |dir: &str| -> Result<std::path::PathBuf, UsageError> {
        if dir.is_empty() {
            return Err(UsageError::new(&value.from, "names no folder"));
        }
        std::path::absolute(dir).map_err(|error| UsageError::new(&value.from, error.to_string()))
    };
    match (value.text.as_str(), value.text.split_once(':')) {
        ("memory", _) => Ok(StoreChoice::Memory),
        (_, Some(("jsonl", dir))) => Ok(StoreChoice::Jsonl(at(dir)?)),
        (_, Some(("sqlite", dir))) | (dir, _) => Ok(StoreChoice::Sqlite(at(dir)?)),
    }
}

fn folder(flag: &str, path: &Path) -> Result<std::path::PathBuf, UsageError> {
    let wrong = |reason: String| UsageError::new(flag, format!("{}: {reason}", path.display()));
    let absolute = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
    match std::fs::metadata(&absolute) {
        Ok(found) if found.is_dir() => Ok(absolute),
        Ok(_) => Err(wrong("is no folder".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Names without what stands around them.
fn words(list: &[String]) -> Vec<String> {
    list.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

fn number<T: std::str::FromStr>(value: Option<Value>) -> Result<Option<T>, UsageError> {
    let read =
        |text: &str| text.replace('_', "").parse().map_err(|_| "is no number that fits here".to_owned());
    value.map(|value| value.parse(read)).transpose()
}

/// `NAME=VALUE`: JSON where it is that, a text otherwise.
fn param(text: &str) -> Result<(String, serde_json::Value), UsageError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok((name.to_owned(), value))
        }
        _ => Err(UsageError::new("--model-param", format!("{text:?} is not NAME=VALUE"))),
    }
}

#[cfg(test)]
mod tests;
