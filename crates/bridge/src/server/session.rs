//! Owns the legacy sessions of one run: their ids, their revision, their number in the call table. All of them see the same
//! snapshot. Knows no HTTP.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolway_wire::era::ProtocolVersion;

use crate::error::BridgeError;

/// One session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Session {
    /// Its number in the call table.
    pub(super) number: u64,
    /// What was agreed on.
    pub(super) version: ProtocolVersion,
}

/// The sessions of a run, by the id that clients show.
#[derive(Debug)]
pub(super) struct Sessions {
    most: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<String, (Session, u64)>,
    uses: u64,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self { most, table: Mutex::default() }
    }

    /// Opens a session and gives its id. When there is one too many, that ends which was not used for longest: its client
    /// hears 404 and opens another.
    pub(super) fn open(&self, session: Session) -> Result<String, BridgeError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| BridgeError::Randomness(error.to_string()))?;
        let id = format!("{:032x}", u128::from_be_bytes(bytes));
        let mut table = self.lock();
        if table.sessions.len() >= self.most {
            let oldest = table.sessions.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                table.sessions.remove(&oldest);
            }
        }
        table.uses += 1;
        let used = table.uses;
        table.sessions.insert(id.clone(), (session, used));
        Ok(id)
    }

    /// The session of that id, which is used now.
    pub(super) fn find(&self, id: &str) -> Option<Session> {
        let mut table = self.lock();
        table.uses += 1;
        let uses = table.uses;
        let (session, used) = table.sessions.get_mut(id)?;
        *used = uses;
        Some(*session)
    }

    /// Ends a session.
    pub(super) fn close(&self, id: &str) -> Option<Session> {
        self.lock().sessions.remove(id).map(|(session, _)| session)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_was_not_used_for_longest_makes_room() {
        let sessions = Sessions::new(2);
        let open = |number| sessions.open(Session { number, version: ProtocolVersion::V2025_11_25 }).unwrap();
        let (first, second) = (open(1), open(2));
        assert_eq!(sessions.find(&first).map(|session| session.number), Some(1));
        let third = open(3);
        assert_eq!(sessions.find(&second), None);
        assert_eq!(sessions.close(&first).map(|session| session.number), Some(1));
        assert_eq!(sessions.find(&first), None);
        assert_eq!((third.len(), third == first), (32, false));
    }
}
