//! Owns the outline of JSON: its keys, the lengths of its arrays and its first values, from a stream. Pure.

use toolway_wire::lex::{Container, Run, Sink};
use toolway_wire::text::TextDecoder;

use super::{Shown, elide, first_chars, grouped};

const MAX_DEPTH: usize = 8;
const MAX_MEMBERS: usize = 60;
const MAX_ITEMS: usize = 5;
const MAX_NODES: usize = 3000;
/// Bytes kept of a string.
const MAX_STRING: usize = 400;

/// How much detail is shown; tried from the first on until it fits.
const DETAILS: &[Detail] = &[
    Detail { items: 5, members: 60, depth: 8, string: 300 },
    Detail { items: 3, members: 60, depth: 6, string: 160 },
    Detail { items: 3, members: 40, depth: 5, string: 80 },
    Detail { items: 2, members: 30, depth: 5, string: 60 },
    Detail { items: 1, members: 30, depth: 4, string: 40 },
    Detail { items: 1, members: 20, depth: 3, string: 30 },
    Detail { items: 1, members: 12, depth: 2, string: 20 },
    Detail { items: 0, members: 12, depth: 1, string: 20 },
];

#[derive(Debug, Clone, Copy)]
struct Detail {
    items: usize,
    members: usize,
    depth: usize,
    string: usize,
}

#[derive(Debug)]
enum Node {
    Atom(Vec<u8>),
    Text { head: Vec<u8>, chars: u64 },
    Object { members: Vec<(String, usize)>, total: u64 },
    Array { items: Vec<usize>, total: u64 },
}

/// A bounded picture of a JSON value.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    nodes: Vec<Node>,
    open: Vec<usize>,
    /// Containers open that are not kept.
    skipped: u32,
    key: Vec<u8>,
    in_key: bool,
    /// The string or atom that is being taken.
    taking: Option<usize>,
    decoder: TextDecoder,
}

impl Outline {
    /// The outline within `budget` characters.
    pub(crate) fn show(&self, budget: usize) -> Shown {
        let mut text = String::new();
        for detail in DETAILS {
            text.clear();
            let cut = self.render(0, *detail, 0, &mut text);
            let chars = text.chars().count();
            if chars <= budget {
                return Shown { text, chars, cut };
            }
        }
        let text = first_chars(&text, budget).to_owned();
        Shown { chars: text.chars().count(), text, cut: true }
    }

    /// Appends a node; says whether anything was left out.
    fn render(&self, node: usize, detail: Detail, level: usize, out: &mut String) -> bool {
        match self.nodes.get(node) {
            None => false,
            Some(Node::Atom(bytes)) => {
                out.push_str(&String::from_utf8_lossy(bytes));
                false
            }
            Some(Node::Text { head, chars }) => render_text(head, *chars, detail.string, out),
            Some(Node::Object { members, total }) => {
                let shown = if level < detail.depth { members.len().min(detail.members) } else { 0 };
                let children = members.iter().take(shown).map(|(key, node)| (Some(key.as_str()), *node));
                self.render_container(('{', '}', "members"), children, *total, detail, level, out)
            }
            Some(Node::Array { items, total }) => {
                let shown = if level < detail.depth { items.len().min(detail.items) } else { 0 };
                let children = items.iter().take(shown).map(|node| (None, *node));
                self.render_container(('[', ']', "elements"), children, *total, detail, level, out)
            }
        }
    }

    fn render_container<'k>(
        &self,
        (open, close, unit): (char, char, &str),
        children: impl Iterator<Item = (Option<&'k str>, usize)>,
        total: u64,
        detail: Detail,
        level: usize,
        out: &mut String,
    ) -> bool {
        out.push(open);
        let (mut shown, mut cut) = (0, false);
        for (key, node) in children {
            out.push_str(if shown == 0 { "\n" } else { ",\n" });
            indent(level + 1, out);
            if let Some(key) = key {
                out.push_str(&quoted(key));
                out.push_str(": ");
            }
            cut |= self.render(node, detail, level + 1, out);
            shown += 1;
        }
        let left = total.saturating_sub(shown);
        if shown == 0 && left > 0 {
            out.push_str(
                &format_args!(
                    " {} {} ",
                    grouped(left),
                    if left == 1 { unit.trim_end_matches('s') } else { unit }
                )
                .to_string(),
            );
        } else if left > 0 {
            out.push_str(",\n");
            indent(level + 1, out);
            out.push_str(
                &format_args!("... {} more, {} {unit} in all", grouped(left), grouped(total)).to_string(),
            );
        }
        if shown > 0 {
            out.push('\n');
            indent(level, out);
        }
        out.push(close);
        cut || left > 0
    }

    /// A value begins: its place among the nodes, if it is kept.
    fn begin(&mut self, node: Node) -> Option<usize> {
        if self.skipped > 0 {
            return None;
        }
        let index = self.nodes.len();
        let room = index < MAX_NODES && self.open.len() <= MAX_DEPTH;
        match self.open.last().copied().and_then(|parent| self.nodes.get_mut(parent)) {
            None if index > 0 => return None,
            None => {}
            Some(Node::Object { members, total }) => {
                *total += 1;
                if !room || members.len() >= MAX_MEMBERS {
                    return None;
                }
                members.push((String::from_utf8_lossy(&self.key).into_owned(), index));
            }
            Some(Node::Array { items, total }) => {
                *total += 1;
                if !room || items.len() >= MAX_ITEMS {
                    return None;
                }
                items.push(index);
            }
            Some(_) => return None,
        }
        self.nodes.push(node);
        Some(index)
    }
}

fn render_text(head: &[u8], chars: u64, most: usize, out: &mut String) -> bool {
    let head = String::from_utf8_lossy(head);
    let known = head.chars().count() as u64;
    let elided = elide(&head, false);
    if elided.len() < head.len() && elided.starts_with('[') && elided.ends_with(']') {
        // One run from end to end, as far as it was kept: name the whole.
        let name = if elided.starts_with("[base64") { "base64, " } else { "a run of " };
        out.push_str(&format_args!("\"[{name}{} characters]\"", grouped(chars)).to_string());
        return true;
    }
    let shown = first_chars(&elided, most);
    out.push_str(&quoted(shown));
    let cut = shown.len() < elided.len() || known < chars || elided.len() < head.len();
    if shown.len() < elided.len() || known < chars {
        out.push_str(&format_args!(" ... {} characters in all", grouped(chars)).to_string());
    }
    cut
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

fn indent(level: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", level));
}

impl Sink for Outline {
    fn open(&mut self, container: Container, _at: u64) {
        if self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        let node = match container {
            Container::Object => Node::Object { members: Vec::new(), total: 0 },
            Container::Array => Node::Array { items: Vec::new(), total: 0 },
        };
        match self.begin(node) {
            Some(index) => self.open.push(index),
            None => self.skipped = 1,
        }
    }

    fn close(&mut self, _container: Container, _end: u64) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.open.pop();
        }
    }

    fn string_begin(&mut self, key: bool, _at: u64) {
        self.in_key = key;
        if key {
            self.key.clear();
        } else {
            self.taking = self.begin(Node::Text { head: Vec::new(), chars: 0 });
        }
    }

    fn run(&mut self, run: Run<'_>) {
        if self.skipped > 0 {
            return;
        }
        let cut = |have: usize| {
            run.bytes.get(..run.bytes.len().min(MAX_STRING.saturating_sub(have))).unwrap_or_default()
        };
        if self.in_key {
            let piece = cut(self.key.len());
            self.decoder.run(piece, &mut self.key);
        } else if let Some(Node::Text { head, chars }) =
            self.taking.and_then(|index| self.nodes.get_mut(index))
        {
            let piece = cut(head.len());
            self.decoder.run(piece, head);
            *chars += if run.ascii {
                run.bytes.len() as u64
            } else {
                run.bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64
            };
        }
    }

    fn escape(&mut self, unit: u16, _raw: &[u8]) {
        if self.skipped > 0 {
            return;
        }
        if self.in_key {
            if self.key.len() < MAX_STRING {
                self.decoder.escape(unit, &mut self.key);
            }
        } else if let Some(Node::Text { head, chars }) =
            self.taking.and_then(|index| self.nodes.get_mut(index))
        {
            if head.len() < MAX_STRING {
                self.decoder.escape(unit, head);
            }
            *chars += u64::from(!(0xDC00..=0xDFFF).contains(&unit));
        }
    }

    fn string_end(&mut self, _end: u64) {
        if self.skipped > 0 {
            return;
        }
        if self.in_key {
            self.decoder.end(&mut self.key);
            self.in_key = false;
        } else if let Some(Node::Text { head, .. }) =
            self.taking.take().and_then(|index| self.nodes.get_mut(index))
        {
            self.decoder.end(head);
        }
        self.decoder = TextDecoder::default();
    }

    fn atom(&mut self, bytes: &[u8], _at: u64) {
        if self.skipped > 0 {
            return;
        }
        if self.taking.is_none() {
            self.taking = self.begin(Node::Atom(Vec::new()));
        }
        if let Some(Node::Atom(atom)) = self.taking.and_then(|index| self.nodes.get_mut(index))
            && atom.len() < 40
        {
            atom.extend_from_slice(bytes.get(..bytes.len().min(40)).unwrap_or_default());
        }
    }

    fn atom_end(&mut self, _end: u64) {
        self.taking = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolway_wire::lex::Lexer;

    fn outline(json: &str) -> Outline {
        let (mut lexer, mut outline) = (Lexer::new(), Outline::default());
        for piece in json.as_bytes().chunks(7) {
            lexer.feed(piece, &mut outline).unwrap();
        }
        lexer.finish(&mut outline).unwrap();
        outline
    }

    #[test]
    fn keys_lengths_and_first_elements_are_shown() {
        let rows: Vec<String> = (0..3000)
            .map(|n| {
                format!(r#"{{"id":{n},"name":"row {n}\n","tags":["a","b"],"deep":{{"x":{{"y":[1]}}}}}}"#)
            })
            .collect();
        let image = "iVBORw0KGgoAAAANSUhEUgAA1".repeat(1000);
        let json = format!(
            r#"{{"rows":[{}],"next":null,"n":9007199254740993,"image":"{image}","empty":[]}}"#,
            rows.join(",")
        );
        let shown = outline(&json).show(600);
        assert!(shown.chars <= 600 && shown.cut);
        expect_test::expect![[r#"
            {
              "rows": [
                {
                  "id": 0,
                  "name": "row 0\n",
                  "tags": [
                    "a",
                    "b"
                  ],
                  "deep": {
                    "x": {
                      "y": [ 1 element ]
                    }
                  }
                },
                {
                  "id": 1,
                  "name": "row 1\n",
                  "tags": [
                    "a",
                    "b"
                  ],
                  "deep": {
                    "x": {
                      "y": [ 1 element ]
                    }
                  }
                },
                ... 2,998 more, 3,000 elements in all
              ],
              "next": null,
              "n": 9007199254740993,
              "image": "[base64, 25,000 characters]",
              "empty": []
            }"#]]
        .assert_eq(&shown.text);
    }

    #[test]
    fn small_values_are_shown_whole_and_nothing_breaks_the_budget() {
        let shown = outline(r#"{"a":[1,2],"b":"é\ud83d\ude00"}"#).show(1000);
        assert_eq!(
            (shown.text.as_str(), shown.cut),
            ("{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": \"é😀\"\n}", false)
        );
        let wide: Vec<String> = (0..5000).map(|n| format!("\"key number {n}\":{{\"x\":[{n}]}}")).collect();
        let wide = outline(&format!("{{{}}}", wide.join(",")));
        for budget in [0, 1, 20, 100, 400, 4000] {
            let shown = wide.show(budget);
            assert!(shown.text.chars().count() <= budget && shown.cut, "{budget}");
        }
        let deep = outline(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
        assert!(deep.show(4000).text.starts_with("[\n  [\n"));
        assert_eq!(outline("\"just text\"").show(100).text, "\"just text\"");
    }
}
