//! `toolway sse` and `toolway streamable-http`: in front of a server at an address.

use std::sync::Arc;

use tokio::sync::mpsc;
use toolway_proxy::{Ending, Relay, run_remote};
use toolway_secret::Secret;
use toolway_transport::{AsyncInput, AsyncOutput, HttpConfig, HttpTransport, SseTransport};

use crate::args::RemoteArgs;
use crate::compose::{Environment, UsageError, common, expand};
use crate::exit::Exit;
use crate::{logs, units};

/// Which transport the server has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Sse,
    StreamableHttp,
}

/// Runs the relay.
pub(super) fn run(args: RemoteArgs, kind: Kind) -> Result<Exit, UsageError> {
    let own = Environment::read();
    let common = common(args.common, &own)?;
    let url = own.option(args.url, "url", None)?;
    let url =
        url.ok_or_else(|| UsageError::new("--url", "is missing").with_hint("--url https://HOST/mcp"))?;
    let mut config =
        HttpConfig::new(&url.text).map_err(|error| UsageError::new(&url.from, error.to_string()))?;
    config.headers = args.header.iter().map(|pair| header(pair, &own)).collect::<Result<_, _>>()?;
    if let Some(value) = own.option(args.timeout, "timeout", Some("TIMEOUT_SECONDS"))? {
        config.timeout = value.parse(units::duration)?;
    }
    if let Some(value) =
        own.option(args.sse_read_timeout, "sse-read-timeout", Some("SSE_READ_TIMEOUT_SECONDS"))?
    {
        config.sse_read_timeout = value.parse(units::duration)?;
    }
    logs::start(common.log);
    let server = config.url.host_str().unwrap_or("server").to_owned();
    let relay = Arc::new(Relay::new(common.relay(server)));
    let unusable = |error: toolway_transport::TransportError| UsageError::new("server", error.to_string());
    let system = |error: std::io::Error| UsageError::new("system", error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let signals = signals().map_err(system)??;
    relay.purge();
    let ending: Result<Ending, UsageError> = runtime.block_on(async {
        let input = AsyncInput::stdin().map_err(system)?;
        let output = AsyncOutput::stdout().map_err(system)?;
        Ok(match kind {
            Kind::Sse => {
                let transport = SseTransport::new(&config).map_err(unusable)?;
                run_remote(&relay, transport, input, output, signals).await
            }
            Kind::StreamableHttp => {
                let transport = HttpTransport::new(&config).map_err(unusable)?;
                run_remote(&relay, transport, input, output, signals).await
            }
        })
    });
    super::sum_up(&relay);
    logs::finish();
    // A thread may still wait for the client's input: it ends with the process.
    runtime.shutdown_background();
    Ok(ending?.into())
}

/// The signals that end the program, for a task.
fn signals() -> std::io::Result<Result<mpsc::Receiver<i32>, UsageError>> {
    let (sender, receiver) = mpsc::channel(4);
    let signals = match super::signals() {
        Ok(signals) => signals,
        Err(error) => return Ok(Err(error)),
    };
    let forward = move || {
        for signal in signals {
            if sender.blocking_send(signal).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(forward)?;
    Ok(Ok(receiver))
}

/// `NAME=VALUE`, expanded.
fn header(pair: &str, own: &Environment) -> Result<(String, Secret), UsageError> {
    let Some((name, value)) = pair.split_once('=') else {
        return Err(UsageError::new("--header", "one of them is not NAME=VALUE")
            .with_hint("--header 'Authorization=Bearer ${TOKEN}'"));
    };
    if name.is_empty() {
        return Err(UsageError::new("--header", "one of them has no name before ="));
    }
    let value = expand(value, own, &format!("--header {name}"))?;
    Ok((name.to_owned(), Secret::new(value)))
}
