//! Owns what is remembered of servers from one run to the next: lists, so that tools are there before their server is,
//! and approved definitions, so that a change is noticed. The file system is somebody else's work.

use std::path::PathBuf;
use std::sync::Arc;

use super::work::{Done, Work};
use super::{Effect, Hub};
use crate::gateway::catalogue::{CatalogueDisk, Difference, Kept, Pins};
use crate::gateway::config::{ServerConfig, Target};
use crate::gateway::lists::RawLists;

/// What was found on the disk of one server.
#[derive(Debug)]
pub(in crate::gateway) struct Recalled {
    server: usize,
    digest: String,
    kept: Option<Kept>,
    pins: Pins,
}

/// Reads what is remembered of a server.
pub(super) fn recall(directory: PathBuf, server: usize, digest: String) -> Done {
    let disk = CatalogueDisk::new(directory);
    let (kept, pins) = (disk.load(&digest), disk.load_pins(&digest));
    Done::Recalled(Box::new(Recalled { server, digest, kept, pins }))
}

/// Writes what is to be remembered of a server.
pub(super) fn keep(directory: PathBuf, digest: &str, kept: Option<&Kept>, pins: Option<&Pins>) -> Done {
    let disk = CatalogueDisk::new(directory);
    let lists = kept.map_or(Ok(()), |kept| disk.save(digest, kept));
    if let Err(error) = lists.and_then(|()| pins.map_or(Ok(()), |pins| disk.save_pins(digest, pins))) {
        tracing::warn!(%error, "cannot remember what a server listed");
    }
    Done::Kept
}

impl Hub {
    /// Looks for what is remembered of a server, before it has said anything.
    pub(super) fn recall(&mut self, number: usize, config: &Arc<ServerConfig>) {
        let Some(server) = self.servers.get_mut(number) else { return };
        let Some(directory) = self.config.catalogue_dir.clone().filter(|_| is_remembered(config)) else {
            (server.recalled, server.pins) = (true, Pins::default());
            self.list_once(number, config);
            return;
        };
        server.recalled = false;
        let digest = config.digest.clone();
        self.effects.push(Effect::Work(Work::Recall { directory, server: number, digest }));
    }

    /// It was looked for.
    pub(super) fn recalled(&mut self, recalled: Recalled) {
        let Recalled { server: number, digest, kept, pins } = recalled;
        let Some(server) = self.servers.get_mut(number) else { return };
        // The settings may have changed meanwhile.
        let Some(config) = server.plan.as_ref().ok().filter(|config| config.digest == digest) else { return };
        let config = Arc::clone(config);
        (server.recalled, server.pins) = (true, pins);
        match (server.lists.clone().filter(|_| server.live), kept) {
            (Some(lists), _) => self.put_live_lists(number, &config, &lists),
            (None, Some(kept)) => {
                let lists = Arc::new(kept.lists);
                server.lists = Some(Arc::clone(&lists));
                self.put_lists(number, &config, &lists);
            }
            (None, None) => self.list_once(number, &config),
        }
        self.lists_may_go();
    }

    /// A lazy server of which nothing is known is started once, so that its tools can be shown.
    fn list_once(&mut self, number: usize, config: &ServerConfig) {
        let shared = self.servers.get(number).and_then(|server| server.shared);
        if let Some(shared) = shared.filter(|_| config.lazy) {
            self.effects.push(Effect::Wake(shared));
        }
    }

    /// Shows what a server has just listed, notes what is new, and has it remembered.
    pub(super) fn put_live_lists(&mut self, number: usize, config: &ServerConfig, lists: &Arc<RawLists>) {
        self.put_lists(number, config, lists);
        let Some(directory) = self.config.catalogue_dir.clone().filter(|_| is_remembered(config)) else {
            return;
        };
        let digests = self.lists.catalogue().get(number).map(|catalogue| catalogue.digests().clone());
        let copies = self.copies(number);
        let protocol = copies.iter().find_map(|copy| {
            self.instances.get(copy)?.negotiated.as_ref().map(|negotiated| negotiated.version.clone())
        });
        let (Some(server), Some(digests)) = (self.servers.get_mut(number), digests) else { return };
        let changed = server.pins.compare(&digests).into_iter();
        let changed = changed.filter(|(_, difference)| *difference == Difference::Changed);
        server.changed = changed.map(|(name, _)| name).collect();
        let pins = server.pins.remember(&digests).then(|| server.pins.clone());
        let kept = Kept { server: server.name.to_string(), protocol, lists: RawLists::clone(lists) };
        let digest = config.digest.clone();
        // What another user may not see is not kept; neither is what the server says is stale at once.
        let kept = (!lists.private && !lists.pending).then_some(kept);
        self.effects.push(Effect::Work(Work::Keep { directory, digest, kept: Box::new(kept), pins }));
    }
}

/// Servers inside the process are there as soon as it is.
fn is_remembered(config: &ServerConfig) -> bool {
    !matches!(config.target, Target::Embedded(_))
}
