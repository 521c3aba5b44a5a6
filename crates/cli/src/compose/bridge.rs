//! Owns the meaning of the arguments of `bridge`.

use std::path::PathBuf;

use toolway_bridge::{HostProtocolConfig, Profile, settings_path};
use toolway_guard::{Guard, ReadBack};
use tracing::level_filters::LevelFilter;

use super::servers::machine;
use super::value::Environment;
use super::{UsageError, common};
use crate::args::{BridgeArgs, CommonArgs};
use crate::logs;

/// What `bridge` runs with.
#[derive(Debug)]
pub(crate) struct Bridging {
    pub(crate) protocol: HostProtocolConfig,
    pub(crate) log: LevelFilter,
}

impl Bridging {
    /// Checks the arguments.
    pub(crate) fn new(args: BridgeArgs, own: &Environment) -> Result<Self, UsageError> {
        let BridgeArgs {
            profile,
            settings,
            client,
            max_response_chars,
            preview_chars,
            tool_limit,
            output_dir,
            log,
        } = args;
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
        Ok(Self { protocol, log: common.log })
    }
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
