//! Owns which values that an agent's process gets are keys, so that no text repeats them. It reads no variables.

use std::ffi::OsStr;

use serde_json::Value;
use toolway_secret::Secret;

use super::AcpPreset;
use crate::options::Machine;

/// Words in the names of what is secret.
const WORDS: [&str; 5] = ["key", "token", "secret", "password", "authorization"];
/// Settings lie no deeper.
const DEEPEST: usize = 16;

fn is_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// The keys among the user's own variables that the preset passes on.
pub(crate) fn passed(preset: &AcpPreset, machine: &Machine) -> Vec<Secret> {
    let mut keys = Vec::new();
    for (name, value) in preset.passed(machine) {
        let Some(value) = value.to_str() else { continue };
        if is_key(&OsStr::to_string_lossy(name)) {
            keys.push(Secret::in_use(value));
        }
        keys.extend(within(value));
    }
    keys
}

/// The keys in a value that is a whole configuration in JSON.
pub(crate) fn within(value: &str) -> Vec<Secret> {
    let mut keys = Vec::new();
    if value.trim_start().starts_with('{')
        && let Ok(settings) = serde_json::from_str::<Value>(value)
    {
        collect(&settings, false, DEEPEST, &mut keys);
    }
    keys
}

fn collect(value: &Value, named: bool, depth: usize, keys: &mut Vec<Secret>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::String(text) if named && text.len() > 3 => {
            keys.push(Secret::in_use(text.as_str()));
            if let Some((_, token)) = text.trim().split_once(' ') {
                keys.push(Secret::in_use(token.trim()));
            }
        }
        Value::Array(list) => list.iter().for_each(|one| collect(one, named, depth - 1, keys)),
        Value::Object(members) => {
            members.iter().for_each(|(name, one)| collect(one, is_key(name), depth - 1, keys));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_settings_too() {
        let variables = [
            (
                "OPENCODE_CONFIG_CONTENT",
                r#"{"a":{"apiKey":"sk-1234","name":"Key of mine"},"headers":{"Authorization":"Bearer abcdef"}}"#,
            ),
            ("XDG_DATA_HOME", "/home/u/data"),
            ("CODEX_API_KEY", "of another preset"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into())).into();
        let machine = Machine::new(variables, "/w".into());
        let preset = AcpPreset::named("opencode").unwrap();
        let keys = passed(preset, &machine);
        let keys: Vec<&str> = keys.iter().map(Secret::expose).collect();
        assert_eq!(keys, ["sk-1234", "Bearer abcdef", "abcdef"]);
        assert!(within("{ no JSON").is_empty() && within("[1]").is_empty());
    }
}
