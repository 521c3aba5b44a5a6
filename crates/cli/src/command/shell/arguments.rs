//! Owns the arguments of a call as they are typed: a JSON object, and `NAME=VALUE` pairs whose types the tool's schema
//! gives. Pure: files and stdin have been read before.

mod schema;

use serde_json::{Map, Value};

use super::near::near;
use schema::{Kind, Schema};

/// One word of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// A JSON text, and where it came from.
    Json {
        /// The text.
        text: String,
        /// `the argument`, a file's name, `stdin`.
        from: String,
    },
    /// `NAME=VALUE`.
    Pair(String, String),
    /// `NAME:=JSON`.
    Exact(String, String),
}

/// What a call is given, and what is worth saying about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Built {
    /// The arguments.
    pub(crate) arguments: Map<String, Value>,
    /// Notes for the person.
    pub(crate) notes: Vec<String>,
}

/// Why a call is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What is wrong.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) hint: Option<String>,
}

impl Wrong {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None }
    }

    fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// The arguments that these words mean for a tool with this `inputSchema`; later words win.
pub(crate) fn build(words: &[Word], input_schema: &Value) -> Result<Built, Wrong> {
    let schema = Schema::new(input_schema);
    let mut built = Built::default();
    // Arrays that are given item by item.
    let mut gathered: Vec<String> = Vec::new();
    for word in words {
        match word {
            Word::Json { text, from } => built.arguments.extend(object(text, from)?),
            Word::Exact(name, text) => {
                known(&schema, name, &mut built.notes)?;
                let value = serde_json::from_str(text)
                    .map_err(|error| Wrong::new(format!("{name}: {text:?} is no JSON: {error}")))?;
                built.arguments.insert(name.clone(), value);
            }
            Word::Pair(name, text) => {
                known(&schema, name, &mut built.notes)?;
                match schema.value(name, text)? {
                    Kind::Whole(value) => drop(built.arguments.insert(name.clone(), value)),
                    Kind::Item(value) => {
                        let list = built.arguments.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                        if !gathered.contains(name) {
                            *list = Value::Array(Vec::new());
                            gathered.push(name.clone());
                        }
                        if let Value::Array(items) = list {
                            items.push(value);
                        }
                    }
                }
            }
        }
    }
    let missing: Vec<&str> =
        schema.required().into_iter().filter(|name| !built.arguments.contains_key(*name)).collect();
    if missing.is_empty() {
        return Ok(built);
    }
    let said: Vec<String> = missing.iter().map(|name| schema.described(name)).collect();
    let form: Vec<String> = missing.iter().map(|name| format!("{name}=...")).collect();
    let plural = if missing.len() == 1 { "argument is" } else { "arguments are" };
    Err(Wrong::new(format!("{} required {plural} missing: {}", missing.len(), said.join(", ")))
        .with_hint(Some(format!("add {}", form.join(" ")))))
}

/// The arguments of a schema as rows for a person: name, type, what it is.
pub(crate) fn rows(input_schema: &Value) -> Vec<Vec<String>> {
    let schema = Schema::new(input_schema);
    schema.names().into_iter().map(|name| schema.row(name)).collect()
}

fn object(text: &str, from: &str) -> Result<Map<String, Value>, Wrong> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Wrong::new(format!("{from} is JSON, but no object"))
            .with_hint(Some("arguments are an object, as in '{\"path\": \"x\"}'".to_owned()))),
        Err(error) => Err(Wrong::new(format!("{from} is no JSON: {error}"))
            .with_hint(Some("give a JSON object, @FILE, - for stdin, or NAME=VALUE".to_owned()))),
    }
}

/// A name that the schema does not have is refused where the schema is closed, and mentioned elsewhere.
fn known(schema: &Schema<'_>, name: &str, notes: &mut Vec<String>) -> Result<(), Wrong> {
    let names = schema.names();
    if names.is_empty() && !schema.closed() || names.contains(&name) {
        return Ok(());
    }
    let nearest = near(name, names.iter().copied());
    let reason = format!("the tool has no argument {name:?}");
    let hint = match (nearest.first(), names.is_empty()) {
        (Some(nearest), _) => format!("did you mean {nearest}?"),
        (None, true) => "it takes no arguments".to_owned(),
        (None, false) => format!("it has {}", names.join(", ")),
    };
    if schema.closed() {
        return Err(Wrong::new(reason).with_hint(Some(hint)));
    }
    if !schema.open() {
        notes.push(format!("{reason}; it is passed all the same ({hint})"));
    }
    Ok(())
}

/// A word's meaning; `@FILE` and `-` are read by the caller.
pub(crate) fn pair(word: &str) -> Option<Word> {
    let (name, value) = word.split_once('=')?;
    let (bare, exact) = name.strip_suffix(':').map_or((name, false), |bare| (bare, true));
    let (bare_owned, value) = (bare.to_owned(), value.to_owned());
    let word = if exact { Word::Exact(bare_owned, value) } else { Word::Pair(bare_owned, value) };
    (!bare.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests;
