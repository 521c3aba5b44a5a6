//! Owns what all servers have to offer: the merged lists as bytes that are ready to send, and the way back from what a
//! client names to the server and its own name. Pure but for `disk`; never splits a name to find its server.

mod definition;
mod disk;
mod index;
mod members;
mod merged;
mod pins;
mod quarantine;
mod refused;
mod remarks;
mod server;
mod uri;
mod words;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use toolway_guard::Glob;

use merged::Merged;

pub use definition::Definition;
pub use disk::{CatalogueDisk, Kept};
pub use index::Hit;
pub use pins::{Difference, Digest, Pins};
pub use refused::Refused;
pub use server::{ServerCatalogue, Shaping};

use super::lists::ListKind;

/// Which lists differ from what clients saw before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// `tools/list`, as far as it is shown.
    pub tools: bool,
    /// `prompts/list`
    pub prompts: bool,
    /// `resources/list` or `resources/templates/list`
    pub resources: bool,
}

impl Changes {
    /// Some list differs.
    pub fn any(self) -> bool {
        self.tools || self.prompts || self.resources
    }
}

/// Where something that a client named is.
#[derive(Debug, Clone, Copy)]
pub struct Route<'a> {
    /// The number under which the server was put in.
    pub server: usize,
    /// Its definition, with the server's own name.
    pub definition: &'a Definition,
}

/// Where a resource is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRoute<'a> {
    /// The number under which the server was put in.
    pub server: usize,
    /// The address that the server knows.
    pub own: Cow<'a, str>,
}

/// The definitions of all servers, by the numbers that the caller gives them; the order of numbers is the order of
/// lists. Merging waits until somebody asks, so that a server which changes its lists all the time costs little.
#[derive(Debug, Default)]
pub struct Catalogue {
    servers: BTreeMap<usize, Arc<ServerCatalogue>>,
    own_tools: Vec<Bytes>,
    pinned: Option<Vec<Glob>>,
    merged: [Option<Merged>; 4],
}

impl Catalogue {
    /// An empty one. `own_tools` are the gateway's definitions, shown after those of servers. With `pinned`, only
    /// tools whose exposed name fits one of these are listed (all can be called).
    pub fn new(own_tools: Vec<Bytes>, pinned: Option<Vec<Glob>>) -> Self {
        Self { own_tools, pinned, ..Self::default() }
    }

    /// Puts in what a server has now.
    pub fn set(&mut self, server: usize, catalogue: Arc<ServerCatalogue>) -> Changes {
        if self.pinned.is_some() {
            // Clients search: the first of them is not to wait for it.
            catalogue.index();
        }
        let after = Arc::clone(&catalogue);
        let before = self.servers.insert(server, catalogue);
        self.changed(before.as_deref(), Some(&after))
    }

    /// Takes a server out.
    pub fn remove(&mut self, server: usize) -> Changes {
        let before = self.servers.remove(&server);
        self.changed(before.as_deref(), None)
    }

    /// What a server has.
    pub fn get(&self, server: usize) -> Option<&Arc<ServerCatalogue>> {
        self.servers.get(&server)
    }

    /// All servers, in order.
    pub fn servers(&self) -> impl Iterator<Item = (usize, &ServerCatalogue)> {
        self.servers.iter().map(|(server, catalogue)| (*server, &**catalogue))
    }

    /// The gateway's own tools.
    pub fn own_tools(&self) -> &[Bytes] {
        &self.own_tools
    }

    /// The result of a list request, whole: `{"tools":[...]}`.
    pub fn list(&mut self, kind: ListKind) -> Bytes {
        self.merged(kind).body.clone()
    }

    /// The tool or prompt of that exposed name, the resource or template of exactly that address.
    pub fn route(&mut self, kind: ListKind, exposed: &str) -> Option<Route<'_>> {
        let (server, at) = self.merged(kind).find(exposed)?;
        let definition = self.servers.get(&server)?.definitions(kind).get(at)?;
        Some(Route { server, definition })
    }

    /// Whose resource that is: one that is listed, one that fits a template, one of a server that has others from
    /// the same place, or of the only server that has any. Templates by their own text too, for completions.
    pub fn resource<'a>(&mut self, uri: &'a str) -> Option<ResourceRoute<'a>> {
        for kind in [ListKind::Resources, ListKind::Templates] {
            if let Some(route) = self.route(kind, uri) {
                let (server, own) = (route.server, &route.definition.own);
                let own = if own == uri { Cow::Borrowed(uri) } else { Cow::Owned(own.clone()) };
                return Some(ResourceRoute { server, own });
            }
        }
        if let Some((name, own)) = uri::of_alias(uri)
            && let Some((server, _)) = self.servers().find(|(_, catalogue)| catalogue.server() == name)
        {
            return Some(ResourceRoute { server, own: Cow::Borrowed(own) });
        }
        let owned = |server| ResourceRoute { server, own: Cow::Borrowed(uri) };
        let fits = |definition: &Definition| uri::fits(&definition.own, uri);
        if let Some(server) = self.first_by_name(|one| one.definitions(ListKind::Templates).iter().any(fits))
        {
            return Some(owned(server));
        }
        let origin = uri::origin(uri);
        let near = |one: &ServerCatalogue| {
            resources(one).any(|definition| uri::origin(&definition.own).eq_ignore_ascii_case(origin))
        };
        let near = self.first_by_name(near);
        near.or_else(|| self.only(|one| resources(one).next().is_some())).map(owned)
    }

    /// The address under which clients know a server's resource, for notifications that name it.
    pub fn exposed_uri<'a>(&mut self, server: usize, own: &'a str) -> Cow<'a, str> {
        let holder = self.merged(ListKind::Resources).find(own).map(|(holder, _)| holder);
        match self.servers.get(&server) {
            Some(catalogue) if holder.is_some_and(|holder| holder != server) => {
                Cow::Owned(uri::alias(catalogue.server(), own))
            }
            _ => Cow::Borrowed(own),
        }
    }

    /// What is kept from clients, of all servers, and between them.
    pub fn refused(&mut self) -> Vec<Refused> {
        let mut all: Vec<Refused> =
            self.servers.values().flat_map(|catalogue| catalogue.refused().iter().cloned()).collect();
        for kind in ListKind::ALL {
            all.extend(self.merged(kind).refused.iter().cloned());
        }
        all
    }

    /// The tool is in the list that clients get, and not only to be found by a search.
    pub fn is_listed(&self, exposed: &str) -> bool {
        self.pinned.as_ref().is_none_or(|pinned| pinned.iter().any(|glob| glob.matches(exposed)))
    }

    /// The tools that fit a question, best first, of all servers or of one. Only what can be called.
    pub fn find_tools(&mut self, question: &str, server: Option<&str>) -> Vec<Hit> {
        let lost = self.unreachable();
        let servers: Vec<_> = self
            .servers()
            .filter(|(_, catalogue)| server.is_none_or(|name| catalogue.server() == name))
            .map(|(server, catalogue)| (server, catalogue.index()))
            .collect();
        let mut hits = index::rank(&servers, question);
        hits.retain(|hit| !lost.contains(&(hit.server, hit.at)));
        hits
    }

    /// Tools that have to do without their name, as (server, place): they can neither be called nor found.
    pub(super) fn unreachable(&mut self) -> HashSet<(usize, usize)> {
        self.merged(ListKind::Tools).lost.clone()
    }

    fn merged(&mut self, kind: ListKind) -> &Merged {
        let Self { servers, own_tools, pinned, merged } = self;
        merged[kind as usize].get_or_insert_with(|| match kind {
            ListKind::Tools => Merged::new(kind, servers, own_tools, |exposed| {
                pinned.as_ref().is_none_or(|pinned| pinned.iter().any(|glob| glob.matches(exposed)))
            }),
            _ => Merged::new(kind, servers, &[], |_| true),
        })
    }

    fn changed(&mut self, before: Option<&ServerCatalogue>, after: Option<&ServerCatalogue>) -> Changes {
        let mut differs = [false; 4];
        for kind in ListKind::ALL {
            let before = before.map_or(&[][..], |before| before.definitions(kind));
            let after = after.map_or(&[][..], |after| after.definitions(kind));
            if before == after {
                continue;
            }
            self.merged[kind as usize] = None;
            let listed = |one: &&Definition| kind != ListKind::Tools || self.is_listed(&one.exposed);
            differs[kind as usize] = before
                .iter()
                .filter(listed)
                .map(|one| &one.item)
                .ne(after.iter().filter(listed).map(|one| &one.item));
        }
        let [tools, prompts, resources, templates] = differs;
        Changes { tools, prompts, resources: resources || templates }
    }

    /// The server that is the only one with that property.
    fn only(&self, property: impl Fn(&ServerCatalogue) -> bool) -> Option<usize> {
        let mut having = self.servers().filter(|(_, catalogue)| property(catalogue));
        let (server, _) = having.next()?;
        having.next().is_none().then_some(server)
    }

    /// The server with that property whose name comes first, whatever the order of configuration.
    fn first_by_name(&self, property: impl Fn(&ServerCatalogue) -> bool) -> Option<usize> {
        let having = self.servers().filter(|(_, catalogue)| property(catalogue));
        having.min_by(|one, other| one.1.server().cmp(other.1.server())).map(|(server, _)| server)
    }
}

fn resources(catalogue: &ServerCatalogue) -> impl Iterator<Item = &Definition> {
    [ListKind::Resources, ListKind::Templates].into_iter().flat_map(|kind| catalogue.definitions(kind))
}

#[cfg(test)]
mod tests;
