//! Owns the arguments of a call as a tool reads them: which members it takes, and what is said about those that are no
//! good. Harmless differences (a number in quotes, another usual name) are taken as meant.

use std::fmt::Display;

use serde_json::{Map, Value};
use toolway_bridge::RawJson;

use super::output::ToolOutput;

/// Other usual names for members, taken where the tool has the first one and not the second.
const ALIASES: [(&str, &[&str]); 12] = [
    ("path", &["file_path", "filePath", "target_file", "file", "directory", "dir", "target_directory"]),
    ("command", &["cmd"]),
    ("oldText", &["old_string", "oldString", "old_text", "old_str"]),
    ("newText", &["new_string", "newString", "new_text", "new_str"]),
    ("replaceAll", &["replace_all"]),
    ("content", &["contents", "text"]),
    ("pattern", &["query", "regex", "glob_pattern"]),
    ("timeoutMs", &["timeout_ms"]),
    ("ignoreCase", &["case_insensitive", "-i", "ignore_case"]),
    ("outputMode", &["output_mode", "mode"]),
    ("cwd", &["workdir", "working_directory", "workingDirectory"]),
    ("background", &["run_in_background", "isBackground", "is_background"]),
];

/// The arguments of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    members: Map<String, Value>,
}

/// What is wrong with one argument: an answer to the model.
type Read<T> = Result<T, ToolOutput>;

impl Arguments {
    /// The bytes that the model sent. Nothing at all counts as no arguments.
    pub fn parse(raw: &str) -> Result<Self, ToolOutput> {
        if raw.trim().is_empty() {
            return Ok(Self { members: Map::new() });
        }
        match serde_json::from_str::<Value>(raw) {
            Ok(Value::Object(members)) => Ok(Self { members }),
            Ok(Value::Null) => Ok(Self { members: Map::new() }),
            // Some models write the object as a text once more.
            Ok(Value::String(text)) if text.trim_start().starts_with('{') => Self::parse(&text),
            Ok(other) => {
                Err(ToolOutput::error(format!("The arguments must be a JSON object; {} came.", kind(&other))))
            }
            Err(error) => Err(ToolOutput::error(format!(
                "The arguments are no JSON ({error}). Call the tool again with one whole JSON object."
            ))),
        }
    }

    /// The same from what was kept.
    pub fn from_raw(raw: &RawJson) -> Result<Self, ToolOutput> {
        Self::parse(raw.text())
    }

    /// From a value, for those who build a call.
    pub fn of(value: Value) -> Result<Self, ToolOutput> {
        match value {
            Value::Object(members) => Ok(Self { members }),
            other => Self::parse(&other.to_string()),
        }
    }

    /// The same with another text for one member.
    pub(crate) fn with(&self, name: &str, text: &str) -> Self {
        let mut members = self.members.clone();
        members.insert(name.to_owned(), Value::String(text.to_owned()));
        Self { members }
    }

    /// Refuses members that the tool does not have, so that none is ignored in silence. `null` counts as absent.
    pub(crate) fn only(&self, known: &[&str]) -> Read<()> {
        let unknown = self.members.iter().find(|(name, value)| {
            !value.is_null()
                && !known.contains(&name.as_str())
                && !known
                    .iter()
                    .any(|one| !self.members.contains_key(*one) && aliases(one).contains(&name.as_str()))
        });
        match unknown {
            None => Ok(()),
            Some((name, _)) => {
                Err(fault(name, format!("there is no such argument; the arguments are {}", known.join(", "))))
            }
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let names = std::iter::once(name).chain(aliases(name).iter().copied());
        names.filter_map(|name| self.members.get(name)).find(|value| !value.is_null())
    }

    /// A text, empty or not.
    pub(crate) fn text(&self, name: &str) -> Read<Option<String>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::Bool(value)) => Ok(Some(value.to_string())),
            Some(other) => Err(expected(name, "a text", other)),
        }
    }

    /// A text that must be there and must not be empty.
    pub(crate) fn required(&self, name: &str) -> Read<String> {
        match self.text(name)? {
            Some(text) if text.trim().is_empty() => Err(fault(name, "must not be empty")),
            Some(text) => Ok(text),
            None => Err(fault(name, "is missing")),
        }
    }

    /// A text that must be there and may be empty.
    pub(crate) fn required_or_empty(&self, name: &str) -> Read<String> {
        self.text(name)?.ok_or_else(|| fault(name, "is missing"))
    }

    /// Yes or no.
    pub(crate) fn flag(&self, name: &str) -> Read<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "1" => Ok(true),
                "false" | "no" | "0" | "" => Ok(false),
                _ => Err(fault(name, format!("must be true or false, not {text:?}"))),
            },
            Some(Value::Number(number)) if number.as_u64().is_some_and(|number| number < 2) => {
                Ok(number.as_u64() == Some(1))
            }
            Some(other) => Err(expected(name, "true or false", other)),
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn count(&self, name: &str) -> Read<Option<u64>> {
        let whole = |number: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
            let count = number as u64;
            ((0.0..9e15).contains(&number) && number.fract() == 0.0).then_some(count)
        };
        let found = match self.get(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        let given = self.get(name).map(Value::to_string).unwrap_or_default();
        found.map(Some).ok_or_else(|| fault(name, format!("must be a whole number from 0, not {given}")))
    }

    /// One of these words.
    pub(crate) fn word(&self, name: &str, words: &[&'static str]) -> Read<Option<&'static str>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(text.trim()));
        found
            .copied()
            .map(Some)
            .ok_or_else(|| fault(name, format!("must be one of {}, not {text:?}", words.join(", "))))
    }

    /// A list of texts; one text alone counts as a list of one.
    pub(crate) fn texts(&self, name: &str) -> Read<Vec<String>> {
        match self.list(name)? {
            None => Ok(Vec::new()),
            Some(values) => values
                .iter()
                .enumerate()
                .map(|(index, value)| match value {
                    Value::String(text) => Ok(text.clone()),
                    other => Err(expected(&format!("{name}[{index}]"), "a text", other)),
                })
                .collect(),
        }
    }

    /// A list of objects, each read as arguments.
    pub(crate) fn objects(&self, name: &str) -> Read<Option<Vec<Self>>> {
        let Some(values) = self.list(name)? else { return Ok(None) };
        let objects = values.into_iter().enumerate().map(|(index, value)| match value {
            Value::Object(members) => Ok(Self { members }),
            other => Err(expected(&format!("{name}[{index}]"), "an object", &other)),
        });
        objects.collect::<Read<Vec<_>>>().map(Some)
    }

    fn list(&self, name: &str) -> Read<Option<Vec<Value>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values.clone())),
            Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
                Ok(Value::Array(values)) => Ok(Some(values)),
                _ => Ok(Some(vec![Value::String(text.clone())])),
            },
            Some(object @ Value::Object(_)) => Ok(Some(vec![object.clone()])),
            Some(other) => Err(expected(name, "a list", other)),
        }
    }
}

fn aliases(name: &str) -> &'static [&'static str] {
    ALIASES.iter().find(|(own, _)| *own == name).map_or(&[], |(_, others)| others)
}

/// The answer about an argument that is no good.
pub(crate) fn fault(name: &str, message: impl Display) -> ToolOutput {
    ToolOutput::error(format!("Argument `{name}`: {message}."))
}

fn expected(name: &str, what: &str, value: &Value) -> ToolOutput {
    fault(name, format!("must be {what}; {} came", kind(value)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args(value: Value) -> Arguments {
        Arguments::of(value).unwrap()
    }

    #[test]
    fn harmless_differences_are_taken_as_meant() {
        let args =
            args(json!({"limit": "12", "offset": 3.0, "background": "true", "file_path": "a", "x": 1}));
        assert_eq!(args.count("limit").unwrap(), Some(12));
        assert_eq!(args.count("offset").unwrap(), Some(3));
        assert!(args.flag("background").unwrap());
        assert_eq!(args.required("path").unwrap(), "a");
        assert!(args.flag("x").unwrap());
        assert_eq!(args.text("x").unwrap().as_deref(), Some("1"));
        assert_eq!(Arguments::parse("\"{\\\"a\\\":1}\"").unwrap().count("a").unwrap(), Some(1));
        assert_eq!(Arguments::parse(" ").unwrap(), Arguments::parse("null").unwrap());
    }

    #[test]
    fn lists_come_as_lists_as_texts_of_lists_and_alone() {
        for value in [json!({"g": ["a", "b"]}), json!({"g": "[\"a\",\"b\"]"})] {
            assert_eq!(args(value).texts("g").unwrap(), ["a", "b"]);
        }
        assert_eq!(args(json!({"g": "*.rs"})).texts("g").unwrap(), ["*.rs"]);
        assert_eq!(args(json!({"e": {"a": 1}})).objects("e").unwrap().unwrap().len(), 1);
    }

    #[test]
    fn faults_name_the_argument_and_what_is_wanted() {
        let args =
            args(json!({"path": ["a"], "limit": -1, "flag": "maybe", "mode": "x", "empty": " ", "l": [1]}));
        let table = [
            (args.required("path").unwrap_err(), "Argument `path`: must be a text; a list came."),
            (args.required("none").unwrap_err(), "Argument `none`: is missing."),
            (args.required("empty").unwrap_err(), "Argument `empty`: must not be empty."),
            (args.count("limit").unwrap_err(), "Argument `limit`: must be a whole number from 0, not -1."),
            (args.flag("flag").unwrap_err(), "Argument `flag`: must be true or false, not \"maybe\"."),
            (args.word("mode", &["a", "b"]).unwrap_err(), "Argument `mode`: must be one of a, b, not \"x\"."),
            (args.texts("l").unwrap_err(), "Argument `l[0]`: must be a text; a number came."),
        ];
        for (output, text) in table {
            assert!(output.is_error);
            assert_eq!(output.text, text);
        }
    }

    #[test]
    fn unknown_arguments_are_refused_and_known_ones_listed() {
        let output = args(json!({"path": "a", "colour": 1})).only(&["path", "limit"]).unwrap_err();
        assert_eq!(
            output.text,
            "Argument `colour`: there is no such argument; the arguments are path, limit."
        );
        args(json!({"file_path": "a", "colour": null})).only(&["path"]).unwrap();
        // Not beside the name that it stands for: which one is meant?
        args(json!({"path": "a", "file_path": "b"})).only(&["path"]).unwrap_err();
    }

    #[test]
    fn what_is_no_object_is_said() {
        for raw in ["[1]", "{\"a\":", "3"] {
            assert!(Arguments::parse(raw).unwrap_err().is_error, "{raw}");
        }
    }
}
