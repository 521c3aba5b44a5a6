//! Owns one field of a form: what is asked, and what a typed line means for it. Pure.

use serde_json::Value;
use std::fmt::Write as _;

use crate::show::{one_line, safe};

/// The most characters of a title or description.
const MOST: usize = 300;

/// One field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Its name in the answer.
    pub(super) name: String,
    schema: Value,
    required: bool,
}

impl Field {
    /// The fields of a `requestedSchema`, in its order.
    pub(super) fn all(schema: &Value) -> Vec<Self> {
        let required =
            schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let field = |(name, schema): (&String, &Value)| Self {
            name: name.clone(),
            schema: schema.clone(),
            required: required.iter().any(|own| own.as_str() == Some(name)),
        };
        properties.into_iter().flatten().map(field).collect()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.schema.get(name).and_then(Value::as_str)
    }

    fn is_list(&self) -> bool {
        self.text("type") == Some("array")
    }

    /// Values to choose from, each with what a person reads.
    fn choices(&self) -> Vec<(String, String)> {
        let source =
            if self.is_list() { self.schema.get("items").unwrap_or(&Value::Null) } else { &self.schema };
        let names = source.get("enumNames").and_then(Value::as_array);
        if let Some(values) = source.get("enum").and_then(Value::as_array) {
            let title = |index: usize, value: &str| {
                let name = names.and_then(|names| names.get(index)).and_then(Value::as_str);
                name.unwrap_or(value).to_owned()
            };
            let values =
                values.iter().enumerate().filter_map(|(index, value)| Some((index, value.as_str()?)));
            return values.map(|(index, value)| (value.to_owned(), title(index, value))).collect();
        }
        let options = source.get("oneOf").or_else(|| source.get("anyOf")).and_then(Value::as_array);
        options
            .into_iter()
            .flatten()
            .filter_map(|option| {
                let value = option.get("const")?.as_str()?;
                let title = option.get("title").and_then(Value::as_str).unwrap_or(value);
                Some((value.to_owned(), title.to_owned()))
            })
            .collect()
    }

    /// What is shown before the line is typed; safe for a terminal.
    pub(super) fn prompt(&self) -> String {
        let title = one_line(self.text("title").unwrap_or(&self.name), MOST);
        let mut prompt = String::new();
        if let Some(description) = self.text("description") {
            writeln!(prompt, "  {}", one_line(description, MOST)).unwrap_or_default();
        }
        let choices = self.choices();
        for (index, (value, shown)) in choices.iter().enumerate() {
            let more = if value == shown { String::new() } else { format!(" ({})", one_line(value, MOST)) };
            writeln!(prompt, "  {}. {}{more}", index + 1, one_line(shown, MOST)).unwrap_or_default();
        }
        let kind = match self.text("type") {
            Some("boolean") => "y/n",
            Some("integer") => "whole number",
            Some("number") => "number",
            Some("array") => "numbers or values, separated by commas",
            _ if !choices.is_empty() => "number or value",
            _ => self.text("format").unwrap_or("text"),
        };
        let needed = if self.required { ", required" } else { "" };
        let default = self.schema.get("default").map(|value| match value {
            Value::String(text) => format!(" [{}]", one_line(text, MOST)),
            other => format!(" [{}]", safe(&other.to_string())),
        });
        format!("{prompt}{title} ({}{needed}){}: ", one_line(kind, 40), default.unwrap_or_default())
    }

    /// The value that the line gives; `None`: the field is left out.
    pub(super) fn parse(&self, line: &str) -> Result<Option<Value>, String> {
        let text = line.trim();
        if text.is_empty() {
            return match (self.schema.get("default"), self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, true) => Err("this one is required".to_owned()),
                (None, false) => Ok(None),
            };
        }
        let choices = self.choices();
        if self.is_list() {
            let chosen: Result<Vec<Value>, String> =
                text.split(',').map(|part| choose(&choices, part.trim())).collect();
            let chosen = chosen?;
            self.within("minItems", "maxItems", count(chosen.len()), "items")?;
            return Ok(Some(Value::Array(chosen)));
        }
        if !choices.is_empty() {
            return choose(&choices, text).map(Some);
        }
        match self.text("type") {
            Some("boolean") => match text.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Some(Value::Bool(true))),
                "n" | "no" | "false" => Ok(Some(Value::Bool(false))),
                _ => Err("y or n".to_owned()),
            },
            Some(kind @ ("integer" | "number")) => {
                let value: Value = serde_json::from_str(text).map_err(|_| "this is no number".to_owned())?;
                let number = value.as_f64().ok_or_else(|| "this is no number".to_owned())?;
                if kind == "integer" && number.fract() != 0.0 {
                    return Err("this is no whole number".to_owned());
                }
                self.within("minimum", "maximum", number, "")?;
                Ok(Some(value))
            }
            _ => {
                self.within("minLength", "maxLength", count(text.chars().count()), "characters")?;
                Ok(Some(Value::String(text.to_owned())))
            }
        }
    }

    fn within(&self, least: &str, most: &str, number: f64, of: &str) -> Result<(), String> {
        let bound = |name: &str| self.schema.get(name).and_then(Value::as_f64);
        if let Some(least) = bound(least).filter(|least| number < *least) {
            return Err(format!("at least {least} {of}").trim_end().to_owned());
        }
        if let Some(most) = bound(most).filter(|most| number > *most) {
            return Err(format!("at most {most} {of}").trim_end().to_owned());
        }
        Ok(())
    }
}

/// No line that is typed has more.
fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}

/// By its number, its value or its title.
fn choose(choices: &[(String, String)], text: &str) -> Result<Value, String> {
    let named = choices.iter().find(|(value, title)| value == text || title == text);
    let numbered = || text.parse::<usize>().ok()?.checked_sub(1).and_then(|index| choices.get(index));
    match named.or_else(numbered) {
        Some((value, _)) => Ok(Value::String(value.clone())),
        None => Err(format!("{:?} is none of these", one_line(text, 60))),
    }
}
