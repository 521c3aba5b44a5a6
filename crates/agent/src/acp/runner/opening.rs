//! Owns what has to be there before a prompt: the process, the session with the run's servers, its model and its mode.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolway_secret::Secret;

use super::{Runner, end_in};
use crate::acp::front::Asked;
use crate::acp::live::{Broken, Live, Open, Opening};
use crate::acp::names::FRONT;
use crate::acp::servers;
use crate::engine::Checkpoint;
use crate::error::AgentError;
use crate::event::EventKind;
use crate::generation::Front;
use crate::inline::DirectServer;

/// What is kept of a conversation: the agent keeps the rest.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    session: String,
    agent: String,
}

impl Runner<'_> {
    pub(super) async fn tell(&self, status: &str, text: String) -> Result<(), Broken> {
        let event = EventKind::Task { status: Some(status.to_owned()), text: Some(text) };
        self.sink.event(event).await.map_err(Broken::Refused)
    }

    /// A process, a session with this run's servers, its model and its mode.
    pub(super) async fn prepare(&self, slot: &mut Option<Live>) -> Result<(), Broken> {
        if let Some(live) = slot.as_mut()
            && let Some(why) = live.catch_up().await
        {
            let note = live.teller.say(&format!("{why} since the last prompt; it is started again"));
            end_in(slot).await;
            self.tell("agent", note).await?;
        }
        let is_fresh = slot.is_none();
        self.ensure_live(slot).await?;
        let Some(live) = slot.as_mut() else { return Err(Broken::Cancelled) };
        let current = live.open.as_ref().is_some_and(|open| self.fits(open));
        if current {
            // The session goes on, and its calls are this run's.
            self.front().await?;
        } else {
            self.open(slot, is_fresh).await?;
        }
        let Some(live) = slot.as_mut() else { return Err(Broken::Cancelled) };
        self.choose(live).await?;
        let Some(open) = &live.open else { return Err(Broken::Cancelled) };
        let kept = Kept { session: open.id.clone(), agent: self.command.title().to_owned() };
        let checkpoint = Checkpoint(serde_json::to_vec(&kept).unwrap_or_default().into());
        self.sink.checkpoint(checkpoint).await.map_err(Broken::Refused)
    }

    async fn ensure_live(&self, slot: &mut Option<Live>) -> Result<(), Broken> {
        if slot.is_none() {
            *slot = Some(Live::start(self.command, self.surroundings, &self.turn.cwd, &self.cancel).await?);
        }
        Ok(())
    }

    fn fits(&self, open: &Open) -> bool {
        open.servers.ptr_eq(&Arc::downgrade(&self.turn.servers)) && open.cwd == self.turn.cwd
    }

    /// The session before this one, in this process or in an earlier one. What another runtime has kept of the
    /// conversation is none.
    async fn before(&self, live: &Live) -> Result<Option<String>, Broken> {
        if let Some(open) = &live.open {
            return Ok(Some(open.id.clone()));
        }
        let Some(kept) = &self.turn.checkpoint else { return Ok(None) };
        if let Ok(kept) = serde_json::from_slice::<Kept>(&kept.0) {
            return Ok(Some(kept.session));
        }
        let said = "what was said before was said on another runtime: it begins anew and knows nothing of it";
        self.tell("new_session", live.teller.say(said)).await?;
        Ok(None)
    }

    async fn open(&self, slot: &mut Option<Live>, is_fresh: bool) -> Result<(), Broken> {
        let given = self.servers().await?;
        let Some(live) = slot.as_mut() else { return Err(Broken::Cancelled) };
        for server in &given {
            live.teller.keep(&server.url);
            server.headers.iter().for_each(|(_, value)| live.teller.keep(value));
        }
        let entries = servers::entries(&given, live.about.takes_http, self.surroundings.shim.as_deref());
        let entries = entries.ok_or_else(|| {
            let why = live.teller.say(
                "it takes no MCP servers over HTTP, and there is no toolway binary to stand between: name one in the options",
            );
            Broken::Refused(AgentError::fault("local.acp", why))
        })?;
        let opening = Opening {
            cwd: &self.turn.cwd,
            servers: &self.turn.servers,
            entries,
            surroundings: self.surroundings,
            cancel: &self.cancel,
            unvisited: given
                .iter()
                .any(|server| server.name == FRONT)
                .then(|| self.turn.servers.front_visits()),
        };
        let Some(before) = self.before(live).await? else { return live.open_new(&opening).await };
        live.leave().await;
        if !live.about.remembers() {
            let said = "it cannot go on with an earlier conversation: it begins anew and knows nothing of what was said";
            self.tell("new_session", live.teller.say(said)).await?;
            return live.open_new(&opening).await;
        }
        let mut opened = live.open_again(&before, &opening).await?;
        if opened.is_err() && !is_fresh {
            // Some agents open a session once in a process only.
            end_in(slot).await;
            self.ensure_live(slot).await?;
            let Some(live) = slot.as_mut() else { return Err(Broken::Cancelled) };
            opened = live.open_again(&before, &opening).await?;
        }
        let Some(live) = slot.as_mut() else { return Err(Broken::Cancelled) };
        let Err(why) = opened else { return Ok(()) };
        let said = format!(
            "it did not open its earlier session ({why}): it begins anew and knows nothing of what was said"
        );
        self.tell("new_session", live.teller.say(&said)).await?;
        live.open_new(&opening).await
    }

    /// The servers of this run as the agent gets them.
    async fn servers(&self) -> Result<Vec<DirectServer>, Broken> {
        let generation = &self.turn.servers;
        // Agents take the list once, so what the first call waits for is waited for here.
        tokio::select! {
            () = self.cancel.cancelled() => return Err(Broken::Cancelled),
            () = generation.ready() => {}
        }
        let mut given = generation.direct().to_vec();
        if let Some(front) = self.front().await? {
            let token = Secret::new(format!("Bearer {}", front.token.expose()));
            given.push(DirectServer {
                name: FRONT.to_owned(),
                url: Secret::new(front.url),
                headers: vec![("Authorization".to_owned(), token)],
            });
        }
        Ok(given)
    }

    /// Where the servers are reached. Calls are asked about for this run.
    async fn front(&self) -> Result<Option<Front>, Broken> {
        let asked = Asked::new(&self.surroundings.gate, self.turn, &self.surroundings.roots, &self.calls);
        self.turn.servers.front_through(Some(Arc::new(asked))).await.map_err(Broken::Refused)
    }

    /// A sentence about an agent that took servers and never asked one of them for anything, once for a session.
    pub(super) fn ignored(&self, live: &mut Live) -> Option<String> {
        let open = live.open.as_mut()?;
        let before = open.unvisited.take()?;
        if self.turn.servers.front_visits() > before {
            return None;
        }
        let what = "it has not connected to the MCP servers that it was given for this session, so it has none of their tools";
        Some(live.teller.say(what))
    }

    async fn choose(&self, live: &mut Live) -> Result<(), Broken> {
        let wished = |live: &Live| -> Result<_, AgentError> {
            let Some(open) = &live.open else { return Ok(Vec::new()) };
            let model = open.choices.wish_model(&self.turn.model)?;
            let mode = open.choices.wish_mode(self.turn.mode, open.own_mode.as_deref())?;
            Ok(model.into_iter().chain(mode).collect())
        };
        for wish in wished(live).map_err(Broken::Refused)? {
            live.grant(&wish, &self.cancel).await?;
        }
        // A model brings settings of its own.
        let params = live.open.as_ref().map(|open| open.choices.wish_params(&self.turn.model)).transpose();
        for wish in params.map_err(Broken::Refused)?.unwrap_or_default() {
            live.grant(&wish, &self.cancel).await?;
        }
        Ok(())
    }
}
