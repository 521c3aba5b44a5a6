//! Events to subscribers: how many come in a second, and whether all do, with each kind of store.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolway_agent::{
    Agent, AgentError, AssistantBlock, BoxFuture, Engine, EngineTurn, EventKind, RunSink, SendOptions,
    StoreChoice, ToolCallEvent, ToolCallStatus, Truncated, TurnEnd, TurnStop, Usage,
};
use toolway_bridge::RawJson;

use crate::args::Args;
use crate::place::{Place, ended};
use crate::process::float;

/// Says one thing after the other, as fast as it is heard: of ten events one begins a call of a tool, one ends it.
struct Talker {
    events: usize,
}

impl Talker {
    fn event(number: usize) -> Result<EventKind, AgentError> {
        let status = match number % 10 {
            3 => ToolCallStatus::Running,
            4 => ToolCallStatus::Completed,
            _ => return Ok(EventKind::Assistant { content: vec![AssistantBlock::Text(number.to_string())] }),
        };
        let raw = |text: &str| {
            RawJson::new(text.to_owned()).map_err(|error| AgentError::Runtime { message: error.to_string() })
        };
        let ended = status == ToolCallStatus::Completed;
        Ok(EventKind::ToolCall(ToolCallEvent {
            call_id: format!("call-{}", number / 10),
            name: "read".to_owned(),
            status,
            args: Some(raw(r#"{"path":"src/lib.rs"}"#)?),
            result: if ended { Some(raw(r#"{"text":"nothing of interest"}"#)?) } else { None },
            truncated: Truncated::default(),
        }))
    }
}

impl Engine for Talker {
    fn name(&self) -> &'static str {
        "native"
    }

    fn tools(&self) -> Vec<String> {
        Vec::new()
    }

    fn run(&self, _: EngineTurn, sink: Arc<dyn RunSink>) -> BoxFuture<'_, Result<TurnEnd, AgentError>> {
        Box::pin(async move {
            for number in 0..self.events {
                sink.event(Self::event(number)?).await?;
            }
            Ok(TurnEnd { stop: TurnStop::Finished, result: None, usage: Usage::default(), cost: None })
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Counts what comes in order.
struct Heard {
    next: usize,
}

impl Heard {
    fn take(&mut self, kind: &EventKind) -> Result<()> {
        if matches!(kind, EventKind::Assistant { .. } | EventKind::ToolCall(_)) {
            if *kind == Talker::event(self.next)? {
                self.next += 1;
            } else {
                bail!("event {} is {kind:?}", self.next);
            }
        }
        Ok(())
    }
}

pub(crate) async fn measure(args: &Args) -> Result<Vec<Value>> {
    let events = args.count(10_000)?;
    let place = Place::new(args)?;
    let folder = place.path().join("store");
    let name = args.text("--store").unwrap_or("sqlite");
    let store = match name {
        "sqlite" => StoreChoice::Sqlite(folder),
        "jsonl" => StoreChoice::Jsonl(folder),
        other => bail!("no such store: {other}"),
    };
    let options = place.options_in("http://127.0.0.1:9", store)?;
    let agent = Agent::create_on(options, Arc::new(Talker { events }))?;
    let begin = Instant::now();
    let run = agent.send("Talk", SendOptions::default()).await?;
    let (mut stream, mut observed) = (run.stream()?, run.observe(0)?);
    let mut hearing = JoinSet::new();
    hearing.spawn(async move {
        let mut heard = Heard { next: 0 };
        while let Some(event) = stream.next().await {
            heard.take(&event?.kind)?;
        }
        anyhow::Ok(heard.next)
    });
    hearing.spawn(async move {
        let mut heard = Heard { next: 0 };
        while let Some(one) = observed.next().await {
            heard.take(&one?.event.kind)?;
        }
        anyhow::Ok(heard.next)
    });
    let mut lost = 0;
    while let Some(heard) = hearing.join_next().await {
        lost += events - heard??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    ended(&run).await?;
    agent.dispose().await;
    Ok(vec![json!({"front": name, "events_s": float(events) / seconds, "events_lost": lost})])
}
