//! Owns merging one list of all servers: the bytes of the result, who has which name, and clashes between servers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::members::{Members, quoted};
use super::refused::Refused;
use super::server::ServerCatalogue;
use super::uri;
use crate::gateway::lists::ListKind;

/// One list of all servers.
#[derive(Debug)]
pub(super) struct Merged {
    /// `{"tools":[...]}`
    pub(super) body: Bytes,
    /// Clashes between servers.
    pub(super) refused: Vec<Refused>,
    /// What clients name: server, and place in its list.
    names: HashMap<String, Place>,
    /// What cannot have its name.
    pub(super) lost: HashSet<Place>,
}

/// One definition on its way into the list.
type Place = (usize, usize);

impl Merged {
    pub(super) fn new(
        kind: ListKind,
        servers: &BTreeMap<usize, Arc<ServerCatalogue>>,
        own: &[Bytes],
        is_listed: impl Fn(&str) -> bool,
    ) -> Self {
        let mut this =
            Self { body: Bytes::new(), refused: Vec::new(), names: HashMap::new(), lost: HashSet::new() };
        let clashes = this.enter(kind, servers);
        let mut body = format!("{{\"{}\":[", kind.member()).into_bytes();
        let begun = body.len();
        let mut push = |item: &[u8]| {
            if body.len() > begun {
                body.push(b',');
            }
            body.extend_from_slice(item);
        };
        for (server, catalogue) in servers {
            for (at, definition) in catalogue.definitions(kind).iter().enumerate() {
                if !clashes.contains(&(*server, at)) {
                    if is_listed(&definition.exposed) {
                        push(&definition.item);
                    }
                } else if let Some(renamed) = this.under_alias(kind, catalogue, (*server, at)) {
                    push(&renamed);
                }
            }
        }
        for item in own {
            push(item);
        }
        body.extend_from_slice(b"]}");
        this.body = body.into();
        this.lost = clashes;
        this
    }

    /// Who has that name.
    pub(super) fn find(&self, name: &str) -> Option<Place> {
        self.names.get(name).copied()
    }

    /// Gives each name to the one server that has it. Returns what cannot have its name.
    fn enter(&mut self, kind: ListKind, servers: &BTreeMap<usize, Arc<ServerCatalogue>>) -> HashSet<Place> {
        let mut clashing: HashMap<String, Vec<Place>> = HashMap::new();
        for (server, catalogue) in servers {
            for (at, definition) in catalogue.definitions(kind).iter().enumerate() {
                let place = (*server, at);
                match self.names.entry(definition.exposed.clone()) {
                    std::collections::hash_map::Entry::Vacant(free) => {
                        free.insert(place);
                    }
                    std::collections::hash_map::Entry::Occupied(taken) => {
                        clashing
                            .entry(definition.exposed.clone())
                            .or_insert_with(|| vec![*taken.get()])
                            .push(place);
                    }
                }
            }
        }
        let name_of = |place: &Place| servers.get(&place.0).map_or("", |catalogue| catalogue.server());
        let mut lost = HashSet::new();
        for (exposed, mut places) in clashing {
            places.sort_by(|one, other| name_of(one).cmp(name_of(other)).then(one.cmp(other)));
            if matches!(kind, ListKind::Resources | ListKind::Templates) {
                // The server whose name comes first keeps the address, the others get one of their own.
                self.names.insert(exposed, places.remove(0));
                lost.extend(places);
                continue;
            }
            self.names.remove(&exposed);
            for place in &places {
                let others: Vec<String> = places
                    .iter()
                    .filter(|other| *other != place)
                    .map(|other| format!("{:?}", name_of(other)))
                    .collect();
                let own = servers.get(&place.0).and_then(|one| one.definitions(kind).get(place.1));
                self.refused.push(Refused {
                    kind,
                    server: name_of(place).to_owned(),
                    name: own.map(|own| own.own.clone()).unwrap_or_default(),
                    reason: format!(
                        "would be {exposed:?}, as one of {} would be; rename one of them",
                        others.join(", ")
                    ),
                });
            }
            lost.extend(places);
        }
        self.refused.sort_by(|one, other| (&one.server, &one.name).cmp(&(&other.server, &other.name)));
        lost
    }

    /// A resource under an address that names its server.
    fn under_alias(&mut self, kind: ListKind, catalogue: &ServerCatalogue, place: Place) -> Option<Vec<u8>> {
        if !matches!(kind, ListKind::Resources | ListKind::Templates) {
            return None;
        }
        let definition = catalogue.definitions(kind).get(place.1)?;
        let alias = uri::alias(catalogue.server(), &definition.own);
        let mut members = Members::of(&definition.item)?;
        members.set(kind.key(), quoted(&alias));
        self.names.insert(alias, place);
        Some(members.json())
    }
}
