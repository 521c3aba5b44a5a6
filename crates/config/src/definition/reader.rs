//! Owns the reading of single values out of a tree, each fault noted with its place and field. Decides nothing about
//! servers.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::dialect::Dialect;
use crate::problem::{Position, Problem};
use crate::tree::{Key, Node, Value};

use super::Text;

/// Nothing Toolway waits for lasts longer than this.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// Reads the members of one entry and collects what is wrong with them.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) server: &'a str,
    pub(super) dialect: Dialect,
    pub(super) problems: Vec<Problem>,
    pub(super) fields: BTreeMap<String, Option<Position>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(server: &'a str, dialect: Dialect) -> Self {
        Self { server, dialect, problems: Vec::new(), fields: BTreeMap::new() }
    }

    /// The place, if there is a file it could be in.
    pub(super) fn place(&self, at: Position) -> Option<Position> {
        (self.dialect != Dialect::Inline).then_some(at)
    }

    pub(super) fn is_inline(&self) -> bool {
        self.dialect == Dialect::Inline
    }

    /// Notes a problem, and lets the caller add a hint to it.
    pub(super) fn note(&mut self, problem: Problem, at: Position, field: &str) {
        let place = self.place(at);
        let problem = problem.at(place).server(self.server);
        self.problems.push(if field.is_empty() { problem } else { problem.field(field) });
    }

    pub(super) fn error(&mut self, at: Position, field: &str, message: impl Into<String>) {
        self.note(Problem::error(message), at, field);
    }

    /// An error for a program, a warning in a file.
    pub(super) fn objection(&mut self, at: Position, field: &str, message: impl Into<String>) {
        let problem = if self.is_inline() { Problem::error(message) } else { Problem::warning(message) };
        self.note(problem, at, field);
    }

    fn wrong_kind(&mut self, node: &Node, field: &str, expected: &str) {
        let problem = Problem::error(format!("must be {expected}, and is {}", node.kind()));
        let problem = match &node.value {
            Value::Number(number) if expected == "a string" => problem.hint(format!("write \"{number}\"")),
            Value::Bool(value) if expected == "a string" => problem.hint(format!("write \"{value}\"")),
            _ => problem,
        };
        self.note(problem, node.at, field);
    }

    pub(super) fn text(&mut self, node: &Node, field: &str) -> Option<Text> {
        let place = self.place(node.at);
        self.fields.insert(field.to_owned(), place);
        match &node.value {
            Value::String(text) if text.contains('\0') => {
                self.error(node.at, field, "holds a NUL character");
                None
            }
            Value::String(text) => Some(Text::placed(text.clone(), place)),
            _ => {
                self.wrong_kind(node, field, "a string");
                None
            }
        }
    }

    pub(super) fn string(&mut self, node: &Node, field: &str) -> Option<String> {
        self.text(node, field).map(|text| text.raw().to_owned())
    }

    pub(super) fn texts(&mut self, node: &Node, field: &str) -> Vec<Text> {
        self.fields.insert(field.to_owned(), self.place(node.at));
        let Some(items) = node.items() else {
            self.wrong_kind(node, field, "a list of strings");
            return Vec::new();
        };
        let read = |(index, item): (usize, &Node)| self.text(item, &format!("{field}.{index}"));
        items.iter().enumerate().filter_map(read).collect()
    }

    pub(super) fn strings(&mut self, node: &Node, field: &str) -> Vec<String> {
        self.texts(node, field).iter().map(|text| text.raw().to_owned()).collect()
    }

    /// The members of an object, each with its key.
    pub(super) fn members<'n>(&mut self, node: &'n Node, field: &str) -> &'n [(Key, Node)] {
        self.fields.insert(field.to_owned(), self.place(node.at));
        node.members().unwrap_or_else(|| {
            self.wrong_kind(node, field, "an object");
            &[]
        })
    }

    /// A map of texts.
    pub(super) fn map<'n>(&mut self, node: &'n Node, field: &str) -> Vec<(&'n Key, Text)> {
        let members = self.members(node, field);
        let read =
            |(key, value): &'n (Key, Node)| Some((key, self.text(value, &format!("{field}.{}", key.name))?));
        members.iter().filter_map(read).collect()
    }

    pub(super) fn boolean(&mut self, node: &Node, field: &str) -> Option<bool> {
        self.fields.insert(field.to_owned(), self.place(node.at));
        let value = node.as_bool();
        if value.is_none() {
            self.wrong_kind(node, field, "true or false");
        }
        value
    }

    /// A whole number of at least one.
    pub(super) fn count(&mut self, node: &Node, field: &str) -> Option<u64> {
        self.fields.insert(field.to_owned(), self.place(node.at));
        let Value::Number(number) = &node.value else {
            self.wrong_kind(node, field, "a number");
            return None;
        };
        let whole = number.as_u64().filter(|count| *count > 0);
        if whole.is_none() {
            self.error(node.at, field, "must be a whole number of at least 1");
        }
        whole
    }

    /// A time in milliseconds, or in seconds with fractions.
    pub(super) fn time(&mut self, node: &Node, field: &str, seconds: bool) -> Option<Duration> {
        self.fields.insert(field.to_owned(), self.place(node.at));
        let Value::Number(number) = &node.value else {
            self.wrong_kind(node, field, "a number");
            return None;
        };
        let unit = if seconds { 1.0 } else { 1000.0 };
        let time = number.as_f64().map(|number| Duration::try_from_secs_f64(number / unit));
        match time {
            Some(Ok(time)) if !time.is_zero() && time <= LONGEST => Some(time),
            Some(Ok(time)) if time > LONGEST => {
                self.error(node.at, field, "must not be more than a week");
                None
            }
            _ => {
                self.error(node.at, field, "must be more than 0");
                None
            }
        }
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&mut self, node: &Node, field: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, field)?;
        let found = words.iter().find(|(word, _)| *word == text.raw()).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(node.at, field, format!("must be one of {}", known.join(", ")));
        }
        found
    }

    /// Objects to members that are none of `known`.
    pub(super) fn unknown(&mut self, members: &[(Key, Node)], prefix: &str, known: &[&str]) {
        for (key, _) in members.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            let field = if prefix.is_empty() { key.name.clone() } else { format!("{prefix}.{}", key.name) };
            let message = if APPROVALS.contains(&key.name.as_str()) {
                "is not taken over: Toolway approves nothing by itself"
            } else {
                "is not known to Toolway, and has no effect"
            };
            let mut problem =
                if self.is_inline() { Problem::error(message) } else { Problem::warning(message) };
            if let Some(near) = nearest(&key.name, known) {
                problem = problem.hint(format!("did you mean {near}?"));
            }
            self.note(problem, key.at, &field);
        }
    }
}

/// How other clients spell that a server's calls need no approval.
const APPROVALS: [&str; 4] = ["autoApprove", "alwaysAllow", "trust", "approveTools"];

/// The known word that a typed one was probably meant to be.
pub(super) fn nearest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |word: &str| word.to_ascii_lowercase().replace(['-', '_'], "");
    let typed = plain(typed);
    let allowed = if typed.chars().count() <= 4 { 1 } else { 2 };
    let near = known.iter().map(|word| (strsim::damerau_levenshtein(&typed, &plain(word)), *word));
    near.filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}
