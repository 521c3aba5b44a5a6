//! Owns the way from tasks to a store: every call is made on a thread that may block.

use std::sync::Arc;

use super::Store;
use crate::error::AgentError;

/// A store as tasks use it.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self) -> String {
        self.store.place()
    }

    /// Does something with it.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, AgentError> + Send + 'static,
    ) -> Result<T, AgentError> {
        let store = Arc::clone(&self.store);
        blocking(move || work(store.as_ref())).await
    }
}

/// Runs something that blocks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AgentError> + Send + 'static,
) -> Result<T, AgentError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(AgentError::Store { message: format!("the store broke off: {error}") }))
}
