//! Owns the ids of a run and of its calls, and how they are told from others. Random for each run, so that the result
//! of an old call can never be taken for that of a new one.

use std::fmt::Write as _;

use crate::call::CallId;
use crate::error::BridgeError;
use crate::profile::Profile;

/// A random UUID (version 4), as text.
pub(crate) fn random_uuid() -> Result<String, BridgeError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| BridgeError::Randomness(error.to_string()))?;
    Ok(uuid(bytes))
}

fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a String does not fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}

/// The ids of one run.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    run: String,
    /// What the ids of its calls begin with: all but the number.
    call: String,
}

impl Ids {
    /// New ones, never given out before.
    pub(crate) fn random(profile: &Profile) -> Result<Self, BridgeError> {
        Ok(Self::of(profile, &random_uuid()?))
    }

    fn of(profile: &Profile, uuid: &str) -> Self {
        let prefix = profile.run_prefix;
        Self { run: format!("{prefix}{uuid}"), call: format!("{prefix}{}-t", uuid.replace('-', "")) }
    }

    /// The run's id.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// The id by which the host knows call `n`; `None` where it would be too long.
    pub(crate) fn call(&self, n: u64) -> Option<CallId> {
        let id = format!("{}{n}", self.call);
        (id.len() <= CallId::MAX).then(|| CallId::new(&id))
    }

    /// The id by which diagnostics know call `n`.
    pub(crate) fn internal(&self, n: u64) -> String {
        format!("{}-bridge-{n}", self.run)
    }

    /// The number of a call of this run.
    pub(crate) fn number(&self, id: &CallId) -> Option<u64> {
        let digits = id.as_str().strip_prefix(self.call.as_str())?;
        let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        if canonical { digits.parse().ok() } else { None }
    }

    /// The id was, or could have been, given out by this run.
    pub(crate) fn owns(&self, id: &CallId) -> bool {
        id.as_str().starts_with(self.call.as_str()) || id.as_str().starts_with(self.run.as_str())
    }
}

impl CallId {
    /// The id has the form of a bridge call's: `<run prefix><32 hex>-t<n>`, or the older `<run prefix><uuid>-tool-<n>`.
    pub fn is_bridge_call(&self, profile: &Profile) -> bool {
        let Some(rest) = self.as_str().strip_prefix(profile.run_prefix) else { return false };
        let Some((random, number)) = rest.rsplit_once("-tool-").or_else(|| rest.rsplit_once("-t")) else {
            return false;
        };
        let number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let groups: Vec<&str> = random.split('-').collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        number && groups.iter().all(|group| hex(group)) && matches!(lengths[..], [32] | [8, 4, 4, 4, 12])
    }

    /// The id belongs to bridge calls, of whatever profile, whether it has a known form or not: nothing else may begin
    /// like it. A host that changes its profile has ids of the other one in its history.
    pub(crate) fn is_of_bridge(&self) -> bool {
        Profile::ALL.iter().any(|profile| self.as_str().starts_with(profile.run_prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

    #[test]
    fn ids_have_the_documented_forms() {
        let ids = Ids::of(&Profile::PI, UUID);
        assert_eq!(ids.run(), format!("cursor-pi-bridge-run-{UUID}"));
        assert_eq!(ids.internal(7), format!("cursor-pi-bridge-run-{UUID}-bridge-7"));
        let id = ids.call(12).unwrap();
        assert_eq!(id.as_str(), "cursor-pi-bridge-run-3f2504e04f8941d39a0c0305e82c3301-t12");
        assert_eq!((ids.number(&id), id.is_bridge_call(&Profile::PI)), (Some(12), true));
        assert!(!id.is_bridge_call(&Profile::HOST));
    }

    #[test]
    fn lesson_03_an_id_that_would_pass_64_characters_is_not_made() {
        for profile in Profile::ALL {
            let ids = Ids::random(&profile).unwrap();
            let long = (0..=u64::MAX.ilog10())
                .map(|power| 10u64.pow(power))
                .find(|n| ids.call(*n).is_none())
                .unwrap();
            assert_eq!(ids.call(long - 1).unwrap().as_str().len(), 64);
            assert!(ids.call(u64::MAX).is_none());
        }
    }

    #[test]
    fn older_forms_are_recognised_and_others_are_not() {
        let is = |text: &str| CallId::new(text).is_bridge_call(&Profile::PI);
        assert!(is(&format!("cursor-pi-bridge-run-{UUID}-tool-10")));
        assert!(is(&format!("cursor-pi-bridge-run-{UUID}-t1")));
        for other in [
            "toolu_01A".to_owned(),
            "cursor-pi-bridge-run-".to_owned(),
            format!("cursor-pi-bridge-run-{UUID}"),
            format!("cursor-pi-bridge-run-{UUID}-tool-"),
            format!("cursor-pi-bridge-run-{UUID}-tool-1x"),
            format!("cursor-pi-bridge-run-{UUID}-bridge-1"),
            format!("x-cursor-pi-bridge-run-{UUID}-tool-1"),
            format!("cursor-replay-{UUID}-tool-1"),
            "cursor-pi-bridge-run-zz2504e04f8941d39a0c0305e82c3301-t1".to_owned(),
        ] {
            assert!(!is(&other), "{other}");
        }
    }

    #[test]
    fn lesson_09_another_runs_id_and_other_spellings_have_no_number() {
        let (ids, others) = (Ids::random(&Profile::PI).unwrap(), Ids::random(&Profile::PI).unwrap());
        assert_eq!(ids.number(&others.call(1).unwrap()), None);
        let id = ids.call(1).unwrap();
        for text in ["01", "+1", "1 ", "", "99999999999999999999999"] {
            let spelled = CallId::new(&format!("{}{text}", id.as_str().strip_suffix('1').unwrap()));
            assert_eq!(ids.number(&spelled), None, "{text:?}");
        }
    }

    #[test]
    fn a_random_uuid_is_of_version_4() {
        let text = random_uuid().unwrap();
        assert_eq!((text.len(), text.as_bytes()[14], text != random_uuid().unwrap()), (36, b'4', true));
        assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }
}
