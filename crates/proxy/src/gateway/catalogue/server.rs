//! Owns one server's part of the catalogue: its definitions as clients see them, and what is kept from them and why.
//! Knows no other server; what it holds depends on this server's lists and settings alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use bytes::Bytes;
use toolway_wire::find::{self, Step};

use super::definition::Definition;
use super::index::Index;
use super::members::quoted;
use super::pins::{Digest, Pins, digest};
use super::quarantine::{self, Judged};
use super::refused::Refused;
use super::remarks;
use crate::gateway::config::ToolFilter;
use crate::gateway::lists::{ListKind, RawLists};
use crate::gateway::naming::Naming;

/// How a server's definitions become those that clients see.
#[derive(Debug, Clone, Copy)]
pub struct Shaping<'a> {
    /// How names are made.
    pub naming: Naming,
    /// Which tools are shown, and how.
    pub filter: &'a ToolFilter,
    /// `outputSchema` moves to `_meta`, so that a result that the guard replaced stays valid.
    pub relax_output: bool,
    /// With these, tools whose definition differs from the approved one are held back.
    pub pins: Option<&'a Pins>,
}

/// One server's definitions.
#[derive(Debug)]
pub struct ServerCatalogue {
    server: String,
    lists: [Vec<Definition>; 4],
    refused: Vec<Refused>,
    hidden: usize,
    notes: Vec<String>,
    digests: BTreeMap<String, Digest>,
    index: OnceLock<Index>,
}

impl ServerCatalogue {
    /// Everything that the server listed is shown.
    pub fn is_whole(&self) -> bool {
        self.hidden == 0 && self.refused.is_empty()
    }

    /// Judges and shapes what a server listed.
    pub fn new(server: &str, raw: &RawLists, shaping: Shaping<'_>) -> Self {
        let mut this = Self {
            server: server.to_owned(),
            lists: <[Vec<Definition>; 4]>::default(),
            refused: Vec::new(),
            hidden: 0,
            notes: raw.notes.clone(),
            digests: BTreeMap::new(),
            index: OnceLock::new(),
        };
        for kind in ListKind::ALL {
            this.take(kind, raw.list(kind), shaping);
            let list = &this.lists[kind as usize];
            this.notes.extend(remarks::of_list(kind, server, list, shaping.naming, shaping.filter));
        }
        if !raw.tools.is_empty() {
            let own: Vec<String> = raw
                .tools
                .iter()
                .enumerate()
                .map(|(at, raw)| quarantine::name_of(ListKind::Tools, raw, at))
                .collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            this.notes.extend(remarks::of_filter(shaping.filter, &own));
        }
        this
    }

    /// The server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What can be shown, in the server's order.
    pub fn definitions(&self, kind: ListKind) -> &[Definition] {
        &self.lists[kind as usize]
    }

    /// What is kept from clients because it would break them, or because it cannot be told from another.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// How many tools the filter hides.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// What was not as it should be, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Digests of the definitions of all tools that the filter shows, by the server's own name: for [`Pins`].
    pub fn digests(&self) -> &BTreeMap<String, Digest> {
        &self.digests
    }

    /// About how many tokens the tools cost a client that is shown all of them.
    pub fn tokens(&self) -> usize {
        self.definitions(ListKind::Tools).iter().map(Definition::tokens).sum()
    }

    /// For searches; made when it is first wanted, and kept.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.server, self.definitions(ListKind::Tools)))
    }

    fn take(&mut self, kind: ListKind, raw: &[Bytes], shaping: Shaping<'_>) {
        let mut seen: HashMap<String, Taken> = HashMap::new();
        for (position, raw) in raw.iter().enumerate() {
            let judged = match quarantine::judge(kind, raw) {
                Ok(judged) => judged,
                Err(reason) => {
                    self.refuse(kind, quarantine::name_of(kind, raw, position), reason);
                    continue;
                }
            };
            if kind == ListKind::Tools && !self.admits(&judged, shaping) {
                continue;
            }
            let definition = shape(kind, &self.server, judged, shaping);
            let Some(earlier) = seen.get_mut(&definition.exposed) else {
                let taken = Taken { own: definition.own.clone(), at: Some(self.lists[kind as usize].len()) };
                seen.insert(definition.exposed.clone(), taken);
                self.lists[kind as usize].push(definition);
                continue;
            };
            if earlier.own == definition.own {
                self.refuse(kind, definition.own, "is listed twice; the first one is shown".to_owned());
                continue;
            }
            // Which of the two a client would get must not depend on their order, so it gets neither.
            let both = |one: &str, other: &str| {
                let exposed = &definition.exposed;
                format!("{one:?} and {other:?} would both be {exposed:?}; rename one of them")
            };
            let (own, other) = (definition.own.clone(), earlier.own.clone());
            if let Some(at) = earlier.at.take() {
                let reason = both(&other, &own);
                self.lists[kind as usize][at].clash = true;
                self.refuse(kind, other.clone(), reason);
            }
            let reason = both(&own, &other);
            self.refuse(kind, own, reason);
        }
        self.lists[kind as usize].retain(|definition| !definition.clash);
    }

    /// The filter shows the tool, and no pin holds it back.
    fn admits(&mut self, judged: &Judged, shaping: Shaping<'_>) -> bool {
        if shaping.filter.hides(&judged.own).is_some() {
            self.hidden += 1;
            return false;
        }
        let digest = digest(&judged.value);
        let is_held = shaping.pins.is_some_and(|pins| pins.is_changed(&judged.own, &digest));
        self.digests.entry(judged.own.clone()).or_insert(digest);
        if is_held {
            let reason = "has changed since it was approved, and is held back".to_owned();
            self.refuse(ListKind::Tools, judged.own.clone(), reason);
        }
        !is_held
    }

    fn refuse(&mut self, kind: ListKind, name: String, reason: String) {
        self.refused.push(Refused { kind, server: self.server.clone(), name, reason });
    }
}

/// A name that is taken.
#[derive(Debug)]
struct Taken {
    own: String,
    /// Where its definition is, until it has to make room for a clash.
    at: Option<usize>,
}

fn shape(kind: ListKind, server: &str, mut judged: Judged, shaping: Shaping<'_>) -> Definition {
    let exposed = match kind {
        ListKind::Tools => shaping.naming.exposed(server, shaping.filter.shown(&judged.own)),
        ListKind::Prompts => shaping.naming.exposed(server, &judged.own),
        ListKind::Resources | ListKind::Templates => judged.own.clone(),
    };
    if exposed != judged.own {
        judged.members.set("name", quoted(&exposed));
    }
    if kind == ListKind::Tools {
        if let Some(description) = shaping.filter.description(&judged.own) {
            judged.members.set("description", quoted(description));
        }
        if shaping.relax_output {
            judged.relax();
        }
    }
    let item = Bytes::from(judged.members.json());
    // A copy, so that the whole page that it came in is not kept for one name.
    let own_json = Bytes::copy_from_slice(&judged.own_json);
    Definition { own: judged.own, own_json, exposed, item, repairs: judged.repairs, clash: false }
}

impl Definition {
    /// About how many tokens it costs a client: four characters each.
    pub fn tokens(&self) -> usize {
        std::str::from_utf8(&self.item).map_or(self.item.len(), |text| text.chars().count()).div_ceil(4)
    }

    /// A text of the definition: `description`, `title`.
    pub fn text(&self, member: &str) -> Option<String> {
        find::string(&self.item, find::find(&self.item, &[Step::Key(member)])?)
    }

    /// The raw JSON of a member: `inputSchema`, `annotations`.
    pub fn member(&self, name: &str) -> Option<Bytes> {
        find::find(&self.item, &[Step::Key(name)]).map(|at| self.item.slice(at))
    }

    /// What the server says of a tool, `readOnlyHint` and the like.
    pub fn hint(&self, name: &str) -> Option<bool> {
        let at = find::find(&self.item, &[Step::Key("annotations"), Step::Key(name)])?;
        match self.item.get(at)? {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }
}
