//! Owns the way from a path to the run that it belongs to. The token in the path is the only credential, so it is compared
//! in a time that says nothing of it.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use subtle::ConstantTimeEq;
use toolway_secret::Secret;

use super::door::Refused;
use super::session::Sessions;
use crate::run::Run;

/// Runs that are over, and whose paths still say so.
const REMEMBERED: usize = 1024;

/// A run that is served.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) run: Run,
    pub(super) sessions: Sessions,
}

/// All paths of a listener.
#[derive(Debug)]
pub(super) struct Routes {
    segment: &'static str,
    table: RwLock<Table>,
}

#[derive(Debug, Default)]
struct Table {
    open: Vec<(Secret, Arc<Route>)>,
    over: VecDeque<Secret>,
}

impl Routes {
    pub(super) fn new(segment: &'static str) -> Self {
        Self { segment, table: RwLock::default() }
    }

    pub(super) fn open(&self, token: Secret, run: Run, max_sessions: usize) {
        let route = Arc::new(Route { run, sessions: Sessions::new(max_sessions) });
        self.table.write().unwrap_or_else(PoisonError::into_inner).open.push((token, route));
    }

    pub(super) fn close(&self, token: &Secret) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.open.retain(|(open, _)| !is_same(open, token.expose()));
        table.over.push_back(token.clone());
        if table.over.len() > REMEMBERED {
            table.over.pop_front();
        }
    }

    /// The run of a path, if it still takes requests.
    pub(super) fn find(&self, path: &str) -> Result<Arc<Route>, Refused> {
        let token = self.token(path).ok_or(Refused::Path)?;
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        // All are looked at, whichever it is.
        let mut found = None;
        for (open, route) in &table.open {
            if is_same(open, token) {
                found = Some(route);
            }
        }
        match found {
            Some(route) if route.run.is_disposed() => Err(Refused::Gone),
            Some(route) => Ok(Arc::clone(route)),
            None if table.over.iter().any(|over| is_same(over, token)) => Err(Refused::Gone),
            None => Err(Refused::Path),
        }
    }

    fn token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix('/')?.strip_prefix(self.segment)?;
        rest.strip_prefix('/')?.strip_suffix("/mcp")
    }
}

fn is_same(token: &Secret, given: &str) -> bool {
    token.expose().as_bytes().ct_eq(given.as_bytes()).into()
}
