//! Owns holding a thread, and all that is started from it, by Landlock. On other systems than Linux it is never there.

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
        RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };

    use crate::sandbox::Rules;

    /// What is written is restricted wholly from this version on: before it files could still be cut short.
    const FILES: ABI = ABI::V3;
    /// TCP can be denied from this version on.
    const TCP: ABI = ABI::V4;
    /// Signals and abstract sockets can be kept inside from this version on.
    const SCOPES: ABI = ABI::V6;
    /// Devices that programs write to without changing anything.
    const DEVICES: [&str; 8] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/tty",
        "/dev/pts",
        "/dev/ptmx",
    ];

    /// Why this system cannot hold anything to the rules by Landlock.
    pub(in crate::sandbox) fn missing(rules: &Rules) -> Option<String> {
        if ruleset(false).is_err() {
            return Some("Landlock is absent, off, or older than Linux 6.2".to_owned());
        }
        if !rules.network && ruleset(true).is_err() {
            return Some("Landlock of this kernel cannot deny the network, which takes Linux 6.7".to_owned());
        }
        None
    }

    fn ruleset(deny_tcp: bool) -> Result<RulesetCreated, RulesetError> {
        let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        rules = rules.handle_access(AccessFs::from_write(FILES))?;
        if deny_tcp {
            rules = rules.handle_access(AccessNet::from_all(TCP))?;
        }
        rules.set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(SCOPES))?.create()
    }

    /// Restricts this thread for good. The error is a fragment.
    pub(in crate::sandbox) fn restrict_this_thread(rules: &Rules) -> Result<(), String> {
        let devices = DEVICES.iter().map(Path::new).filter(|device| device.exists());
        let writable = rules.writable.iter().map(std::path::PathBuf::as_path).chain(devices);
        let restrict = || -> Result<_, RulesetError> {
            ruleset(!rules.network)?
                .add_rules(path_beneath_rules(writable, AccessFs::from_write(FILES)))?
                .restrict_self()
        };
        match restrict() {
            Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
            Ok(_) => Err("the sandbox could not be closed: Landlock did not take effect".to_owned()),
            Err(error) => Err(format!("the sandbox could not be closed: {error}")),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use crate::sandbox::Rules;

    /// Why this system cannot hold anything to the rules by Landlock.
    pub(in crate::sandbox) fn missing(_rules: &Rules) -> Option<String> {
        Some("Landlock is of Linux only".to_owned())
    }

    /// Never.
    pub(in crate::sandbox) fn restrict_this_thread(_rules: &Rules) -> Result<(), String> {
        Err("there is no Landlock here".to_owned())
    }
}

pub(super) use system::{missing, restrict_this_thread};
