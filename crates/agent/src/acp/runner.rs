//! Owns the execution of one prompt: process and session as they are needed, the prompt, what comes meanwhile, and its
//! end, whoever brings it about. It keeps nothing.

mod opening;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::calls::Told;
use super::desk::Work;
use super::frame::{Frame, RpcError};
use super::live::{Broken, FLOODED, Live, Open};
use super::names::{Meant, Names};
use super::open_calls::OpenCalls;
use super::options::{AcpCommand, AcpSurroundings};
use super::peer::Happening;
use super::telling::{self, Said, Telling};
use super::terminal::Written;
use crate::engine::{EngineTurn, RunSink, TurnEnd, TurnStop};
use crate::error::AgentError;
use crate::event::{Delta, EventKind, Usage};
use crate::generation::McpCall;

/// One prompt on its way.
pub(super) struct Runner<'a> {
    pub(super) command: &'a AcpCommand,
    pub(super) surroundings: &'a AcpSurroundings,
    pub(super) turn: &'a EngineTurn,
    pub(super) sink: &'a dyn RunSink,
    /// Calls of servers' tools that the agent has told of.
    pub(super) calls: OpenCalls,
    /// When the run has had all of its time.
    pub(super) out_of_time: Option<Instant>,
    pub(super) cancel: CancellationToken,
    /// The engine is being closed.
    pub(super) closing: &'a CancellationToken,
}

/// How long an agent may take to end its prompt when the engine is closed, at most: whoever closes it does not wait long.
const CLOSING: Duration = Duration::from_secs(2);

/// Why a prompt is being ended from here.
#[derive(Debug, Clone)]
enum Why {
    Cancelled,
    Limit(String),
    /// The run is over for others.
    Sink(AgentError),
}

/// What a prompt comes to.
enum Came {
    Answer(Result<Value, RpcError>),
    /// The agent did not end it in time.
    Late,
    Dead(String),
}

impl Runner<'_> {
    /// Executes it. A process that is of no use any more is not left in `slot`.
    pub(super) async fn run(&self, slot: &mut Option<Live>) -> Result<TurnEnd, AgentError> {
        self.check_limits()?;
        if slot.as_ref().is_some_and(|live| live.is_busy) {
            // The run before was dropped in the middle: what the agent does now would be told as this run's.
            end_in(slot).await;
        }
        if let Some(live) = slot {
            live.is_busy = true;
        }
        let ended = self.run_in(slot).await;
        if let Some(live) = slot {
            live.is_busy = false;
        }
        ended
    }

    async fn run_in(&self, slot: &mut Option<Live>) -> Result<TurnEnd, AgentError> {
        let nothing = |stop| TurnEnd { stop, result: None, usage: Usage::default(), cost: None };
        let prepared = tokio::select! {
            biased;
            prepared = self.prepare(slot) => prepared,
            () = until(self.out_of_time) => {
                // A question is open: the process cannot be used again.
                end_in(slot).await;
                return Ok(nothing(TurnStop::Limit(self.time_limit())));
            }
        };
        let outcome = match prepared {
            Ok(()) => match slot.as_mut() {
                Some(live) => self.prompt(live).await,
                None => Err(Broken::Cancelled),
            },
            Err(broken) => Err(broken),
        };
        match outcome {
            Ok((end, is_alive)) => {
                if !is_alive {
                    end_in(slot).await;
                }
                Ok(end)
            }
            // A question may be open: the process cannot be used again.
            Err(Broken::Cancelled) => {
                end_in(slot).await;
                Ok(nothing(TurnStop::Cancelled))
            }
            Err(Broken::Dead(error)) => {
                end_in(slot).await;
                Err(error)
            }
            Err(Broken::Refused(error)) => Err(error),
        }
    }

    /// What the protocol gives no way to keep to is refused, not ignored.
    fn check_limits(&self) -> Result<(), AgentError> {
        let limits = &self.turn.limits;
        for (name, is_set) in [("turns", limits.turns.is_some()), ("tokens", limits.tokens.is_some())] {
            if is_set {
                let why = "an agent behind the Agent Client Protocol does not tell it while it works: use limits.time, or the agent's own settings";
                return Err(AgentError::fault(format!("limits.{name}"), why));
            }
        }
        Ok(())
    }

    /// What is sent: the text, what may have happened before it, and pictures.
    fn content(&self, live: &Live) -> Result<Vec<Value>, AgentError> {
        let mut content = Vec::new();
        if !self.turn.interrupted.is_empty() {
            let calls: Vec<String> = self.turn.interrupted.iter().map(interrupted).collect();
            let text = format!(
                "Before this message a run was cut off. These tool calls had begun, and may have run in whole, in part or not at all:\n{}",
                calls.join("\n")
            );
            content.push(json!({"type": "text", "text": text}));
        }
        // A picture may be all that is said.
        if !self.turn.prompt.text.is_empty() || self.turn.prompt.images.is_empty() {
            content.push(json!({"type": "text", "text": self.turn.prompt.text}));
        }
        if !self.turn.prompt.images.is_empty() && !live.about.takes_images {
            return Err(AgentError::fault("images", live.teller.say("it takes no pictures: leave them out")));
        }
        for image in &self.turn.prompt.images {
            content.push(json!({"type": "image", "mimeType": image.mime_type, "data": image.data}));
        }
        Ok(content)
    }

    fn names(&self) -> Names {
        let servers = Arc::clone(&self.turn.servers);
        let direct = servers.direct().iter().map(|server| server.name.clone()).collect();
        let lookup = move |exposed: &str, arguments: &RawJson| {
            let target = servers.target(&McpCall { exposed, arguments: arguments.clone() })?;
            Some(Meant { server: target.server, tool: target.tool, arguments: target.arguments })
        };
        Names::new(lookup, direct)
    }

    async fn prompt(&self, live: &mut Live) -> Result<(TurnEnd, bool), Broken> {
        let content = self.content(live).map_err(Broken::Refused)?;
        let Some(open) = live.open.as_mut() else { return Err(Broken::Cancelled) };
        let mut telling = Telling::new(&open.id, self.names(), self.calls.clone(), open.cost);
        open.desk.begin();
        let params = json!({"sessionId": open.id, "prompt": content});
        let asked = live.peer.request("session/prompt", &params);
        let mut ending = None;
        let came = self.listen(live, &mut telling, asked, &mut ending).await;
        if let Some(open) = &mut live.open {
            open.desk.end_prompt();
            open.cost = telling.session_cost();
        }
        let why = match (&came, &ending) {
            (_, Some((Why::Cancelled, _))) => "the run was cancelled",
            (_, Some((Why::Limit(_), _))) => "a limit was reached",
            (Came::Dead(_), _) => "the agent's process ended",
            _ => "the agent ended its turn before the call",
        };
        for told in telling.finish(why, Instant::now()) {
            self.pass_on(told).await.map_err(Broken::Refused)?;
        }
        let is_answered = matches!(came, Came::Answer(Ok(_))) && ending.is_none();
        if let Some(text) = is_answered.then(|| self.ignored(live)).flatten() {
            self.tell("servers", text).await?;
        }
        self.conclude(live, &telling, came, ending.map(|(why, _)| why)).await
    }

    /// Until the prompt is answered, or its end is not waited for any longer.
    async fn listen(
        &self,
        live: &mut Live,
        telling: &mut Telling,
        asked: u64,
        ending: &mut Option<(Why, Instant)>,
    ) -> Came {
        let mut is_closing = false;
        loop {
            let Some(open) = live.open.as_mut() else { return Came::Dead("there is no session".to_owned()) };
            if open.desk.is_flooded() {
                return Came::Dead(FLOODED.to_owned());
            }
            let has_room = live.peer.has_room();
            let is_open = ending.is_none();
            let patience = ending.as_ref().map(|(_, until)| *until).or(self.out_of_time);
            let mut end = None;
            tokio::select! {
                biased;
                () = self.closing.cancelled(), if !is_closing => {
                    is_closing = true;
                    if let Some((_, until)) = ending {
                        *until = (*until).min(Instant::now() + CLOSING);
                    }
                }
                () = self.cancel.cancelled(), if is_open => end = Some(Why::Cancelled),
                () = until(patience) => {
                    if !is_open {
                        return Came::Late;
                    }
                    end = Some(Why::Limit(self.time_limit()));
                }
                work = open.desk.next(has_room) => match work {
                    Work::Served(served) => {
                        live.peer.reply(&served.id, served.outcome);
                        if let Some(note) = served.note {
                            let refused = EventKind::Task { status: Some("refused".to_owned()), text: Some(note) };
                            end = self.sink.event(refused).await.err().map(Why::Sink);
                        }
                    }
                    Work::Written(Written { terminal, stream, text }) => {
                        if let Some(call_id) = telling.calls.with_terminal(&terminal).map(str::to_owned) {
                            self.sink.delta(Delta::ShellOutput { call_id, stream, text }).await;
                        }
                    }
                },
                happening = live.peer.next() => match happening {
                    Happening::Frame(Frame::Answer { id, outcome }) if id == asked => {
                        return Came::Answer(outcome.map(|answer| answer.tree()));
                    }
                    Happening::Frame(frame) => end = self.meanwhile(frame, open, telling).await,
                    Happening::Room => {}
                    Happening::Ended(why) => return Came::Dead(why),
                },
            }
            if let (Some(why), None) = (end, &ending) {
                live.peer.notify("session/cancel", &json!({"sessionId": open.id}));
                open.desk.end_prompt();
                let patience = self.command.timeouts.cancel;
                let patience = if is_closing { patience.min(CLOSING) } else { patience };
                *ending = Some((why, Instant::now() + patience));
            }
        }
    }

    /// A message while the prompt is executed. Gives why it is to be ended, if it is.
    async fn meanwhile(&self, frame: Frame, open: &mut Open, telling: &mut Telling) -> Option<Why> {
        match frame {
            Frame::Request { id, method, params } => {
                open.desk.serve(id, &method, &params, Some(&telling.calls));
                None
            }
            Frame::Notification { method, params } if method == "session/update" => {
                let desk = &open.desk;
                let (told, said) = telling.update(&params, Instant::now(), &|id| desk.output_of(id));
                match said {
                    Said::Nothing => {}
                    Said::Mode(mode) => open.choices.mode_is(&mode),
                    Said::Settings(settings) => open.choices.update(&settings),
                }
                for told in told {
                    if let Err(error) = self.pass_on(told).await {
                        return Some(Why::Sink(error));
                    }
                }
                let (limit, cost) = (self.turn.limits.cost?, telling.spent()?);
                (cost > limit).then(|| {
                    Why::Limit(format!(
                        "it has cost {cost:.4} of at most {limit:.4} US dollars: raise limits.cost"
                    ))
                })
            }
            Frame::Notification { .. } | Frame::Answer { .. } | Frame::Odd => None,
        }
    }

    fn time_limit(&self) -> String {
        let time = self.turn.limits.time.unwrap_or_default();
        format!("the run took longer than {time:?}: raise limits.time")
    }

    async fn pass_on(&self, told: Told) -> Result<(), AgentError> {
        match told {
            Told::Event(event) => self.sink.event(event).await,
            Told::Delta(delta) => {
                self.sink.delta(delta).await;
                Ok(())
            }
        }
    }

    /// What the prompt came to, and whether the process may be used again.
    async fn conclude(
        &self,
        live: &Live,
        telling: &Telling,
        came: Came,
        why: Option<Why>,
    ) -> Result<(TurnEnd, bool), Broken> {
        let is_alive = matches!(came, Came::Answer(_));
        let usage = match &came {
            Came::Answer(Ok(answer)) => telling::usage(answer),
            _ => None,
        };
        if let Some(usage) = usage {
            self.sink.delta(Delta::TurnEnded(usage)).await;
            self.sink.event(EventKind::Usage(usage)).await.map_err(Broken::Refused)?;
        }
        let stop = match (why, came) {
            (Some(Why::Sink(error)), _) if is_alive => return Err(Broken::Refused(error)),
            (Some(Why::Sink(error)), _) => return Err(Broken::Dead(error)),
            (Some(Why::Limit(limit)), _) => TurnStop::Limit(limit),
            (None, Came::Dead(what)) => return Err(live.dead(&format!("{what}, in the middle of a prompt"))),
            (Some(Why::Cancelled), _) | (None, Came::Late) => TurnStop::Cancelled,
            (None, Came::Answer(Err(error))) => {
                let error = match live.refusal("failed to answer", &error) {
                    AgentError::Runtime { message } => AgentError::Model { message },
                    other => other,
                };
                return Err(Broken::Refused(error));
            }
            (None, Came::Answer(Ok(answer))) => stop(live, telling, &answer)?,
        };
        let end = TurnEnd {
            stop,
            result: telling.result(),
            usage: usage.unwrap_or_default(),
            cost: telling.spent(),
        };
        Ok((end, is_alive))
    }
}

async fn end_in(slot: &mut Option<Live>) {
    if let Some(mut live) = slot.take() {
        live.end().await;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn interrupted(call: &crate::event::ToolCallEvent) -> String {
    match &call.args {
        Some(args) => format!("- {} {}", call.name, args.text()),
        None => format!("- {}", call.name),
    }
}

fn stop(live: &Live, telling: &Telling, answer: &Value) -> Result<TurnStop, Broken> {
    Ok(match answer.get("stopReason").and_then(Value::as_str) {
        Some("end_turn") => TurnStop::Finished,
        Some("cancelled") => TurnStop::Cancelled,
        Some("refusal") => {
            let said = telling.result().unwrap_or_else(|| live.teller.say("it refused to go on"));
            TurnStop::Refused(said)
        }
        Some("max_tokens") => TurnStop::Limit(
            "the model's answer reached the most tokens that the agent lets it have: raise it in the agent's own settings, or send again to go on".to_owned(),
        ),
        Some("max_turn_requests") => TurnStop::Limit(
            "the agent's own limit of calls to its model was reached: send again to go on".to_owned(),
        ),
        other => {
            let other = other.unwrap_or("none");
            return Err(live.dead(&format!("it ended the prompt with an unknown reason: {other}")));
        }
    })
}
