//! An engine whose moves are a function of the test's, and a place for agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use tempfile::TempDir;
use tokio::time::timeout;
use toolway_agent::{
    Agent, AgentError, AgentOptions, AssistantBlock, BoxFuture, Checkpoint, Engine, EngineTurn, Event,
    EventKind, LocalOptions, LocalSend, Machine, ModelChoice, Observation, Observed, Place, Run, RunSink,
    SendOptions, SendPlace, StoreChoice, ToolCallEvent, ToolCallStatus, Truncated, TurnEnd, TurnStop, Usage,
};
use toolway_bridge::RawJson;

/// Ten times what the slowest of these needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

type Moves =
    dyn Fn(EngineTurn, Arc<dyn RunSink>) -> BoxFuture<'static, Result<TurnEnd, AgentError>> + Send + Sync;

/// An engine whose moves a test writes.
pub(crate) struct Scripted(Box<Moves>);

impl Scripted {
    pub(crate) fn new<F>(
        moves: impl Fn(EngineTurn, Arc<dyn RunSink>) -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = Result<TurnEnd, AgentError>> + Send + 'static,
    {
        Arc::new(Self(Box::new(move |turn, sink| Box::pin(moves(turn, sink)))))
    }

    /// Says something and ends.
    pub(crate) fn echo() -> Arc<Self> {
        Self::new(|turn, sink| async move {
            sink.event(said(&format!("heard {}", turn.prompt.text))).await?;
            sink.checkpoint(Checkpoint(format!("{{\"said\":\"{}\"}}", turn.prompt.text).into())).await?;
            Ok(done("ok"))
        })
    }

    /// Waits to be cancelled.
    pub(crate) fn stuck() -> Arc<Self> {
        Self::new(|turn, _| async move {
            turn.cancel.cancelled().await;
            Ok(TurnEnd { stop: TurnStop::Cancelled, result: None, usage: Usage::default(), cost: None })
        })
    }
}

impl Engine for Scripted {
    fn name(&self) -> &'static str {
        "native"
    }

    fn tools(&self) -> Vec<String> {
        vec!["shell".into()]
    }

    fn run(&self, turn: EngineTurn, sink: Arc<dyn RunSink>) -> BoxFuture<'_, Result<TurnEnd, AgentError>> {
        (self.0)(turn, sink)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

pub(crate) fn said(text: &str) -> EventKind {
    EventKind::Assistant { content: vec![AssistantBlock::Text(text.to_owned())] }
}

pub(crate) fn done(result: &str) -> TurnEnd {
    let usage = Usage { input: 10, output: 2, ..Usage::default() };
    TurnEnd { stop: TurnStop::Finished, result: Some(result.to_owned()), usage, cost: None }
}

/// A tool call that began, or ended with a result.
pub(crate) fn call(id: &str, args: &str, result: Option<&str>) -> Result<EventKind, AgentError> {
    let raw = |text: &str| {
        RawJson::new(text.to_owned()).map_err(|error| AgentError::Runtime { message: error.to_string() })
    };
    Ok(EventKind::ToolCall(ToolCallEvent {
        call_id: id.to_owned(),
        name: "shell".to_owned(),
        status: if result.is_some() { ToolCallStatus::Completed } else { ToolCallStatus::Running },
        args: Some(raw(args)?),
        result: result.map(raw).transpose()?,
        truncated: Truncated::default(),
    }))
}

/// A home and a folder to work in.
pub(crate) struct Bench {
    dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        std::fs::create_dir_all(dir.path().join("work"))?;
        Ok(Self { dir })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Options with a model, and the default store below the home.
    pub(crate) fn options(&self) -> AgentOptions {
        self.options_in(StoreChoice::Default)
    }

    pub(crate) fn options_in(&self, store: StoreChoice) -> AgentOptions {
        let variables = vec![
            ("HOME".into(), self.dir.path().as_os_str().to_owned()),
            ("LOCALAPPDATA".into(), self.dir.path().as_os_str().to_owned()),
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ];
        let mut options = AgentOptions::local(Machine::new(variables, self.dir.path().join("work")));
        options.model = Some(ModelChoice { id: "m".into(), params: Vec::new() });
        options.place = Place::Local(Box::new(LocalOptions { store, ..LocalOptions::default() }));
        options
    }

    pub(crate) fn agent(&self, engine: Arc<Scripted>) -> Result<Agent> {
        Ok(Agent::create_on(self.options(), engine)?)
    }

    /// Every file below the home.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let (mut folders, mut files) = (vec![self.dir.path().to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        Ok(files)
    }
}

pub(crate) fn force() -> SendOptions {
    let local = LocalSend { force: true, ..LocalSend::default() };
    SendOptions { place: SendPlace::Local(local), ..SendOptions::default() }
}

/// What comes of a future in time.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> Result<T> {
    Ok(timeout(DEADLINE, what).await?)
}

/// All events of a run's stream.
pub(crate) async fn streamed(run: &Run) -> Result<Vec<Event>> {
    let mut stream = run.stream()?;
    let mut events = Vec::new();
    while let Some(event) = soon(stream.next()).await? {
        events.push(event?);
    }
    Ok(events)
}

/// All that an observer gets.
pub(crate) async fn observed(mut observation: Observation) -> Result<Vec<Observed>> {
    let mut all = Vec::new();
    while let Some(one) = soon(observation.next()).await? {
        all.push(one?);
    }
    Ok(all)
}

/// The names of events, with the statuses.
pub(crate) fn names(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| match &event.kind {
        EventKind::Status { status, .. } => format!("{status:?}"),
        kind => kind.name().to_owned(),
    };
    events.iter().map(name).collect()
}

/// The error that a result is.
pub(crate) fn refused<T>(result: Result<T, AgentError>) -> Result<AgentError> {
    match result {
        Ok(_) => bail!("it was not refused"),
        Err(error) => Ok(error),
    }
}
