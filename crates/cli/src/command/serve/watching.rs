//! Owns the reload of a running gateway: files change, are read again beside the running calls, and the gateway is told.
//! A file that is bad keeps what it said before.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use toolway_config::{Loader, Watch};
use toolway_proxy::gateway::GatewayHandle;

use super::Gateway;
use crate::compose::servers::Servers;

/// How long a file holds still before it is read.
const SETTLE: Duration = Duration::from_millis(200);

/// The watch over the files of one gateway.
#[derive(Debug)]
pub(super) struct Watching {
    watch: Option<Watch>,
    changes: mpsc::Receiver<()>,
    loader: Loader,
}

impl Watching {
    /// Watches these files. That they cannot be watched is said, and nothing else.
    pub(super) fn start(files: Vec<PathBuf>, loader: Loader) -> Self {
        let (tell, changes) = mpsc::channel(1);
        // One change waits while one is dealt with: more would say nothing more.
        let watch = Watch::start(files, SETTLE, move || {
            tell.try_send(()).ok();
        });
        let watch =
            watch.map_err(|error| tracing::warn!("changes of the configuration are not seen: {error}"));
        Self { watch: watch.ok(), changes, loader }
    }

    /// Reloads as often as anything changes.
    pub(super) async fn run(mut self, gateway: &Gateway, handle: &GatewayHandle) -> Infallible {
        loop {
            if self.watch.is_none() || self.changes.recv().await.is_none() {
                return std::future::pending().await;
            }
            let (sources, own) = (gateway.sources.clone(), gateway.own.clone());
            let mut loader = std::mem::take(&mut self.loader);
            // Files may be slow, and calls go on.
            let loaded = tokio::task::spawn_blocking(move || {
                let servers = Servers::load_again(&sources, &own, &mut loader);
                (servers, loader)
            });
            let Ok((servers, loader)) = loaded.await else { continue };
            self.loader = loader;
            let servers = match servers {
                Ok(servers) => servers,
                Err(error) => {
                    tracing::warn!("the configuration stays as it was: {error}");
                    continue;
                }
            };
            if let Some(watch) = &self.watch {
                watch.set(servers.resolved.watched());
            }
            tell(&servers);
            tracing::info!(servers = servers.entries.len(), "the configuration was read again");
            match gateway.entries(servers) {
                Ok(entries) => handle.reload(gateway.serving.with(entries)).await,
                Err(error) => tracing::warn!("the configuration stays as it was: {error}"),
            }
        }
    }
}

/// Says what is wrong with the files.
pub(super) fn tell(servers: &Servers) {
    for problem in &servers.resolved.problems {
        if problem.is_error() {
            tracing::error!("{problem}");
        } else {
            tracing::warn!("{problem}");
        }
    }
}
