//! Owns the copies of servers that run: each is a small gateway of its own with one server and bare names, which keeps its
//! clients apart. One that nobody uses ends after a while.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use toolway_guard::Guard;

use super::definition::Definition;
use super::hello::{CopyStatus, Reply};
use crate::gateway::{
    Expose, GatewayConfig, GatewayHandle, MAX_NAME_CHARS, ServerEntry, ServerState, Shared, Wait,
};

/// How often a server that starts is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What the end of one copy may take.
const END: Duration = Duration::from_secs(8);
/// Beyond the server's own startup time.
const MARGIN: Duration = Duration::from_secs(2);

/// What the copies are made with.
#[derive(Debug, Clone)]
pub(super) struct Making {
    /// Passes everything: the size policy is for the gateways.
    pub(super) guard: Arc<Guard>,
    pub(super) shared: Shared,
    /// Our own program, which watches over processes.
    pub(super) supervisor: Option<PathBuf>,
}

/// All copies, by the key of their definitions.
#[derive(Debug)]
pub(super) struct Copies {
    making: Making,
    open: Mutex<HashMap<String, Arc<Copy>>>,
}

/// One copy.
#[derive(Debug)]
pub(super) struct Copy {
    key: String,
    name: String,
    pub(super) handle: GatewayHandle,
    startup: Duration,
    usage: Mutex<Usage>,
}

#[derive(Debug)]
struct Usage {
    clients: usize,
    since: Instant,
}

/// A client's use of a copy; it ends with this value.
#[derive(Debug)]
pub(super) struct Using(pub(super) Arc<Copy>);

impl Copy {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.clients -= 1;
        usage.since = Instant::now();
    }
}

impl Copies {
    pub(super) fn new(making: Making) -> Self {
        Self { making, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Copy>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The copy of this server, which is started where there is none. It has answered, or the reply says why not.
    pub(super) async fn get(&self, definition: &Definition) -> Result<Using, Reply> {
        let using = self.use_or_start(definition)?;
        let copy = Arc::clone(&using.0);
        let looking = async {
            loop {
                let state = copy.handle.status().await.into_iter().next().map(|status| status.state);
                match state {
                    Some(ServerState::Starting) => sleep(LOOK).await,
                    Some(ServerState::Connected) => return Ok(()),
                    Some(ServerState::Failed { stage, reason, hint }) => {
                        let error = Some(format!("{} ({})", reason, stage.name()));
                        return Err(Reply { error, hint, status: None });
                    }
                    Some(other) => return Err(Reply::error(other.to_string())),
                    None => return Err(Reply::error("the daemon is ending")),
                }
            }
        };
        let ready = timeout(copy.startup + MARGIN, looking).await;
        let ready = ready.unwrap_or_else(|_| Err(Reply::error("the server did not start in time")));
        if let Err(reply) = ready {
            drop(using);
            self.give_up(&copy).await;
            return Err(reply);
        }
        Ok(using)
    }

    fn use_or_start(&self, definition: &Definition) -> Result<Using, Reply> {
        let key = definition.key();
        let mut open = self.open();
        let copy = if let Some(copy) = open.get(&key) {
            Arc::clone(copy)
        } else {
            let copy = Arc::new(self.start(definition, key.clone())?);
            open.insert(key, Arc::clone(&copy));
            copy
        };
        copy.usage().clients += 1;
        Ok(Using(copy))
    }

    fn start(&self, definition: &Definition, key: String) -> Result<Copy, Reply> {
        let Making { guard, shared, supervisor } = self.making.clone();
        let config =
            definition.config(supervisor).ok_or_else(|| Reply::error("this definition makes no sense"))?;
        let startup = config.timeouts.startup;
        let entry = ServerEntry {
            name: definition.name.clone(),
            source: "a gateway".to_owned(),
            plan: Ok(Arc::new(config)),
        };
        let config = GatewayConfig {
            servers: vec![entry],
            expose: Expose::All,
            bare: true,
            max_name_chars: MAX_NAME_CHARS,
            wait: Wait::All,
            pin_tools: false,
            catalogue_dir: None,
            guard,
        };
        let usage = Mutex::new(Usage { clients: 0, since: Instant::now() });
        let handle = GatewayHandle::start(config, shared);
        Ok(Copy { key, name: definition.name.clone(), handle, startup, usage })
    }

    /// Ends a copy that failed, unless somebody else uses it meanwhile.
    async fn give_up(&self, copy: &Arc<Copy>) {
        let ours = {
            let mut open = self.open();
            let unused = copy.usage().clients == 0;
            let same = open.get(&copy.key).is_some_and(|own| Arc::ptr_eq(own, copy));
            if unused && same {
                open.remove(&copy.key);
            }
            unused && same
        };
        if ours {
            end(copy).await;
        }
    }

    /// Ends the copies that nobody has used for so long; says how many are left.
    pub(super) async fn sweep(&self, idle: Duration) -> usize {
        let now = Instant::now();
        let (left, over): (usize, Vec<Arc<Copy>>) = {
            let mut open = self.open();
            let is_over = |copy: &Arc<Copy>| {
                let usage = copy.usage();
                usage.clients == 0 && now.saturating_duration_since(usage.since) >= idle
            };
            let over = open.extract_if(|_, copy| is_over(copy)).map(|(_, copy)| copy).collect();
            (open.len(), over)
        };
        for copy in &over {
            end(copy).await;
        }
        left
    }

    /// Ends all of them, beside one another.
    pub(super) async fn end_all(&self) {
        let all: Vec<Arc<Copy>> = self.open().drain().map(|(_, copy)| copy).collect();
        let mut ending = tokio::task::JoinSet::new();
        for copy in all {
            ending.spawn(async move { end(&copy).await });
        }
        while ending.join_next().await.is_some() {}
    }

    pub(super) async fn status(&self) -> Vec<CopyStatus> {
        let all: Vec<Arc<Copy>> = self.open().values().cloned().collect();
        let mut found = Vec::new();
        for copy in all {
            let status = copy.handle.status().await.into_iter().next();
            let usage = copy.usage();
            let idle = Instant::now().saturating_duration_since(usage.since);
            found.push(CopyStatus {
                name: copy.name.clone(),
                state: status.as_ref().map_or("ending", |status| status.state.name()).to_owned(),
                clients: usage.clients,
                instances: status.map_or(0, |status| status.instances),
                idle_s: if usage.clients == 0 { idle.as_secs() } else { 0 },
            });
        }
        found.sort_by(|left, right| left.name.cmp(&right.name));
        found
    }
}

async fn end(copy: &Copy) {
    if timeout(END, copy.handle.shutdown()).await.is_err() {
        tracing::warn!(server = copy.name, "the server did not end in time");
    }
}
