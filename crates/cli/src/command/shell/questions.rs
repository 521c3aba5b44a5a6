//! Owns what a server asks a person (MCP 2025-11-25 "client/elicitation"): the form's fields, one after the other, and
//! the answer. Knows no connection; how a line is asked for is given to it.

mod field;

use serde_json::{Map, Value, json};

use crate::show::{one_line, safe};
use field::Field;

/// Attempts at a field before the whole form is declined.
const ATTEMPTS: usize = 5;
/// More fields are no form that a person is asked.
const MOST_FIELDS: usize = 64;

/// A line that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// What was typed.
    Typed(String),
    /// The end of input: the person wants no more.
    End,
    /// The program is told to end.
    Signal,
}

/// A person who can be asked. The terminal, and a script in tests.
pub(super) trait Person {
    /// Shows text, which is safe for a terminal.
    fn tell(&mut self, text: &str);
    /// Shows text and waits for a line.
    fn ask(&mut self, prompt: &str) -> Line;
}

/// The result of `elicitation/create` with these params.
pub(super) fn elicit(server: &str, params: &Value, person: &mut dyn Person) -> Value {
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
    person.tell(&format!("\nserver {server:?} asks:\n{}\n", safe(message)));
    if params.get("mode").and_then(Value::as_str) == Some("url") {
        return visit(params, person);
    }
    match form(params.get("requestedSchema").unwrap_or(&Value::Null), person) {
        Ok(content) => json!({ "action": "accept", "content": content }),
        Err(Stop::Decline) => json!({ "action": "decline" }),
        Err(Stop::Cancel) => json!({ "action": "cancel" }),
    }
}

/// Why there is no content.
#[derive(Debug)]
enum Stop {
    Decline,
    Cancel,
}

fn visit(params: &Value, person: &mut dyn Person) -> Value {
    let url = params.get("url").and_then(Value::as_str).unwrap_or_default();
    person.tell(&format!(
        "It wants you to open this address, which sees nothing of this session:\n{}\n",
        one_line(url, 2000)
    ));
    match yes(person, "Have you opened it, and may the server go on? [y/N] ", false) {
        Ok(true) => json!({ "action": "accept" }),
        Ok(false) | Err(Stop::Decline) => json!({ "action": "decline" }),
        Err(Stop::Cancel) => json!({ "action": "cancel" }),
    }
}

fn form(schema: &Value, person: &mut dyn Person) -> Result<Map<String, Value>, Stop> {
    let fields = Field::all(schema);
    if fields.is_empty() {
        return if yes(person, "Accept? [y/N] ", false)? { Ok(Map::new()) } else { Err(Stop::Decline) };
    }
    if fields.len() > MOST_FIELDS {
        person.tell(&format!("It has {} fields, which is no form: declined.\n", fields.len()));
        return Err(Stop::Decline);
    }
    person.tell("Ctrl-D declines; an empty line leaves a field out, or takes what stands in [brackets].\n");
    let mut content = Map::new();
    for field in &fields {
        if let Some(value) = fill(field, person)? {
            content.insert(field.name.clone(), value);
        }
    }
    if yes(person, "Send these answers? [Y/n] ", true)? { Ok(content) } else { Err(Stop::Decline) }
}

fn fill(field: &Field, person: &mut dyn Person) -> Result<Option<Value>, Stop> {
    for _ in 0..ATTEMPTS {
        match person.ask(&field.prompt()) {
            Line::End => return Err(Stop::Decline),
            Line::Signal => return Err(Stop::Cancel),
            Line::Typed(text) => match field.parse(&text) {
                Ok(value) => return Ok(value),
                Err(reason) => person.tell(&format!("  {reason}\n")),
            },
        }
    }
    Err(Stop::Decline)
}

fn yes(person: &mut dyn Person, prompt: &str, default: bool) -> Result<bool, Stop> {
    match person.ask(prompt) {
        Line::Typed(text) => Ok(match text.trim().to_ascii_lowercase().as_str() {
            "" => default,
            "y" | "yes" => true,
            _ => false,
        }),
        Line::End => Err(Stop::Decline),
        Line::Signal => Err(Stop::Cancel),
    }
}

#[cfg(test)]
mod tests;
