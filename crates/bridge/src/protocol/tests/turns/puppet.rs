//! Agents that a test holds by their strings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, mpsc};

use crate::agent_port::{Agent, AgentEvent, AgentFailure, AgentModel, AgentOptions, AgentPort, AgentPrompt};
use crate::prompt::Digest;

/// Makes them.
pub(super) struct Port(pub(super) mpsc::Sender<Puppet>);

/// The strings of one.
#[derive(Debug)]
pub(super) struct Puppet {
    pub(super) options: AgentOptions,
    pub(super) prompts: mpsc::Receiver<AgentPrompt>,
    pub(super) events: mpsc::Sender<AgentEvent>,
    pub(super) cancelled: mpsc::Receiver<()>,
    refuses: Arc<AtomicBool>,
}

impl Puppet {
    /// From now on.
    pub(super) fn reload_fails(&self) {
        self.refuses.store(true, Ordering::SeqCst);
    }
}

pub(super) struct Doll {
    prompts: mpsc::Sender<AgentPrompt>,
    events: Mutex<mpsc::Receiver<AgentEvent>>,
    cancelled: mpsc::Sender<()>,
    refuses: Arc<AtomicBool>,
}

impl AgentPort for Port {
    type Agent = Doll;

    async fn create(&self, options: AgentOptions) -> Result<Doll, AgentFailure> {
        if options.model == "none" {
            return Err(AgentFailure::new("there is no such model"));
        }
        let (prompts, prompted) = mpsc::channel(4);
        let (events, told) = mpsc::channel(8);
        let (cancelled, cancellations) = mpsc::channel(4);
        let refuses: Arc<AtomicBool> = Arc::default();
        let puppet = Puppet {
            refuses: Arc::clone(&refuses),
            options,
            prompts: prompted,
            events,
            cancelled: cancellations,
        };
        self.0.send(puppet).await.map_err(|_| AgentFailure::new("the test is over"))?;
        Ok(Doll { prompts, events: Mutex::new(told), cancelled, refuses })
    }

    fn identity(&self) -> Option<Digest> {
        None
    }

    async fn models(&self) -> Result<Vec<AgentModel>, AgentFailure> {
        let small = AgentModel { id: "small".to_owned(), ..AgentModel::default() };
        let context_tokens = Some(200_000);
        let large = AgentModel {
            id: "large".to_owned(),
            name: "The large one".to_owned(),
            context_tokens,
            ..small.clone()
        };
        Ok(vec![large, small])
    }
}

impl Agent for Doll {
    async fn send(&self, prompt: AgentPrompt) -> Result<(), AgentFailure> {
        self.prompts.send(prompt).await.map_err(|_| AgentFailure::new("nobody holds the strings"))
    }

    async fn next(&self) -> Option<AgentEvent> {
        self.events.lock().await.recv().await
    }

    async fn cancel(&self) {
        self.cancelled.try_send(()).ok();
    }

    async fn reload(&self) -> Result<(), AgentFailure> {
        if self.refuses.load(Ordering::SeqCst) { Err(AgentFailure::new("it will not")) } else { Ok(()) }
    }

    async fn dispose(self) {}
}
