//! Owns `chat.json`: the commands that a chat offers its agent as tools, and the editor. It runs nothing.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolway_config::{Format, read_bytes, read_tolerant};

use super::tools::OWN;
use crate::compose::UsageError;

/// The whole file. Members that are not known are errors.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ChatConfig {
    /// Tools that run a program.
    #[serde(default)]
    pub(super) commands: Vec<CommandTool>,
    /// The command line of the editor, before VISUAL and EDITOR.
    #[serde(default)]
    pub(super) editor: Option<String>,
}

/// A tool that runs a program, without a shell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CommandTool {
    /// What the agent calls.
    pub(super) name: String,
    /// What it does.
    pub(super) description: String,
    /// The program.
    pub(super) command: String,
    /// Its arguments; `{name}` is replaced by that argument of the call.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// JSON Schema of the call's arguments: an object.
    #[serde(default)]
    pub(super) parameters: Option<Map<String, Value>>,
    /// Where it runs; without it, where the agent works.
    #[serde(default)]
    pub(super) cwd: Option<String>,
    /// How long it may take.
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
    /// The user is asked each time.
    #[serde(default)]
    pub(super) confirm: bool,
}

impl ChatConfig {
    /// Reads the file; nothing where there is none and none was named.
    pub(super) fn read(path: &Path, named: bool) -> Result<Self, UsageError> {
        if !named && !path.exists() {
            return Ok(Self::default());
        }
        let wrong = |reason: String| UsageError::new(path.display().to_string(), reason);
        let bytes = read_bytes(path).map_err(|problem| wrong(problem.message))?;
        let (root, _) = read_tolerant(&bytes, Format::Jsonc).map_err(|problems| {
            let first = problems.into_iter().next();
            wrong(first.map_or_else(|| "is no JSON".to_owned(), |problem| problem.to_string()))
        })?;
        let config: Self =
            serde_json::from_value(root.to_json()).map_err(|error| wrong(error.to_string()))?;
        config.check().map_err(wrong)?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let mut names: Vec<&str> = OWN.to_vec();
        for tool in &self.commands {
            let name = tool.name.as_str();
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || name.len() > 48 || !name.chars().all(is_word) {
                return Err(format!("{name:?} is no name of a tool: 48 of A-Z a-z 0-9 _ - at most"));
            }
            if names.contains(&name) {
                return Err(format!("there is already a tool {name:?}"));
            }
            names.push(name);
            if tool.command.trim().is_empty() {
                return Err(format!("tool {name:?}: command is empty"));
            }
            let properties = tool.properties();
            for placeholder in tool.args.iter().flat_map(|arg| placeholders(arg)) {
                if !properties.is_some_and(|properties| properties.contains_key(&placeholder)) {
                    return Err(format!(
                        "tool {name:?}: args has {{{placeholder}}}, and parameters has no property of that name"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl CommandTool {
    fn properties(&self) -> Option<&Map<String, Value>> {
        self.parameters.as_ref()?.get("properties")?.as_object()
    }

    /// The arguments of the program for a call.
    pub(super) fn fill(&self, values: &Map<String, Value>) -> Result<Vec<String>, String> {
        let required =
            self.parameters.as_ref().and_then(|schema| schema.get("required")).and_then(Value::as_array);
        let missing =
            required.into_iter().flatten().filter_map(Value::as_str).find(|name| !values.contains_key(*name));
        if let Some(missing) = missing {
            return Err(format!("argument `{missing}` is missing"));
        }
        for (name, value) in values {
            let Some(schema) = self.properties().and_then(|properties| properties.get(name)) else {
                return Err(format!("there is no argument `{name}`"));
            };
            if let Some(wanted) = schema.get("type").and_then(Value::as_str)
                && !fits(value, wanted)
            {
                return Err(format!("argument `{name}` must be of type {wanted}"));
            }
            let choices = schema.get("enum").and_then(Value::as_array);
            if choices.is_some_and(|choices| !choices.contains(value)) {
                return Err(format!("argument `{name}` is none of those that may be"));
            }
        }
        let filled: Vec<String> = self.args.iter().flat_map(|arg| fill(arg, values)).collect();
        if filled.iter().any(|arg| arg.contains('\0')) {
            Err("an argument holds a NUL".to_owned())
        } else {
            Ok(filled)
        }
    }
}

fn fits(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Parts of an argument: text, and names in braces. `{{` and `}}` are braces.
fn parts(arg: &str) -> Vec<Result<String, String>> {
    let mut parts: Vec<Result<String, String>> = Vec::new();
    let mut text = String::new();
    let mut rest = arg;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        if matches!(letter, '{' | '}') && after.starts_with(letter) {
            text.push(letter);
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        if letter == '{'
            && let Some((name, behind)) = after.split_once('}')
            && !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        {
            if !text.is_empty() {
                parts.push(Ok(std::mem::take(&mut text)));
            }
            parts.push(Err(name.to_owned()));
            rest = behind;
            continue;
        }
        text.push(letter);
        rest = after;
    }
    if !text.is_empty() || parts.is_empty() {
        parts.push(Ok(text));
    }
    parts
}

fn placeholders(arg: &str) -> Vec<String> {
    parts(arg).into_iter().filter_map(Result::err).collect()
}

/// One argument of the program, or as many as a list has. What is a whole argument and was not given is left out.
fn fill(arg: &str, values: &Map<String, Value>) -> Vec<String> {
    let parts = parts(arg);
    if let [Err(name)] = parts.as_slice() {
        return match values.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.iter().map(text).collect(),
            Some(value) => vec![text(value)],
        };
    }
    let part = |part: Result<String, String>| match part {
        Ok(text) => text,
        Err(name) => values.get(&name).map(text).unwrap_or_default(),
    };
    vec![parts.into_iter().map(part).collect()]
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: &Value) -> Result<ChatConfig, String> {
        let config: ChatConfig = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        config.check().map(|()| config)
    }

    fn tool() -> Value {
        json!({"name": "grepper", "description": "d", "command": "grep", "args": ["-n", "--{mode}", "{files}", "{{x}}", "{pattern}"],
            "parameters": {"type": "object", "required": ["pattern"], "properties": {
                "pattern": {"type": "string"}, "files": {"type": "array"}, "mode": {"enum": ["fast", "slow"]}}}})
    }

    #[test]
    fn arguments_are_whole_arguments_whatever_is_in_them() {
        let config = config(&json!({"commands": [tool()]})).unwrap();
        let fill = |values: Value| config.commands[0].fill(values.as_object().unwrap());
        assert_eq!(
            fill(json!({"pattern": "a b; rm -rf $HOME", "files": ["x y", "z"], "mode": "fast"})).unwrap(),
            ["-n", "--fast", "x y", "z", "{x}", "a b; rm -rf $HOME"]
        );
        assert_eq!(fill(json!({"pattern": "p"})).unwrap(), ["-n", "--", "{x}", "p"]);
        for (values, fault) in [
            (json!({}), "`pattern` is missing"),
            (json!({"pattern": 1}), "must be of type string"),
            (json!({"pattern": "p", "more": 1}), "no argument `more`"),
            (json!({"pattern": "p", "mode": "odd"}), "none of those"),
            (json!({"pattern": "p\u{0}"}), "NUL"),
        ] {
            let told = fill(values).unwrap_err();
            assert!(told.contains(fault), "{told}");
        }
    }

    #[test]
    fn a_file_with_a_fault_is_refused() {
        let with = |member: &str, value: Value| {
            let mut tool = tool();
            tool[member] = value;
            config(&json!({"commands": [tool]})).unwrap_err()
        };
        assert!(with("name", json!("todo")).contains("already a tool"));
        assert!(with("name", json!("a b")).contains("no name of a tool"));
        assert!(with("args", json!(["{other}"])).contains("{other}"));
        assert!(with("shell", json!(true)).contains("unknown field"));
        assert!(with("command", json!(" ")).contains("command is empty"));
    }
}
