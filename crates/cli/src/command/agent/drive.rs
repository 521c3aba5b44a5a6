//! Owns `toolway agent run` and `resume`: one prompt from its sending to its end, and the signals in between.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolway_agent::{
    Agent, AgentError, AgentId, AgentOptions, EventStream, LocalSend, Prompt, Run, RunState, RunStatus,
    SendOptions, SendPlace,
};

use super::super::person::{Asker, Console};
use super::super::serve::signals;
use super::tell::Teller;
use super::{Failure, delta, id, prompt, runtime};
use crate::args::{ResumeArgs, RunArgs, SendArgs};
use crate::compose::agent::{agent_log, agent_options};
use crate::compose::{Environment, UsageError};
use crate::exit::Exit;
use crate::logs;
use crate::render::grouped;
use crate::show::Terminal;

/// What happens and was not shown yet.
const WAITING: usize = 256;

/// Sends a prompt to a new agent, or to the one that is named.
pub(super) fn run(args: RunArgs, own: &Environment) -> Result<Exit, UsageError> {
    let known = args.agent.as_deref().map(id).transpose()?;
    send(known, args.name, &args.prompt, args.sending, own)
}

/// Sends a prompt to an agent that was sent one before.
pub(super) fn resume(args: ResumeArgs, own: &Environment) -> Result<Exit, UsageError> {
    let known = id(&args.agent)?;
    send(Some(known), None, &args.prompt, args.sending, own)
}

/// How it is shown.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct How {
    json: bool,
    stream: bool,
    quiet: bool,
    force: bool,
    terminal: Terminal,
}

fn send(
    known: Option<AgentId>,
    name: Option<String>,
    text: &str,
    sending: SendArgs,
    own: &Environment,
) -> Result<Exit, UsageError> {
    logs::start(agent_log(sending.runtime.log.clone(), own)?);
    let mut terminal = Terminal::now(|name| Some(own.get(name)?.to_str()?.to_owned()));
    // What comes from stdin is the prompt, and no answer.
    terminal.asks &= text != "-";
    let asker = Asker::new(Console::new(terminal.asks), terminal.asks, sending.runtime.yes);
    let prompt = prompt::prompt(text, &sending)?;
    let SendArgs { force, json, stream, quiet, offer, runtime: args, .. } = sending;
    let mut options = agent_options(args, offer, asker.person(), own)?;
    options.name = name;
    let how = How { json, stream, quiet, force, terminal };
    let signals = signals()?;
    let runtime = runtime()?;
    let exit = runtime.block_on(drive(known, options, prompt, &how, signals));
    runtime.block_on(toolway_auth::settle());
    // A thread may still wait for input: it ends with the process.
    runtime.shutdown_background();
    logs::finish();
    Ok(exit)
}

async fn drive(
    known: Option<AgentId>,
    options: AgentOptions,
    prompt: Prompt,
    how: &How,
    mut signals: mpsc::Receiver<i32>,
) -> Exit {
    let made = match &known {
        Some(id) => Agent::resume(id, options).await,
        None => Agent::create(options),
    };
    let agent = match made {
        Ok(agent) => agent,
        Err(error) => return Failure::of(&error).tell(),
    };
    let exit = match one_run(&agent, prompt, how, &mut signals).await {
        Ok(exit) => exit,
        Err(error) => Failure::of(&error).tell(),
    };
    // A second signal ends it at once: what servers have started ends with us.
    tokio::select! {
        () = agent.dispose() => exit,
        Some(signal) = signals.recv() => signalled(signal),
    }
}

fn signalled(signal: i32) -> Exit {
    Exit::Signal(u8::try_from(signal).unwrap_or(0))
}

async fn one_run(
    agent: &Agent,
    prompt: Prompt,
    how: &How,
    signals: &mut mpsc::Receiver<i32>,
) -> Result<Exit, AgentError> {
    let (sender, deltas) = mpsc::channel(WAITING);
    let listens = !how.json || how.stream;
    let send = SendOptions {
        deltas: listens.then_some(sender),
        place: SendPlace::Local(LocalSend { force: how.force, ..LocalSend::default() }),
        ..SendOptions::default()
    };
    let run = tokio::select! {
        biased;
        Some(signal) = signals.recv() => return Ok(signalled(signal)),
        run = agent.send(prompt, send) => run?,
    };
    let events = run.stream()?;
    let mut showing = Showing {
        run: run.clone(),
        how,
        teller: Teller::new(how.terminal, how.quiet),
        cancelling: JoinSet::new(),
        signal: None,
        is_read: true,
    };
    if showing.show_all(events, deltas, signals).await.is_none() {
        return Ok(showing.signal.map_or(Exit::Ended, signalled));
    }
    let state = run.wait().await?;
    Ok(showing.end(agent, &state))
}

/// A run that is shown.
struct Showing<'a> {
    run: Run,
    how: &'a How,
    teller: Teller,
    cancelling: JoinSet<()>,
    /// The signal that cancelled it.
    signal: Option<i32>,
    /// Somebody reads stdout.
    is_read: bool,
}

impl Showing<'_> {
    /// Shows everything. `None`: a second signal came.
    async fn show_all(
        &mut self,
        mut events: EventStream,
        mut deltas: mpsc::Receiver<toolway_agent::Delta>,
        signals: &mut mpsc::Receiver<i32>,
    ) -> Option<()> {
        let (mut has_deltas, mut has_events) = (true, true);
        while has_deltas || has_events {
            tokio::select! {
                biased;
                Some(signal) = signals.recv() => {
                    if self.signal.replace(signal).is_some() {
                        return None;
                    }
                    self.teller.note("cancelling; once more to end at once");
                    self.cancel();
                }
                delta = deltas.recv(), if has_deltas => match delta {
                    Some(delta) if self.is_read => {
                        let shown = if self.how.json {
                            if self.how.stream { line(&delta::line(self.run.id(), &delta)) } else { Ok(()) }
                        } else {
                            self.teller.delta(&delta)
                        };
                        self.shown(&shown);
                    }
                    Some(_) => {}
                    None => has_deltas = false,
                },
                event = events.next(), if has_events => match event {
                    Some(Ok(event)) if self.is_read => {
                        let shown = if self.how.json { line(&event.to_json()) } else { self.teller.event(&event) };
                        self.shown(&shown);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        self.teller.note(&format!("note: {error}"));
                        has_events = false;
                    }
                    None => has_events = false,
                },
            }
        }
        Some(())
    }

    /// Nobody reads any more: nothing goes on for nobody.
    fn shown(&mut self, shown: &io::Result<()>) {
        if shown.is_err() && std::mem::replace(&mut self.is_read, false) {
            self.cancel();
        }
    }

    fn cancel(&mut self) {
        let run = self.run.clone();
        self.cancelling.spawn(async move {
            if let Err(error) = run.cancel().await {
                tracing::warn!(%error, "the run could not be cancelled");
            }
        });
    }

    /// Says how it ended.
    fn end(&mut self, agent: &Agent, state: &RunState) -> Exit {
        if self.how.json {
            if self.is_read {
                line(&result(agent, &self.run, state)).ok();
            }
        } else {
            if let (Some(result), false, true) = (&state.result, self.teller.answered, self.is_read) {
                self.teller.text(result).ok();
            }
            self.teller.end_line().ok();
            self.teller.note(&last_line(agent, state));
        }
        match (state.status, &state.error, self.signal) {
            (_, _, Some(signal)) if state.status != RunStatus::Finished => signalled(signal),
            (RunStatus::Finished, _, _) => Exit::Done,
            (RunStatus::Cancelled, _, _) => Exit::Signal(2),
            (_, Some(fault), _) => Failure::of_run(fault).tell(),
            (status, None, _) => {
                crate::exit::complain(&format!("the run ended as {status:?}"), None);
                Exit::Ended
            }
        }
    }
}

/// The last line of `--json`: how the run ended.
fn result(agent: &Agent, run: &Run, state: &RunState) -> String {
    let error =
        state.error.as_ref().map(|fault| serde_json::json!({"code": fault.code, "message": fault.message}));
    serde_json::json!({
        "type": "result",
        "agent_id": agent.id(),
        "run_id": run.id(),
        "status": state.status,
        "result": state.result,
        "error": error,
        "model": state.model,
        "usage": state.usage.as_ref().map(delta::tokens),
        "cost_usd": state.cost,
        "duration_ms": state.duration.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    })
    .to_string()
}

fn last_line(agent: &Agent, state: &RunState) -> String {
    let status = format!("{:?}", state.status).to_lowercase();
    let tokens = state.usage.map(|usage| format!(", {} tokens", grouped(usage.total()))).unwrap_or_default();
    let time = state.duration.map(|time| format!(", {}", seconds(time))).unwrap_or_default();
    let cost = state.cost.map(|cost| format!(", {}", delta::dollars(cost))).unwrap_or_default();
    format!("{}: {status}{tokens}{cost}{time}", agent.id())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}
