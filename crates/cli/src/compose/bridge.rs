//! Owns the meaning of the arguments of `bridge`.

use std::path::PathBuf;

use toolway_agent::{
    AcpOptions, AcpPreset, AgentOptions, EngineChoice, LocalOptions, PermissionOptions, Place, StoreChoice,
    Trust,
};
use toolway_bridge::{HostProtocolConfig, Profile, settings_path};
use toolway_guard::{Guard, ReadBack};
use tracing::level_filters::LevelFilter;

use super::servers::{machine, own_machine};
use super::value::{Environment, Value};
use super::{UsageError, common};
use crate::args::{BridgeArgs, CommonArgs};
use crate::logs;

/// What `bridge` runs with.
#[derive(Debug)]
pub(crate) struct Bridging {
    pub(crate) protocol: HostProtocolConfig,
    pub(crate) log: LevelFilter,
    /// What agents are made with, where the host has none.
    pub(crate) agent: Option<AgentOptions>,
}

impl Bridging {
    /// Checks the arguments.
    pub(crate) fn new(args: BridgeArgs, own: &Environment) -> Result<Self, UsageError> {
        let BridgeArgs {
            profile,
            agent,
            acp_auth,
            allow,
            deny,
            agent_command,
            settings,
            client,
            max_response_chars,
            preview_chars,
            tool_limit,
            output_dir,
            log,
        } = args;
        let agent = match own.option(agent, "agent", None)? {
            Some(value) => {
                let mut engine = engine(&value, agent_command)?;
                if let (EngineChoice::Acp(acp), Some(way)) =
                    (&mut engine, own.option(acp_auth, "acp-auth", None)?)
                {
                    acp.authenticate = Some(way.text);
                }
                Some(agent_options(engine, PermissionOptions { allow, deny }, own)?)
            }
            None if agent_command.is_empty() => None,
            None => return Err(UsageError::new("--", "a command is for `--agent acp`")),
        };
        let profile = match own.option(profile, "profile", None)? {
            Some(value) => Some(value.choice(&Profile::ALL.map(|profile| (profile.id, profile)))?),
            None => None,
        };
        let settings = match own.option(settings, "settings", None)? {
            Some(value) => Profile::ALL.map(|profile| (profile, PathBuf::from(&value.text))).into(),
            None => settings_files(own)?,
        };
        let common_args = CommonArgs {
            max_response_chars,
            preview_chars,
            output_dir,
            client,
            tool_limit,
            log,
            ..CommonArgs::default()
        };
        let mut common = common(common_args, own)?;
        // The agent has no tool here that reads saved results: it reads the file.
        common.guard.read_back = ReadBack::Off;
        let protocol = HostProtocolConfig {
            profile,
            settings,
            guard: Some(Guard::new(common.guard).into()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            stderr: logs::forward,
        };
        Ok(Self { protocol, log: common.log, agent })
    }
}

/// What executes the agent's prompts.
fn engine(value: &Value, command: Vec<String>) -> Result<EngineChoice, UsageError> {
    let wrong = |reason: String| Err(UsageError::new(&value.from, reason));
    let named = value.text.strip_prefix("acp:");
    if value.text != "acp" && !command.is_empty() {
        return wrong(format!("{:?} takes no command: that is for `acp` alone", value.text));
    }
    match (value.text.as_str(), named) {
        ("native", _) => Ok(EngineChoice::Native),
        (_, Some(name)) if AcpPreset::named(name).is_some() => {
            Ok(EngineChoice::Acp(AcpOptions { preset: Some(name.to_owned()), ..AcpOptions::default() }))
        }
        (_, Some(name)) => {
            let known: Vec<&str> = AcpPreset::all().iter().map(|preset| preset.name).collect();
            wrong(format!(
                "no agent is known as {name:?}: {} are, and any other one is `acp -- COMMAND`",
                known.join(", ")
            ))
        }
        ("acp", _) => {
            let mut words = command.into_iter();
            let Some(program) = words.next() else {
                return wrong("the agent's command is missing: `--agent acp -- COMMAND`".to_owned());
            };
            let (command, args) = (Some(program), words.collect());
            Ok(EngineChoice::Acp(AcpOptions { command, args, ..AcpOptions::default() }))
        }
        (other, _) => wrong(format!("{other:?} is none: native, acp:NAME or acp is wanted")),
    }
}

/// Agents of a host: it keeps the conversation, so nothing of it is kept here; and servers of a project have to be
/// approved as for every other command.
fn agent_options(
    engine: EngineChoice,
    permissions: PermissionOptions,
    own: &Environment,
) -> Result<AgentOptions, UsageError> {
    let local = LocalOptions {
        engine,
        permissions,
        trust: Trust::Ask,
        store: StoreChoice::Memory,
        ..LocalOptions::default()
    };
    let mut options = AgentOptions::local(own_machine(own)?);
    options.place = Place::Local(Box::new(local));
    Ok(options)
}

/// The user's file of each profile, as far as there is a place for it.
fn settings_files(own: &Environment) -> Result<Vec<(Profile, PathBuf)>, UsageError> {
    let machine = machine(own)?;
    let home = (!machine.home.as_os_str().is_empty()).then_some(machine.home.as_path());
    let path = |profile: &Profile| {
        let folder = profile.folder_variable.and_then(|name| own.get(name));
        settings_path(profile, home, machine.config_dir.parent(), folder)
    };
    let files = Profile::ALL.iter().filter_map(|profile| Some((*profile, path(profile)?)));
    Ok(files.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str, command: &[&str]) -> Result<EngineChoice, String> {
        let value = Value { text: text.to_owned(), from: "--agent".to_owned() };
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        engine(&value, command).map_err(|error| error.to_string())
    }

    #[test]
    fn an_agent_is_chosen_by_its_kind() {
        assert!(matches!(chosen("native", &[]), Ok(EngineChoice::Native)));
        let Ok(EngineChoice::Acp(known)) = chosen("acp:opencode", &[]) else { panic!() };
        assert_eq!((known.preset.as_deref(), known.command), (Some("opencode"), None));
        let Ok(EngineChoice::Acp(own)) = chosen("acp", &["agent", "--acp"]) else { panic!() };
        assert_eq!(
            (own.preset, own.command.as_deref(), own.args),
            (None, Some("agent"), vec!["--acp".to_owned()])
        );
        for (text, command, told) in [
            ("acp", &[][..], "command is missing"),
            ("acp:nobody", &[], "no agent is known as \"nobody\": "),
            ("gpt", &[], "native, acp:NAME or acp is wanted"),
            ("native", &["agent"], "takes no command"),
            ("acp:opencode", &["agent"], "takes no command"),
        ] {
            let refused = chosen(text, command).unwrap_err();
            assert!(refused.starts_with("--agent: ") && refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn each_profile_has_its_own_file() {
        let own = Environment::of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]);
        let files = settings_files(&own).unwrap();
        assert_eq!(files[0], (Profile::PI, "/h/.pi/agent/cursor-sdk.json".into()));
        assert_eq!(files[1].0, Profile::HOST);
        #[cfg(target_os = "linux")]
        assert_eq!(files[1].1, PathBuf::from("/x/toolway/bridge.json"));
        let moved = Environment::of(&[("HOME", "/h"), ("PI_CODING_AGENT_DIR", "~/elsewhere")]);
        assert_eq!(settings_files(&moved).unwrap()[0].1, PathBuf::from("/h/elsewhere/cursor-sdk.json"));
    }
}
