//! Owns the way from sessions to the store: files are read and written, and keyrings asked, where nothing else of the
//! process waits for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Inner, Shared};
use crate::error::AuthError;
use crate::store::{Entry, EntryId, Lock, Over, Prepared, Store, Written};

impl Shared {
    pub(super) async fn with_store<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Arc<Store>) -> Result<T, AuthError> + Send + 'static,
    ) -> Result<T, AuthError> {
        let store = Arc::clone(&self.store);
        match tokio::task::spawn_blocking(move || act(&store)).await {
            Ok(done) => done,
            Err(error) => Err(AuthError::store(self.store.directory(), error)),
        }
    }

    /// The lock for changes of one entry.
    pub(super) async fn lock(&self, id: &EntryId) -> Result<Lock, AuthError> {
        self.store.lock(id, self.settings.lock_timeout).await
    }

    pub(super) async fn read(&self, id: &EntryId) -> Result<Option<Entry>, AuthError> {
        let id = id.clone();
        self.with_store(move |store| store.read(&id)).await
    }

    pub(super) async fn prepare(&self, id: &EntryId, _held: &Lock) -> Result<Prepared, AuthError> {
        let id = id.clone();
        self.with_store(move |store| store.prepare(&id)).await
    }

    pub(super) async fn keep(
        &self,
        prepared: Prepared,
        entry: Entry,
        over: Over,
        _held: &Lock,
    ) -> Result<Written, AuthError> {
        self.with_store(move |_| prepared.keep(entry, over)).await
    }

    pub(super) async fn remove(
        &self,
        id: &EntryId,
        generation: u64,
        _held: &Lock,
    ) -> Result<bool, AuthError> {
        let id = id.clone();
        self.with_store(move |store| store.remove(&id, generation)).await
    }

    pub(super) async fn set_aside(&self, id: &EntryId, _held: &Lock) -> Result<(), AuthError> {
        let id = id.clone();
        self.with_store(move |store| store.set_aside(&id)).await
    }
}

impl Inner {
    pub(super) async fn stamp(&self) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
        let asked = self.asked().to_owned();
        self.shared.with_store(move |store| Ok(store.stamp(&asked))).await.unwrap_or_default()
    }

    /// The newest sign-in.
    pub(super) async fn kept(&self) -> Result<Option<Entry>, AuthError> {
        Ok(self.all_kept().await?.into_iter().next())
    }

    /// All sign-ins of this server, client and account.
    pub(super) async fn all_kept(&self) -> Result<Vec<Entry>, AuthError> {
        let (asked, account) = (self.asked().to_owned(), self.server.account.clone());
        let client = self.client_id().map(str::to_owned);
        self.shared.with_store(move |store| store.find(&asked, client.as_deref(), &account)).await
    }

    /// The newest sign-in. What cannot be read any more stands in nobody's way who signs in anew.
    pub(super) async fn kept_or_unusable(&self) -> Result<Option<Entry>, AuthError> {
        match self.kept().await {
            Err(AuthError::Store { path, reason }) => {
                tracing::warn!(path = %path.display(), reason, "what was kept of a sign-in cannot be used");
                Ok(None)
            }
            kept => kept,
        }
    }
}
