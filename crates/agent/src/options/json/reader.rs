//! Owns reading members of a JSON text one by one, with their paths, until none is left over. It knows no option.

use std::collections::BTreeSet;

use toolway_config::{Format, Node, Value, read_tolerant};

use crate::error::Fault;

/// Faults so far.
#[derive(Debug, Default)]
pub(super) struct Reader {
    faults: Vec<Fault>,
}

/// An object that is being read.
#[derive(Debug)]
pub(super) struct Object<'a> {
    reader: &'a mut Reader,
    node: &'a Node,
    path: String,
    taken: BTreeSet<String>,
}

/// A member: who takes faults, the value, its path.
pub(super) type Member<'r, 'n> = (&'r mut Reader, &'n Node, String);

impl Reader {
    /// Reads a text; `None`: it is no JSON.
    pub(super) fn read<T>(text: &str, read: impl FnOnce(&mut Self, &Node) -> T) -> (Option<T>, Vec<Fault>) {
        let mut reader = Self::default();
        let (root, doubled) = match read_tolerant(text.as_bytes(), Format::Jsonc) {
            Ok(read) => read,
            Err(problems) => {
                for problem in problems {
                    reader.fault("options", problem.to_string());
                }
                return (None, reader.faults);
            }
        };
        for problem in doubled {
            let field = problem.field.unwrap_or_default().trim_start_matches('/').replace('/', ".");
            reader.fault(&field, problem.message);
        }
        let value = read(&mut reader, &root);
        (Some(value), reader.faults)
    }

    pub(super) fn fault(&mut self, path: &str, message: impl Into<String>) {
        let mut parts = path.split('.');
        let subject = match parts.next() {
            Some("mcpServers" | "agents") => parts.next().map(str::to_owned),
            _ => None,
        };
        self.faults.push(Fault { subject, field: path.to_owned(), message: message.into() });
    }

    /// The members of an object.
    pub(super) fn object<'a>(&'a mut self, node: &'a Node, path: &str) -> Option<Object<'a>> {
        if node.members().is_none() {
            let path = if path.is_empty() { "options" } else { path };
            self.fault(path, format!("must be an object, and is {}", node.kind()));
            return None;
        }
        Some(Object { reader: self, node, path: path.to_owned(), taken: BTreeSet::new() })
    }

    /// The items of a list, as far as they can be read.
    pub(super) fn list<T>(
        &mut self,
        node: &Node,
        path: &str,
        mut read: impl FnMut(&mut Self, &Node, &str) -> Option<T>,
    ) -> Vec<T> {
        let Some(items) = node.items() else {
            self.fault(path, format!("must be an array, and is {}", node.kind()));
            return Vec::new();
        };
        let mut read_items = Vec::new();
        for (at, item) in items.iter().enumerate() {
            read_items.extend(read(self, item, &format!("{path}.{at}")));
        }
        read_items
    }
}

impl<'n> Object<'n> {
    fn at(&self, name: &str) -> String {
        match (self.path.is_empty(), name.is_empty()) {
            (true, _) => name.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{name}", self.path),
        }
    }

    /// The names of all members, each once.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (key, _) in self.node.members().unwrap_or_default() {
            if !names.contains(&key.name) {
                names.push(key.name.clone());
            }
        }
        names
    }

    /// There is a member of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.node.get(name).is_some()
    }

    /// Something is wrong with a member, or with the object itself where `name` is empty.
    pub(super) fn fault(&mut self, name: &str, message: impl Into<String>) {
        let path = self.at(name);
        self.reader.fault(&path, message);
    }

    /// A member that is there.
    pub(super) fn member(&mut self, name: &str) -> Option<Member<'_, 'n>> {
        let path = self.at(name);
        let node = self.node.get(name)?;
        self.taken.insert(name.to_owned());
        Some((self.reader, node, path))
    }

    fn of_kind<T>(&mut self, name: &str, kind: &str, read: impl FnOnce(&Node) -> Option<T>) -> Option<T> {
        let (reader, node, path) = self.member(name)?;
        let value = read(node);
        if value.is_none() {
            reader.fault(&path, format!("must be {kind}, and is {}", node.kind()));
        }
        value
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.of_kind(name, "a string", |node| node.as_str().map(str::to_owned))
    }

    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        self.of_kind(name, "true or false", Node::as_bool)
    }

    pub(super) fn number(&mut self, name: &str) -> Option<u64> {
        self.of_kind(name, "a number that is whole and not negative", |node| match &node.value {
            Value::Number(number) => number.as_u64(),
            _ => None,
        })
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let (reader, node, path) = self.member(name)?;
        Some(reader.list(node, &path, |reader, node, at| {
            let text = node.as_str().map(str::to_owned);
            if text.is_none() {
                reader.fault(at, format!("must be a string, and is {}", node.kind()));
            }
            text
        }))
    }

    /// A list, empty where it is not there.
    pub(super) fn list<T>(
        &mut self,
        name: &str,
        read: impl FnMut(&mut Reader, &Node, &str) -> Option<T>,
    ) -> Vec<T> {
        match self.member(name) {
            Some((reader, node, path)) => reader.list(node, &path, read),
            None => Vec::new(),
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.fault(name, format!("{text:?} is none of {}", known.join(", ")));
        }
        found
    }

    /// Whatever was not taken is not known.
    pub(super) fn end(mut self, hint: &dyn Fn(&str) -> Option<String>) {
        for name in self.names() {
            if !self.taken.contains(&name) {
                let message = hint(&name).unwrap_or_else(|| "is not known here".to_owned());
                self.fault(&name, message);
            }
        }
    }
}
