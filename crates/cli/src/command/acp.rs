//! `toolway acp`: an agent for an editor, which speaks the Agent Client Protocol at stdin and stdout.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolway_agent::{EditorOptions, EditorServer, Person};
use toolway_transport::{AsyncInput, AsyncOutput};

use super::agent::runtime;
use super::serve::signals;
use crate::args::AcpArgs;
use crate::compose::agent::{agent_log, agent_options};
use crate::compose::{Environment, UsageError};
use crate::exit::Exit;
use crate::logs;

/// The most bytes that are read at once.
const PIECE: usize = 64 << 10;
/// Pieces that were read and are not looked at yet.
const PIECES: usize = 4;
/// Lines that are not written yet.
const LINES: usize = 64;
/// How long an editor has to read the last lines.
const LAST: Duration = Duration::from_secs(2);

/// Serves one editor.
pub(super) fn run(args: AcpArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    let AcpArgs { offer_model, offer, runtime: args } = args;
    logs::start(agent_log(args.log.clone(), &own)?);
    if args.cwd.is_some() {
        return Err(UsageError::new("--cwd", "the editor says in which folder a session works"));
    }
    let unasked = args.yes;
    // The person is at the editor.
    let agent = agent_options(args, offer, Person::default(), &own)?;
    if agent.model.is_none() && !offer_model.is_empty() {
        return Err(UsageError::new("--offer-model", "there is no model that it is beside")
            .with_hint("name the first one with --model"));
    }
    let options = EditorOptions { agent, models: offer_model, unasked };
    let signals = signals()?;
    let runtime = runtime()?;
    let exit = runtime.block_on(serve(options, signals));
    runtime.block_on(toolway_auth::settle());
    logs::finish();
    // A thread may still wait for the editor's input: it ends with the process.
    runtime.shutdown_background();
    exit
}

async fn serve(options: EditorOptions, mut signals: mpsc::Receiver<i32>) -> Result<Exit, UsageError> {
    let system = |error: io::Error| UsageError::new("system", error.to_string());
    let (input, output) = (AsyncInput::stdin().map_err(system)?, AsyncOutput::stdout().map_err(system)?);
    let (pieces, receiver) = mpsc::channel(PIECES);
    let (sender, lines) = mpsc::channel(LINES);
    let mut writing = JoinSet::new();
    writing.spawn(write(output, lines));
    let mut serving = JoinSet::new();
    serving.spawn(EditorServer::new(options, sender).serve(receiver));
    // What ends the reading drops it: for the server, the editor has gone then.
    let ending = tokio::select! {
        biased;
        Some(signal) = signals.recv() => Exit::Signal(u8::try_from(signal).unwrap_or(0)),
        () = read(input, pieces) => Exit::Done,
    };
    // A second signal ends it at once: what servers have started ends with us.
    tokio::select! {
        biased;
        Some(signal) = signals.recv() => return Ok(Exit::Signal(u8::try_from(signal).unwrap_or(0))),
        ended = serving.join_next() => if !matches!(ended, Some(Ok(()))) {
            return Err(UsageError::new("system", "the session broke off"));
        },
    }
    match timeout(LAST, writing.join_next()).await {
        Ok(Some(Ok(Ok(())))) => Ok(ending),
        _ if ending == Exit::Done => Ok(Exit::Ended),
        _ => Ok(ending),
    }
}

/// Until the editor closes its end, or nobody takes it any more.
async fn read(mut input: AsyncInput, pieces: mpsc::Sender<Bytes>) {
    let mut buffer = vec![0; PIECE];
    loop {
        let count = tokio::select! {
            biased;
            () = pieces.closed() => return,
            count = input.read(&mut buffer) => count,
        };
        let piece = match count {
            Ok(count) if count > 0 => buffer.get(..count).unwrap_or_default(),
            _ => return,
        };
        if pieces.send(Bytes::copy_from_slice(piece)).await.is_err() {
            return;
        }
    }
}

async fn write(mut output: AsyncOutput, mut lines: mpsc::Receiver<Bytes>) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(&line).await?;
    }
    output.flush().await
}
