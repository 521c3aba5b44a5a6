//! Owns the reading of YAML: one document, plain data, the core schema; aliases are resolved within bounds.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::Number;

use crate::problem::Problem;

use super::jsonc::{lower_first, too_deep};
use super::{Key, MAX_ALIASED, MAX_DEPTH, Node, Places, Value};

/// Reads the text.
pub(super) fn read<'a>(text: &'a str, places: &mut Places<'a>) -> Result<Node, Problem> {
    let start = places.at(0);
    let mut reader =
        Reader { events: Parser::new_from_str(text), places, anchors: HashMap::new(), aliased: 0 };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::Nothing | Event::DocumentEnd => {}
            Event::DocumentStart(_) if root.is_none() => {
                let (event, span) = reader.next()?;
                root = Some(reader.node(event, span, 0)?);
            }
            _ => {
                let at = reader.places.at_character(span.start.index());
                return Err(Problem::error("holds more than one document").at(at));
            }
        }
    }
    Ok(root.unwrap_or(Node { at: start, end: start.offset, value: Value::Null }))
}

struct Reader<'a, 'p> {
    events: Parser<'a, StrInput<'a>>,
    places: &'p mut Places<'a>,
    /// What an anchor stands for, and how much that is.
    anchors: HashMap<usize, (Node, usize)>,
    /// How much aliases have stood for so far.
    aliased: usize,
}

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.problem(&error)),
            None => Err(Problem::error("ends too early")),
        }
    }

    fn problem(&mut self, error: &ScanError) -> Problem {
        let at = self.places.at_character(error.marker().index());
        let problem = Problem::error(lower_first(error.info())).at(at);
        if error.info().contains("tab") { problem.hint("indent with spaces") } else { problem }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Problem> {
        let at = self.places.at_character(span.start.index());
        if depth > MAX_DEPTH {
            return Err(too_deep().at(at));
        }
        let (anchor, value, end) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, scalar(&text, style, tag.as_deref()), span.end.index())
            }
            Event::SequenceStart(anchor, _) => {
                let (items, end) = self.sequence(depth)?;
                (anchor, Value::Array(items), end)
            }
            Event::MappingStart(anchor, _) => {
                let (members, end) = self.mapping(depth)?;
                (anchor, Value::Object(members), end)
            }
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(Problem::error("a value is missing here").at(at)),
        };
        let end = self.places.at_character(end).offset;
        let node = Node { at, end, value };
        if anchor != 0 {
            let size = size(&node);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node, Problem> {
        let at = self.places.at_character(span.start.index());
        let end = self.places.at_character(span.end.index()).offset;
        let Some((node, size)) = self.anchors.get(&anchor) else {
            return Err(Problem::error("this alias stands inside of what it stands for").at(at));
        };
        self.aliased = self.aliased.saturating_add(*size);
        if self.aliased > MAX_ALIASED {
            return Err(Problem::error("the aliases up to here stand for too much data").at(at));
        }
        if depth + depth_of(node) > MAX_DEPTH {
            return Err(too_deep().at(at));
        }
        Ok(Node { at, end, value: node.value.clone() })
    }

    fn sequence(&mut self, depth: usize) -> Result<(Vec<Node>, usize), Problem> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, span) => return Ok((items, span.end.index())),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<(Vec<(Key, Node)>, usize), Problem> {
        let mut members = Vec::new();
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, span) => return Ok((members, span.end.index())),
                other => other,
            };
            let at = self.places.at_character(span.start.index());
            let Event::Scalar(name, ..) = event else {
                return Err(Problem::error("only text can be the name of a member").at(at));
            };
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            members.push((Key { name: name.into_owned(), at }, value));
        }
    }
}

/// How much a node is: values, and the bytes of their texts.
fn size(node: &Node) -> usize {
    match &node.value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(key, value)| key.name.len() + size(value)).sum::<usize>()
        }
        Value::String(text) => 1 + text.len(),
        _ => 1,
    }
}

fn depth_of(node: &Node) -> usize {
    match &node.value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(members) => 1 + members.iter().map(|(_, value)| depth_of(value)).max().unwrap_or(0),
        _ => 0,
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = tag.is_some_and(|tag| tag.suffix == "str" || tag.handle == "!");
    if style != ScalarStyle::Plain || is_text { Value::String(text.to_owned()) } else { plain(text) }
}

/// What a plain scalar means in the core schema (YAML 1.2.2, 10.3.2). Infinities and not-a-number stay text.
pub(crate) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let based = |digits: &str, base: u32| u64::from_str_radix(digits, base).ok().map(Number::from);
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+')) {
        return based(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| !digits.starts_with('+')) {
        return based(digits, 8);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts = unsigned.strip_prefix('.').unwrap_or(unsigned).starts_with(|c: char| c.is_ascii_digit());
    let fits = unsigned.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !starts || !fits {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}
