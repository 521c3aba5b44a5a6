//! Owns the generations of one agent: which one is current, when another one is made, and the end of all.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use toolway_proxy::gateway::ServerState;

use super::core::END;
use super::maker::Maker;
use super::{Aside, Generation, Part};
use crate::compose::{Composed, Composer, Wanted};
use crate::custom_tools::CustomTool;
use crate::error::AgentError;
use crate::inline::{DirectServer, InlineRecord, McpServers};
use crate::options::{AgentOptions, LocalSend, SendOptions, ServerChange, offers_mcp};

/// The generations of one agent: the current one, and how others come to be. Cheap to make: nothing is read or started
/// before the first [`Generations::for_run`]. Dropping it ends all servers in the background.
#[derive(Debug)]
pub struct Generations {
    maker: Arc<Maker>,
    inline: McpServers,
    custom: Vec<CustomTool>,
    direct: Vec<DirectServer>,
    /// The model has tools of servers at all.
    offered: bool,
    missing: StdMutex<Vec<InlineRecord>>,
    changed: StdMutex<Vec<String>>,
    state: tokio::sync::Mutex<State>,
    _end: DropGuard,
}

#[derive(Debug)]
struct State {
    composer: Composer,
    current: Option<Arc<Generation>>,
    closed: bool,
}

/// What a reload found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// There is a new generation for the next run. False: nothing had been started yet, or files were bad.
    pub is_new: bool,
    /// What is wrong with files. Not empty and not `is_new`: the old servers stay.
    pub diagnostics: Vec<String>,
}

impl Generations {
    /// For an agent with these options. `saved_as` names it in the index of saved results: its id.
    ///
    /// # Errors
    /// There is no place for large results.
    pub fn new(options: &AgentOptions, saved_as: &str) -> Result<Self, AgentError> {
        let local = options.local_options();
        let maker = Arc::new(Maker::new(options, saved_as)?);
        let root = maker.root.clone();
        Ok(Self {
            maker,
            inline: options.mcp_servers.clone(),
            custom: local.map(|local| local.custom_tools.clone()).unwrap_or_default(),
            direct: local.map(|local| local.direct_servers.clone()).unwrap_or_default(),
            offered: local.is_none_or(offers_mcp),
            missing: StdMutex::default(),
            changed: StdMutex::default(),
            state: tokio::sync::Mutex::new(State {
                composer: Composer::new(options),
                current: None,
                closed: false,
            }),
            _end: root.drop_guard(),
        })
    }

    /// These were given before and are not given now: runs report them as missing.
    pub fn set_missing(&self, records: Vec<InlineRecord>) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = records;
    }

    /// These were given with another definition before: runs report that.
    pub fn set_changed(&self, names: Vec<String>) {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// The servers of one run: the current generation, made now where there is none; or one of its own where the prompt
    /// brings other servers. Returns at once: servers come up meanwhile.
    ///
    /// # Errors
    /// The agent was closed.
    pub async fn for_run(&self, send: &SendOptions) -> Result<Arc<Generation>, AgentError> {
        let mut state = self.state.lock().await;
        if state.closed {
            return Err(AgentError::Runtime { message: "the agent's servers have been ended".to_owned() });
        }
        let local = send.local();
        if !self.offered {
            return Ok(Arc::new(self.without("its tools leave out mcp", &state.composer)));
        }
        let generation = match (&send.mcp_servers, local.and_then(|local| local.custom_tools.as_deref())) {
            (ServerChange::None, None) => {
                let mut generation = self.without("the prompt asked for none", &state.composer);
                self.add_direct(&mut generation, local, &[], &state.composer).await;
                return Ok(Arc::new(generation));
            }
            (ServerChange::Inherit, None) => self.current(&mut state).await,
            (change, custom) => {
                let (wanted, aside) = self.wanted(change);
                let composed = match change {
                    ServerChange::None => Composed::default(),
                    _ => state.composer.compose(wanted).await,
                };
                let custom = custom.unwrap_or(&self.custom);
                Arc::new(self.generation(composed, custom, aside, &state.composer).await)
            }
        };
        let is_current = state.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &generation));
        let none = matches!(send.mcp_servers, ServerChange::None);
        let own: &[DirectServer] = if none { &[] } else { &self.direct };
        if is_current && local.is_none_or(|local| local.direct_servers.is_none()) {
            return Ok(generation);
        }
        let mut generation = if is_current { generation.without_direct() } else { unshared(generation) };
        self.add_direct(&mut generation, local, own, &state.composer).await;
        Ok(Arc::new(generation))
    }

    /// Reads all files again. Runs on their way keep what they have; the old servers end with the last of them.
    ///
    /// # Errors
    /// None of its own; what is wrong with files is in the report.
    pub async fn reload(&self) -> Result<Reloaded, AgentError> {
        let mut state = self.state.lock().await;
        if state.current.is_none() || state.closed || !self.offered {
            return Ok(Reloaded::default());
        }
        let composed = self.composed(&mut state).await;
        let diagnostics = composed.diagnostics.clone();
        if composed.has_bad_file {
            return Ok(Reloaded { is_new: false, diagnostics });
        }
        let next = self.whole(composed, &state.composer).await;
        state.current = Some(Arc::new(next));
        Ok(Reloaded { is_new: true, diagnostics })
    }

    /// Ends all servers and waits for their end, 5 s at most. The second time it waits for the first.
    pub async fn close(&self) {
        self.maker.root.cancel();
        if let Ok(mut state) = timeout(END, self.state.lock()).await {
            state.closed = true;
            state.current = None;
        }
        self.maker.tasks.close();
        if timeout(END, self.maker.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not end within {} s", END.as_secs());
        }
    }

    async fn current(&self, state: &mut State) -> Arc<Generation> {
        if let Some(current) = &state.current {
            return Arc::clone(current);
        }
        let composed = self.composed(state).await;
        let made = Arc::new(self.whole(composed, &state.composer).await);
        state.current = Some(Arc::clone(&made));
        made
    }

    async fn composed(&self, state: &mut State) -> Composed {
        let wanted = Wanted { inline: self.inline.to_json(), ..Wanted::default() };
        state.composer.compose(wanted).await
    }

    /// A generation as the agent was made, direct servers and all.
    async fn whole(&self, composed: Composed, composer: &Composer) -> Generation {
        let aside = self.aside(&McpServers::new());
        let mut generation = self.generation(composed, &self.custom, aside, composer).await;
        self.add_direct(&mut generation, None, &self.direct, composer).await;
        generation
    }

    async fn generation(
        &self,
        composed: Composed,
        custom: &[CustomTool],
        aside: Vec<Aside>,
        composer: &Composer,
    ) -> Generation {
        let core = self.maker.main(&composed, custom, composer.timeouts()).await;
        Generation {
            parts: core
                .map(|core| Part { core, only: None, is_direct: false, owned: true })
                .into_iter()
                .collect(),
            direct: Vec::new(),
            aside,
            diagnostics: composed.diagnostics,
            changed: self.changed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            maker: Arc::clone(&self.maker),
            composer: composer.without_files(),
        }
    }

    /// What is read for a run with other servers, and what is to be told of those that it does not have.
    fn wanted(&self, change: &ServerChange) -> (Wanted, Vec<Aside>) {
        match change {
            ServerChange::Inherit => (
                Wanted { inline: self.inline.to_json(), ..Wanted::default() },
                self.aside(&McpServers::new()),
            ),
            ServerChange::Replace(servers) => {
                let mut aside = self.aside(servers);
                let by = "the servers of this prompt";
                let replaced = self.inline.iter().filter(|(name, _)| servers.get(name).is_none());
                aside.extend(replaced.map(|(name, server)| {
                    Aside::new(name, server.transport(), ServerState::Shadowed { by: by.to_owned() })
                }));
                (Wanted { per_send: servers.to_json(), ..Wanted::default() }, aside)
            }
            ServerChange::None => (Wanted::default(), self.switched_off("the prompt asked for none")),
        }
    }

    /// What was given before and is not given now.
    fn aside(&self, given: &McpServers) -> Vec<Aside> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = missing.iter().filter(|record| given.get(&record.name).is_none());
        gone.map(|record| Aside::new(&record.name, &record.transport, ServerState::Missing)).collect()
    }

    fn switched_off(&self, by: &str) -> Vec<Aside> {
        let off = |(name, server): (&str, &crate::inline::McpServer)| {
            Aside::new(name, server.transport(), ServerState::Disabled { by: by.to_owned() })
        };
        self.inline.iter().map(off).chain(self.aside(&self.inline)).collect()
    }

    /// No servers at all: none is read, none is started.
    fn without(&self, by: &str, composer: &Composer) -> Generation {
        Generation { aside: self.switched_off(by), ..Generation::empty(Arc::clone(&self.maker), composer) }
    }

    async fn add_direct(
        &self,
        generation: &mut Generation,
        local: Option<&LocalSend>,
        own: &[DirectServer],
        composer: &Composer,
    ) {
        let direct = local.and_then(|local| local.direct_servers.as_deref()).unwrap_or(own);
        for server in direct {
            let core = self.maker.direct(server, composer.timeouts()).await;
            generation.parts.push(Part { core, only: None, is_direct: true, owned: true });
        }
        generation.direct = direct.to_vec();
    }
}

/// The only holder's own.
fn unshared(generation: Arc<Generation>) -> Generation {
    Arc::try_unwrap(generation).unwrap_or_else(|shared| shared.without_direct())
}
