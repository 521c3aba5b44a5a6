//! Owns what a JSON Schema says about one argument: which of JSON's types it may have. Lenient: what it does not
//! understand, it lets through. Pure.

use serde_json::Value;

use super::Wrong;

/// References that are followed, one after the other.
const MOST_REFERENCES: usize = 16;

/// An `inputSchema`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'a> {
    root: &'a Value,
    top: &'a Value,
}

/// The value of a pair.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// The argument.
    Whole(Value),
    /// One item of an array.
    Item(Value),
}

impl<'a> Schema<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, top: resolved(root, root) }
    }

    /// The names of its properties.
    pub(super) fn names(&self) -> Vec<&'a str> {
        let properties = self.top.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)).collect()
    }

    /// Other names are refused.
    pub(super) fn closed(&self) -> bool {
        self.top.get("additionalProperties") == Some(&Value::Bool(false))
    }

    /// Other names are welcome.
    pub(super) fn open(&self) -> bool {
        let other = |name: &str| self.top.get(name).is_some_and(|value| *value != Value::Bool(false));
        other("additionalProperties") || other("patternProperties")
    }

    /// The names of what must be given and has no default.
    pub(super) fn required(&self) -> Vec<&'a str> {
        let names = self.top.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn property(&self, name: &str) -> Option<&'a Value> {
        self.top.get("properties")?.get(name).map(|property| resolved(self.root, property))
    }

    /// Name, type, what it is.
    pub(super) fn row(&self, name: &str) -> Vec<String> {
        let property = self.property(name).unwrap_or(&Value::Null);
        let types = types(self.root, property);
        let kind = if types.is_empty() { "any".to_owned() } else { types.join(" or ") };
        let needed = if self.required().contains(&name) { ", required" } else { "" };
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let values = property.get("enum").and_then(Value::as_array).map(|values| {
            let values: Vec<String> = values
                .iter()
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                .collect();
            format!(" ({})", values.join(", "))
        });
        let said = crate::show::one_line(&format!("{text}{}", values.unwrap_or_default()), 400);
        vec![format!("  {}", crate::show::one_line(name, 64)), format!("{kind}{needed}"), said]
    }

    /// `name (string: what it is)`.
    pub(super) fn described(&self, name: &str) -> String {
        let Some(property) = self.property(name) else { return name.to_owned() };
        let types = types(self.root, property);
        let kind = if types.is_empty() { "any".to_owned() } else { types.join(" or ") };
        match property.get("description").and_then(Value::as_str) {
            Some(text) => format!("{name} ({kind}: {})", crate::show::one_line(text, 80)),
            None => format!("{name} ({kind})"),
        }
    }

    /// The text as the type that the schema gives this argument.
    pub(super) fn value(&self, name: &str, text: &str) -> Result<Kind, Wrong> {
        let Some(property) = self.property(name) else { return Ok(Kind::Whole(guess(text))) };
        let allowed = types(self.root, property);
        if let Some(value) = typed(&allowed, text) {
            return Ok(Kind::Whole(value));
        }
        if allowed.contains(&"array") {
            let items = property.get("items").map(|items| resolved(self.root, items));
            let inner = items.map(|items| types(self.root, items)).unwrap_or_default();
            let item = if inner.is_empty() { Some(guess(text)) } else { typed(&inner, text) };
            if let Some(item) = item {
                return Ok(Kind::Item(item));
            }
            let wanted = format!("an array of {}", inner.join(" or "));
            return Err(Wrong::new(format!("{name}: {text:?} is no item of {wanted}")));
        }
        Err(Wrong::new(format!("{name}: {text:?} is no {}", allowed.join(" or ")))
            .with_hint(Some(form(&allowed, name))))
    }
}

/// The text as the first of these types that it can be; a string where that is allowed, unless the schema allows `null`
/// too and the text says so.
fn typed(allowed: &[&str], text: &str) -> Option<Value> {
    if allowed.is_empty() {
        return Some(guess(text));
    }
    if allowed.contains(&"string") {
        return Some(Value::String(text.to_owned()));
    }
    let read: Value = serde_json::from_str(text.trim()).ok()?;
    let fits = |kind: &&str| match (*kind, &read) {
        ("integer", Value::Number(number)) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null)
        | ("object", Value::Object(_))
        | ("array", Value::Array(_)) => true,
        _ => false,
    };
    allowed.iter().any(fits).then_some(read)
}

/// Where the schema says nothing: JSON if it is JSON, else a string.
fn guess(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn form(allowed: &[&str], name: &str) -> String {
    if allowed.contains(&"boolean") {
        format!("{name}=true or {name}=false")
    } else if allowed.contains(&"object") {
        format!("{name}='{{\"key\": 1}}'")
    } else {
        format!("{name}=1")
    }
}

/// The types that a schema allows; none: any.
fn types<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a str> {
    let mut found = Vec::new();
    collect(root, schema, 0, &mut found);
    found
}

fn collect<'a>(root: &'a Value, schema: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    if depth > MOST_REFERENCES {
        return;
    }
    let schema = resolved(root, schema);
    let mut add = |kind: &'a str| {
        if !found.contains(&kind) {
            found.push(kind);
        }
    };
    match schema.get("type") {
        Some(Value::String(kind)) => add(kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).for_each(add),
        _ => {
            let values = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            values.iter().chain(schema.get("const")).for_each(|value| add(kind_of(value)));
            for name in ["anyOf", "oneOf", "allOf"] {
                let parts = schema.get(name).and_then(Value::as_array).into_iter().flatten();
                parts.for_each(|part| collect(root, part, depth + 1, found));
            }
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What a `$ref` inside the document leads to.
fn resolved<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MOST_REFERENCES {
        let pointer = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        match pointer.and_then(|pointer| root.pointer(pointer)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}
