//! Owns one change of a settings file: where, to what, and the new text. What it does not touch stays as it is written,
//! byte for byte. Knows no file.

use serde_json::value::RawValue;

use crate::error::BridgeError;
use crate::json::RawJson;

use super::Settings;
use super::section::members;

/// A setting that is to be written, or to be taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    path: Vec<String>,
    value: Option<RawJson>,
}

impl SettingChange {
    /// Gives a setting a value: `["tools", "bridge", "enabled"]`. Refused is what reading would leave out.
    pub fn set(path: &[&str], value: RawJson) -> Result<Self, BridgeError> {
        let change = Self { path: path.iter().map(|key| (*key).to_owned()).collect(), value: Some(value) };
        if path.is_empty() {
            return Err(BridgeError::SettingRefused("it has no key".to_owned()));
        }
        let alone = change.apply("{}").map_err(BridgeError::SettingRefused)?;
        if let Some(warning) = Settings::parse(alone.as_bytes()).1.first() {
            return Err(BridgeError::SettingRefused(warning.to_string()));
        }
        // A group written whole would take away the settings in it that nobody spoke of. The only setting that is an
        // object is a list of models.
        let is_object = change.value.as_ref().is_some_and(RawJson::is_object);
        if is_object && path != ["models", "fastDefaults"] {
            let group = format!("{}: is a group of settings, not one of them", path.join("."));
            return Err(BridgeError::SettingRefused(group));
        }
        Ok(change)
    }

    /// Takes a setting away, so that its default counts. One that is not there is no error.
    pub fn remove(path: &[&str]) -> Self {
        Self { path: path.iter().map(|key| (*key).to_owned()).collect(), value: None }
    }

    /// The keys of a path that is written with points. What follows `models.fastDefaults` is one key: the name of a
    /// model, which may have points of its own.
    pub fn keys(path: &str) -> Vec<&str> {
        const MODELS: &str = "models.fastDefaults.";
        match path.strip_prefix(MODELS) {
            Some(model) => MODELS.trim_end_matches('.').split('.').chain([model]).collect(),
            None => path.split('.').collect(),
        }
    }

    /// The text of the file with this change; else what keeps it from being one.
    pub(super) fn apply(&self, text: &str) -> Result<String, String> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| "is not well-formed JSON".to_owned())?;
        let indent = indent(text);
        self.rewrite(Some(raw), 0, indent)
    }

    /// The object at this depth of the path, written anew with one member changed.
    fn rewrite(&self, raw: Option<&RawValue>, depth: usize, indent: &str) -> Result<String, String> {
        let Some(key) = self.path.get(depth) else {
            return Ok(self.value.as_ref().map_or_else(String::new, |value| value.text().to_owned()));
        };
        let mut members: Vec<(String, String)> = match raw {
            None => Vec::new(),
            Some(raw) => {
                let members = members(raw).ok_or_else(|| self.no_object(depth))?;
                members.into_iter().map(|(key, raw)| (key, raw.get().to_owned())).collect()
            }
        };
        let is_last = depth + 1 == self.path.len();
        if is_last && self.value.is_none() {
            members.retain(|(name, _)| name != key);
            return Ok(object(&members, depth, indent));
        }
        // Of several members of one name the last one counts.
        let place = members.iter().rposition(|(name, _)| name == key);
        if place.is_none() && self.value.is_none() {
            return Ok(object(&members, depth, indent));
        }
        let old = place.and_then(|place| members.get(place)).map(|(_, text)| text.clone());
        let old: Option<&RawValue> = old.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let new = self.rewrite(old, depth + 1, indent)?;
        match place.and_then(|place| members.get_mut(place)) {
            Some((_, text)) => *text = new,
            None => members.push((key.clone(), new)),
        }
        Ok(object(&members, depth, indent))
    }

    fn no_object(&self, depth: usize) -> String {
        match self.path.get(..depth) {
            Some([]) | None => "holds no JSON object".to_owned(),
            Some(path) => format!("has no object in {}", path.join(".")),
        }
    }
}

/// An object of members whose values are written already.
fn object(members: &[(String, String)], depth: usize, indent: &str) -> String {
    if members.is_empty() {
        return "{}".to_owned();
    }
    let inner = indent.repeat(depth + 1);
    let members = members
        .iter()
        .map(|(key, value)| format!("{inner}{}: {value}", serde_json::Value::from(key.as_str())));
    format!("{{\n{}\n{}}}", members.collect::<Vec<_>>().join(",\n"), indent.repeat(depth))
}

/// What the file indents with: the white space before its first key, else two spaces.
fn indent(text: &str) -> &str {
    let before = text.split('"').next().unwrap_or_default();
    let found = before.rsplit_once('\n').map(|(_, space)| space).unwrap_or_default();
    let is_space = (1..=8).contains(&found.len()) && found.bytes().all(|byte| byte == b' ' || byte == b'\t');
    if is_space { found } else { "  " }
}
