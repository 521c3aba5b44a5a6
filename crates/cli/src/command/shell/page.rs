//! Owns what is read from a definition that a server sent: leniently, since servers differ. Pure.

use serde_json::Value;

use toolway_proxy::gateway::{
    MAX_NAME_CHARS, Naming, RawLists, ServerCatalogue, ServerConfig, Shaping, ToolFilter,
};

use super::arguments::rows;
use super::near::near;
use super::refusal::Refusal;
use super::session::Choice;

/// A tool, a prompt, a resource or a template, as the server described it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// As the server sent it.
    pub(crate) value: Value,
    /// The name, and the description, that the settings give it.
    alias: [Option<String>; 2],
}

/// The definitions in a list; what is no object is left out.
pub(crate) fn definitions<B: AsRef<[u8]>>(list: &[B]) -> Vec<Definition> {
    let parsed = list.iter().filter_map(|raw| serde_json::from_slice::<Value>(raw.as_ref()).ok());
    parsed.filter(Value::is_object).map(|value| Definition { value, alias: [None, None] }).collect()
}

/// The tools in a list that the settings show, as they show them.
pub(crate) fn offered<B: AsRef<[u8]>>(list: &[B], filter: &ToolFilter) -> Vec<Definition> {
    let mut tools = definitions(list);
    tools.retain(|tool| filter.hides(tool.own()).is_none());
    for tool in &mut tools {
        let own = tool.own().to_owned();
        let renamed = filter.rename.get(&own).cloned();
        tool.alias = [renamed, filter.description(&own).map(str::to_owned)];
    }
    tools
}

/// What was not as it should be in a server's lists, and what the gateway would keep from clients, with the reasons.
pub(crate) fn remarks(config: &ServerConfig, lists: &RawLists) -> Vec<String> {
    let naming = Naming::new(MAX_NAME_CHARS, false);
    let shaping = Shaping { naming, filter: &config.filter, relax_output: false, pins: None };
    let catalogue = ServerCatalogue::new(&config.name, lists, shaping);
    let refused = catalogue.refused().iter().map(|refused| format!("{refused}: kept from clients"));
    catalogue.notes().iter().cloned().chain(refused).collect()
}

/// The tool of this name, or a refusal that proposes another.
pub(crate) fn find_tool<'d>(
    choice: &Choice<'_>,
    name: &str,
    tools: &'d [Definition],
) -> Result<&'d Definition, Refusal> {
    let server = choice.config.name.as_str();
    match (choice.config.filter.hides(name), tools.iter().any(|tool| tool.name() == name)) {
        (Some(hidden), false) => {
            Err(Refusal::usage(format!("tool {name:?} of server {server:?} {hidden} (its settings, tools)")))
        }
        _ => find(
            server,
            name,
            tools,
            "tool",
            &format!("toolway tools {} shows its {}", choice.spelled, tools.len()),
        ),
    }
}

/// The prompt of this name, or a refusal that proposes another.
pub(crate) fn find_prompt<'d>(
    choice: &Choice<'_>,
    name: &str,
    prompts: &'d [Definition],
) -> Result<&'d Definition, Refusal> {
    let otherwise = format!("toolway prompt {} shows its {}", choice.spelled, prompts.len());
    find(&choice.config.name, name, prompts, "prompt", &otherwise)
}

fn find<'d>(
    server: &str,
    name: &str,
    all: &'d [Definition],
    what: &str,
    otherwise: &str,
) -> Result<&'d Definition, Refusal> {
    let named = || all.iter().find(|own| own.name() == name);
    if let Some(found) = named().or_else(|| all.iter().find(|own| own.own() == name)) {
        return Ok(found);
    }
    let nearest = near(name, all.iter().map(Definition::name));
    let hint = if nearest.is_empty() {
        otherwise.to_owned()
    } else {
        format!("did you mean {}?", nearest.join(" or "))
    };
    Err(Refusal::usage(format!("server {server:?} has no {what} {name:?}")).with_hint(hint))
}

impl Definition {
    /// A member that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.value.get(name).and_then(Value::as_str)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.alias[0].as_deref().unwrap_or_else(|| self.own())
    }

    /// Its name as the server has it.
    pub(crate) fn own(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    /// What it is, whole.
    pub(crate) fn description(&self) -> Option<&str> {
        self.alias[1].as_deref().or_else(|| self.text("description"))
    }

    /// The first line that says what it is.
    pub(crate) fn summary(&self) -> &str {
        let annotated = self.value.pointer("/annotations/title").and_then(Value::as_str);
        let text = self.description().or(self.text("title")).or(annotated).unwrap_or_default();
        text.trim().lines().next().unwrap_or_default()
    }

    /// The schema of its arguments; an empty one where there is none.
    pub(crate) fn input_schema(&self) -> &Value {
        self.value.get("inputSchema").unwrap_or(&Value::Null)
    }

    /// Its arguments as rows: name, type, what it is.
    pub(crate) fn arguments(&self) -> Vec<Vec<String>> {
        rows(self.input_schema())
    }

    /// The arguments that a call must have, as they are typed.
    pub(crate) fn example(&self) -> String {
        let required = self.input_schema().get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        names.fold(String::new(), |line, name| line + " " + name + "=...")
    }

    /// The arguments of a prompt, as the schema of an object of strings.
    pub(crate) fn prompt_schema(&self) -> Value {
        let arguments = self.value.get("arguments").and_then(Value::as_array);
        let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
        for argument in arguments.into_iter().flatten() {
            let Some(name) = argument.get("name").and_then(Value::as_str) else { continue };
            let mut property = serde_json::json!({ "type": "string" });
            if let (Some(text), Some(members)) = (argument.get("description"), property.as_object_mut()) {
                members.insert("description".to_owned(), text.clone());
            }
            properties.insert(name.to_owned(), property);
            if argument.get("required") == Some(&Value::Bool(true)) {
                required.push(Value::from(name));
            }
        }
        serde_json::json!({ "type": "object", "properties": properties, "required": required })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read_leniently() {
        let list = [&br#"{"name":"a","description":"\n one\ntwo"}"#[..], b"1", b"{", b"{}"];
        let read = definitions(&list);
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].name(), read[0].summary()), ("a", "one"));
        assert_eq!((read[1].name(), read[1].summary()), ("", ""));
    }

    #[test]
    fn a_prompts_arguments_are_strings() {
        let value =
            serde_json::json!({"name": "p", "arguments": [{"name": "a", "required": true}, {"name": "b"}]});
        let expected = serde_json::json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["a"]
        });
        assert_eq!(Definition { value, alias: [None, None] }.prompt_schema(), expected);
    }
}
