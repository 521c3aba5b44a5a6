//! Owns the judgement of one definition: good, good after a repair whose meaning is certain, or not to be shown.
//!
//! The official clients check a list as a whole: one definition that does not fit, and the client has no tools at all.
//! So whatever makes one of them fail is repaired here, or kept out with its reason. Pure.

mod schema;

use bytes::Bytes;
use serde_json::{Map, Value};
use toolway_wire::find;

use super::members::{Members, quoted};
use crate::gateway::lists::ListKind;

/// Where a tool's `outputSchema` goes, as in the relay.
const RELAXED: &str = "toolway/outputSchema";

/// The largest definition that is looked into; real ones are a hundredth of it.
const MAX_DEFINITION: usize = 1 << 20;

/// A definition that can be shown.
#[derive(Debug)]
pub(super) struct Judged {
    /// Its name, URI or URI template.
    pub(super) own: String,
    /// The same as the server spelled it.
    pub(super) own_json: Bytes,
    /// The definition, ready for more changes.
    pub(super) members: Members,
    /// The definition as the server gave it.
    pub(super) value: Map<String, Value>,
    /// What was repaired.
    pub(super) repairs: Vec<String>,
}

/// Judges one definition. The error is the reason, a fragment that follows the definition's name.
pub(super) fn judge(kind: ListKind, raw: &Bytes) -> Result<Judged, String> {
    if raw.len() > MAX_DEFINITION {
        return Err(format!("is larger than {} KiB", MAX_DEFINITION >> 10));
    }
    // As strict as the strictest client: no NaN, no lone surrogates, no bytes outside of UTF-8, 128 levels.
    let value: Value = serde_json::from_slice(raw).map_err(|error| format!("is no strict JSON: {error}"))?;
    let (Value::Object(value), Some(members)) = (value, Members::of(raw)) else {
        return Err("is no object".to_owned());
    };
    let own = match value.get(kind.key()) {
        Some(Value::String(own)) if !own.is_empty() => own.clone(),
        Some(Value::String(_)) => return Err(format!("has an empty {}", kind.key())),
        Some(other) => return Err(format!("has a {} that is {}, not a string", kind.key(), what(other))),
        None => return Err(format!("has no {}", kind.key())),
    };
    if let Some(twice) =
        [kind.key(), "description", "inputSchema", "_meta"].into_iter().find(|name| members.is_twice(name))
    {
        return Err(format!("has {twice} twice"));
    }
    let own_json = members.get(kind.key()).cloned().unwrap_or_else(|| quoted(&own));
    let mut judged = Judged { own, own_json, members, value, repairs: Vec::new() };
    judged.display_members(kind);
    match kind {
        ListKind::Tools => judged.tool()?,
        ListKind::Prompts => judged.prompt()?,
        ListKind::Resources => judged.resource(true)?,
        ListKind::Templates => judged.resource(false)?,
    }
    Ok(judged)
}

/// What a definition may be called before it is judged.
pub(super) fn name_of(kind: ListKind, raw: &Bytes, position: usize) -> String {
    let at = find::find(raw, &[find::Step::Key(kind.key())]);
    let named = at.and_then(|at| find::string(raw, at)).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| format!("#{}", position + 1))
}

impl Judged {
    fn repaired(&mut self, what: impl Into<String>) {
        self.repairs.push(what.into());
    }

    fn cut(&mut self, name: &str, why: &str) {
        self.members.remove(name);
        self.value.remove(name);
        self.repaired(format!("{name} {why} and is left out"));
    }

    /// Members that only decorate: `null` means that they are not there, and a broken one is worth less than the rest.
    fn display_members(&mut self, kind: ListKind) {
        for (name, fits) in DISPLAY {
            match self.value.get(name) {
                Some(Value::Null) => self.cut(name, "is null"),
                Some(value) if !fits(value) => self.cut(name, "has a form that clients refuse"),
                None | Some(_) => {}
            }
        }
        let Some(Value::Object(annotations)) = self.value.get("annotations") else { return };
        let kept: Map<String, Value> = annotations
            .iter()
            .filter(|(name, value)| annotation_fits(kind, name, value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if kept.len() < annotations.len() {
            let kept = Value::Object(kept);
            self.members.set("annotations", kept.to_string());
            self.value.insert("annotations".to_owned(), kept);
            self.repaired("annotations of a form that clients refuse are left out");
        }
    }

    fn description(&mut self) -> Result<(), String> {
        match self.value.get("description") {
            None | Some(Value::String(_)) => Ok(()),
            Some(Value::Null) => {
                self.cut("description", "is null");
                Ok(())
            }
            Some(other) => Err(format!("has a description that is {}, not a string", what(other))),
        }
    }

    fn tool(&mut self) -> Result<(), String> {
        self.description()?;
        let raw = self.members.get("inputSchema").cloned();
        let (Some(schema), Some(raw)) = (self.value.get("inputSchema"), raw) else {
            return Err("has no inputSchema".to_owned());
        };
        if let Some((repaired, notes)) = schema::input(schema, &raw)? {
            self.members.set("inputSchema", repaired);
            self.repairs.extend(notes);
        }
        match self.value.get("outputSchema") {
            Some(Value::Null) => self.cut("outputSchema", "is null"),
            Some(schema) if !schema::is_output(schema) => {
                self.relax();
                self.repaired("outputSchema has a form that clients refuse and moved to _meta");
            }
            _ => {}
        }
        Ok(())
    }

    /// Moves `outputSchema` to `_meta`, so that no client checks results against it.
    pub(super) fn relax(&mut self) {
        let Some(schema) = self.members.remove("outputSchema") else { return };
        let mut meta = self.members.get("_meta").and_then(Members::of).unwrap_or_default();
        meta.set(RELAXED, schema);
        self.members.set("_meta", meta.json());
    }

    fn prompt(&mut self) -> Result<(), String> {
        self.description()?;
        let arguments = match self.value.get_mut("arguments") {
            None => return Ok(()),
            Some(Value::Null) => {
                self.cut("arguments", "is null");
                return Ok(());
            }
            Some(Value::Array(arguments)) => arguments,
            Some(other) => return Err(format!("has arguments that are {}, not an array", what(other))),
        };
        let mut changed = false;
        for argument in arguments.iter_mut() {
            let Some(argument) =
                argument.as_object_mut().filter(|one| one.get("name").is_some_and(Value::is_string))
            else {
                return Err("has an argument without a name".to_owned());
            };
            for (name, fits) in ARGUMENT {
                if argument.get(name).is_some_and(|value| !fits(value)) {
                    argument.remove(name);
                    changed = true;
                }
            }
        }
        if changed {
            let arguments = Value::from(arguments.clone()).to_string();
            self.members.set("arguments", arguments);
            self.repaired("members of arguments of a form that clients refuse are left out");
        }
        Ok(())
    }

    /// A resource, or (`!is_uri`) a template of resources.
    fn resource(&mut self, is_uri: bool) -> Result<(), String> {
        if is_uri {
            uri_fits(&self.own)?;
        }
        if self.description().is_err() {
            self.cut("description", "is no string");
        }
        if !self.value.get("name").is_some_and(Value::is_string) {
            self.members.set("name", quoted(&self.own));
            self.repaired("it has no name and shows its address in that place");
        }
        Ok(())
    }
}

type Fits = fn(&Value) -> bool;

const DISPLAY: [(&str, Fits); 7] = [
    ("title", Value::is_string),
    ("icons", icons_fit),
    ("annotations", Value::is_object),
    ("execution", execution_fits),
    ("_meta", Value::is_object),
    ("mimeType", Value::is_string),
    ("size", |size| size.is_u64() || size.is_i64()),
];
const ARGUMENT: [(&str, Fits); 3] =
    [("description", Value::is_string), ("title", Value::is_string), ("required", Value::is_boolean)];

fn icons_fit(icons: &Value) -> bool {
    let text = |icon: &Value, name| icon.get(name).is_none_or(Value::is_string);
    icons.as_array().is_some_and(|icons| {
        icons.iter().all(|icon| {
            let sizes = icon
                .get("sizes")
                .is_none_or(|sizes| sizes.as_array().is_some_and(|sizes| sizes.iter().all(Value::is_string)));
            let theme = icon.get("theme").is_none_or(|theme| theme == "light" || theme == "dark");
            icon.get("src").is_some_and(Value::is_string) && text(icon, "mimeType") && sizes && theme
        })
    })
}

fn execution_fits(execution: &Value) -> bool {
    let support = |value: &Value| {
        value.as_str().is_some_and(|one| ["forbidden", "optional", "required"].contains(&one))
    };
    execution.is_object() && execution.get("taskSupport").is_none_or(support)
}

fn annotation_fits(kind: ListKind, name: &str, value: &Value) -> bool {
    match (kind, name) {
        (ListKind::Tools, "title") => value.is_string(),
        (ListKind::Tools, "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint") => {
            value.is_boolean()
        }
        (ListKind::Tools, _) => true,
        (_, "priority") => value.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)),
        (_, "audience") => value.as_array().is_some_and(|roles| {
            roles.iter().all(|role| role.as_str().is_some_and(|role| ["user", "assistant"].contains(&role)))
        }),
        (_, "lastModified") => value.as_str().is_some_and(is_timestamp),
        _ => true,
    }
}

/// `2025-01-12T15:00:58Z`, with an offset too (RFC 3339).
fn is_timestamp(text: &str) -> bool {
    fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u32; N]> {
        let parts = text.split(separator).map(|part| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit()) && [2, 4].contains(&part.len());
            part.parse().ok().filter(|_| digits)
        });
        parts.collect::<Option<Vec<u32>>>()?.try_into().ok()
    }
    let parsed = || {
        let (date, time) = text.split_once('T')?;
        let [year, month, day] = numbers(date, '-')?;
        let (clock, zone) = time.split_at_checked(8)?;
        let [hour, minute, second] = numbers(clock, ':')?;
        let zone =
            zone.strip_prefix('.').map_or(zone, |zone| zone.trim_start_matches(|c: char| c.is_ascii_digit()));
        let [ahead, minutes] =
            if zone == "Z" { [0, 0] } else { numbers(zone.strip_prefix(['+', '-'])?, ':')? };
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let in_day = |hour, minute| hour < 24 && minute < 60;
        let in_year = (1..=12).contains(&month) && (1..=days).contains(&day) && date.len() == 10;
        Some(in_year && in_day(hour, minute) && second < 60 && in_day(ahead, minutes))
    };
    parsed() == Some(true)
}

/// As the strictest client reads it, which is by the URL Standard.
fn uri_fits(uri: &str) -> Result<(), String> {
    let parsed = url::Url::parse(uri);
    parsed.map(drop).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => format!("has the uri {uri:?}, which has no scheme"),
        error => format!("has the uri {uri:?}, which clients refuse: {error}"),
    })
}

/// What a value is, for texts.
fn what(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
