//! Owns the start of many servers beside one another, for the commands that look at all of them. Knows no output.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;
use toolway_proxy::gateway::{
    Client, ClientError, Negotiated, RawLists, ServerConfig, ServerState, Shared, Stage,
};

use super::page::remarks;
use super::refusal::Refusal;
use super::session::Shell;

/// Servers that are being started at the same time.
const AT_ONCE: usize = 8;

/// What is wanted of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All lists.
    Lists,
    /// A sign of life.
    Ping,
}

/// What became of a server.
#[derive(Debug)]
pub(crate) struct Started {
    /// Its place in what was given.
    pub(crate) index: usize,
    /// As it was when it was asked.
    pub(crate) state: ServerState,
    /// What it said of itself.
    pub(crate) negotiated: Option<Negotiated>,
    /// What it offers, where that was asked for.
    pub(crate) lists: Option<RawLists>,
    /// What was not as it should be in it.
    pub(crate) remarks: Vec<String>,
    /// How long a sign of life took.
    pub(crate) ping: Option<Duration>,
    /// How long the start took.
    pub(crate) took: Duration,
}

/// Starts these servers, asks each what is wanted, and ends them. In the order given. A signal ends all.
pub(crate) async fn start_all(
    shell: &Shell,
    configs: Vec<(usize, Arc<ServerConfig>)>,
    wanted: Wanted,
) -> Result<Vec<Started>, Refusal> {
    LocalSet::new().run_until(beside_one_another(shell, configs, wanted)).await
}

async fn beside_one_another(
    shell: &Shell,
    configs: Vec<(usize, Arc<ServerConfig>)>,
    wanted: Wanted,
) -> Result<Vec<Started>, Refusal> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for (index, config) in configs {
        let (room, shared) = (Arc::clone(&room), shell.shared().clone());
        running.spawn_local(async move {
            // The semaphore is never closed.
            let _place = room.acquire().await;
            start(index, &config, &shared, wanted).await
        });
    }
    let mut all: Vec<Started> = Vec::new();
    loop {
        tokio::select! {
            biased;
            signal = shell.interrupts().next() => return Err(Refusal::signal(signal)),
            done = running.join_next() => match done {
                Some(Ok(started)) => all.push(started),
                Some(Err(error)) => return Err(Refusal::usage(format!("a start went wrong: {error}"))),
                None => break,
            },
        }
    }
    all.sort_by_key(|started| started.index);
    Ok(all)
}

async fn start(index: usize, config: &ServerConfig, shared: &Shared, wanted: Wanted) -> Started {
    let begun = Instant::now();
    let mut started = Started {
        index,
        state: ServerState::Connected,
        negotiated: None,
        lists: None,
        remarks: Vec::new(),
        ping: None,
        took: Duration::ZERO,
    };
    let opened = Client::open(config, shared).await;
    started.took = begun.elapsed();
    let mut client = match opened {
        Ok(client) => client,
        Err(error) => {
            started.state = error.state();
            return started;
        }
    };
    started.negotiated = Some(client.negotiated().clone());
    let failed = |error: &ClientError, stage| match error {
        ClientError::Unanswered(failure) if failure.needs_auth() => {
            ServerState::NeedsAuth { hint: failure.hint().unwrap_or_else(|| error.to_string()) }
        }
        error => ServerState::Failed { stage, reason: error.to_string(), hint: None },
    };
    match wanted {
        Wanted::Lists => match client.lists().await {
            Ok(lists) => {
                started.remarks = remarks(config, &lists);
                started.lists = Some(lists);
            }
            Err(error) => started.state = failed(&error, Stage::List),
        },
        Wanted::Ping => match client.ping().await {
            Ok(time) => started.ping = Some(time),
            Err(error) => started.state = failed(&error, Stage::Run),
        },
    }
    client.close().await;
    started
}
