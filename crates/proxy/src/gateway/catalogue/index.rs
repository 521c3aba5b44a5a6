//! Owns ranking one server's tools for a question: postings with weights by field. Numbers that need all servers (how
//! many tools have a word) come from `rank`. Pure.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::definition::Definition;
use super::words;

/// Words of one tool that are looked at.
const MAX_WORDS: usize = 4000;
/// Levels of a schema that are looked at.
const MAX_LEVELS: usize = 5;
/// A word that only begins like the one that was asked for.
const BEGINS: f32 = 0.5;
/// Letters that make a beginning worth something.
const BEGINNING: usize = 3;
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.6;

/// The words of one server's tools.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Sorted; each with where its postings begin.
    terms: Vec<(Box<str>, u32)>,
    /// Place of the tool in the server's list, and weight.
    postings: Vec<(u32, f32)>,
    lengths: Vec<f32>,
}

/// A tool that fits a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The number under which the server was put in.
    pub server: usize,
    /// The tool's place in the server's list.
    pub at: usize,
    /// Only comparable within one answer.
    pub score: f32,
}

impl Index {
    pub(super) fn new(server: &str, tools: &[Definition]) -> Self {
        let mut terms: BTreeMap<Box<str>, Vec<(u32, f32)>> = BTreeMap::new();
        let mut lengths = Vec::with_capacity(tools.len());
        for (at, tool) in tools.iter().enumerate() {
            let mut bag = Bag::default();
            bag.tool(server, tool);
            lengths.push(bag.words.values().sum());
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            for (word, weight) in bag.words {
                terms.entry(word.into_boxed_str()).or_default().push((at, weight));
            }
        }
        let mut this = Self { lengths, ..Self::default() };
        for (term, postings) in terms {
            this.terms.push((term, u32::try_from(this.postings.len()).unwrap_or(u32::MAX)));
            this.postings.extend(postings);
        }
        this
    }

    /// Adds the weights of a word to `into`, one a tool.
    fn weigh(&self, word: &str, into: &mut [f32]) {
        let from = self.terms.partition_point(|(term, _)| &**term < word);
        let begins = word.chars().count() >= BEGINNING;
        for (at, (term, start)) in self.terms.iter().enumerate().skip(from) {
            if !term.starts_with(word) || (!begins && &**term != word) {
                break;
            }
            let end = self.terms.get(at + 1).map_or(self.postings.len(), |(_, end)| *end as usize);
            let share = if &**term == word { 1.0 } else { BEGINS };
            for (tool, weight) in self.postings.get(*start as usize..end).unwrap_or_default() {
                if let Some(sum) = into.get_mut(*tool as usize) {
                    *sum += weight * share;
                }
            }
        }
    }
}

/// Ranks the tools of all servers for a question (BM25 over weighted fields), best first.
#[expect(clippy::cast_precision_loss, reason = "numbers of tools and words are small")]
pub(super) fn rank(servers: &[(usize, &Index)], question: &str) -> Vec<Hit> {
    let words = words::of_question(question);
    let tools: usize = servers.iter().map(|(_, index)| index.lengths.len()).sum();
    let total: f32 = servers.iter().flat_map(|(_, index)| &index.lengths).sum();
    let average = (total / tools.max(1) as f32).max(1.0);
    let empty =
        || -> Vec<Vec<f32>> { servers.iter().map(|(_, index)| vec![0.0; index.lengths.len()]).collect() };
    let (mut scores, mut found) = (empty(), empty());
    for word in &words {
        let mut weights = empty();
        for ((_, index), weights) in servers.iter().zip(&mut weights) {
            index.weigh(word, weights);
        }
        let having = weights.iter().flatten().filter(|weight| **weight > 0.0).count() as f32;
        let rarity = (1.0 + (tools as f32 - having + 0.5) / (having + 0.5)).ln();
        for (server, ((_, index), weights)) in servers.iter().zip(&weights).enumerate() {
            for (tool, (weight, length)) in weights.iter().zip(&index.lengths).enumerate() {
                if *weight > 0.0 {
                    let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / average);
                    scores[server][tool] += rarity * weight * (SATURATION + 1.0) / (weight + norm);
                    found[server][tool] += 1.0;
                }
            }
        }
    }
    let asked = words.len().max(1) as f32;
    let mut hits = Vec::new();
    for (place, (server, _)) in servers.iter().enumerate() {
        for (at, score) in scores[place].iter().enumerate().filter(|(_, score)| **score > 0.0) {
            // A tool that has every word comes before one that has a rare one often.
            let score = score * (0.4 + 0.6 * found[place][at] / asked);
            hits.push(Hit { server: *server, at, score });
        }
    }
    hits.sort_by(|one, other| other.score.total_cmp(&one.score));
    hits
}

/// The words of one tool with their weights.
#[derive(Debug, Default)]
struct Bag {
    words: HashMap<String, f32>,
    taken: usize,
}

impl Bag {
    fn tool(&mut self, server: &str, tool: &Definition) {
        self.text(&tool.own, 3.0);
        self.text(server, 1.5);
        if !tool.exposed.contains(tool.own.as_str()) {
            self.text(&tool.exposed, 2.0);
        }
        let Ok(definition) = serde_json::from_slice::<Value>(&tool.item) else { return };
        let text = |name: &str| definition.get(name).and_then(Value::as_str).unwrap_or_default();
        self.text(text("title"), 2.0);
        self.text(text("description"), 1.0);
        if let Some(schema) = definition.get("inputSchema") {
            self.schema(schema, MAX_LEVELS);
        }
    }

    fn schema(&mut self, schema: &Value, levels: usize) {
        let Some(levels) = levels.checked_sub(1) else { return };
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.text(name, 0.8);
            if let Some(description) = property.get("description").and_then(Value::as_str) {
                self.text(description, 0.4);
            }
            for value in property.get("enum").and_then(Value::as_array).into_iter().flatten() {
                self.text(value.as_str().unwrap_or_default(), 0.3);
            }
            self.schema(property, levels);
        }
        if let Some(items) = schema.get("items") {
            self.schema(items, levels);
        }
    }

    fn text(&mut self, text: &str, weight: f32) {
        words::each(text, |word| {
            if self.taken < MAX_WORDS && word.len() <= 64 {
                self.taken += 1;
                *self.words.entry(word).or_default() += weight;
            }
        });
    }
}
