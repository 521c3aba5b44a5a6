//! `toolway sse` and `toolway streamable-http`: in front of a server at an address.

use std::sync::Arc;

use tokio::sync::mpsc;
use toolway_proxy::{Ending, Outside, Relay, run_remote};
use toolway_transport::{AsyncInput, AsyncOutput, HttpConfig, HttpTransport, SseTransport, wait_for_hang_up};

use crate::args::RemoteArgs;
use crate::compose::{Environment, UsageError, address_seen, common, header, oauth};
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
    if url.from == "--url" {
        address_seen(&config, "the variable TOOLWAY_URL holds the address as well");
    }
    config.headers = args.header.iter().map(|pair| header(pair, &own)).collect::<Result<_, _>>()?;
    if let Some(value) = own.option(args.timeout, "timeout", Some("TIMEOUT_SECONDS"))? {
        config.timeout = value.parse(units::duration)?;
    }
    if let Some(value) =
        own.option(args.sse_read_timeout, "sse-read-timeout", Some("SSE_READ_TIMEOUT_SECONDS"))?
    {
        config.sse_read_timeout = value.parse(units::duration)?;
    }
    let oauth = oauth(&args.oauth, &config, &own)?;
    config.authorizer = oauth;
    logs::start(common.log);
    let server = config.url.host_str().unwrap_or("server").to_owned();
    let relay = Arc::new(Relay::new(common.relay(server)));
    let unusable = |error: toolway_transport::TransportError| UsageError::new("server", error.to_string());
    let system = |error: std::io::Error| UsageError::new("system", error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let outside = outside(super::stream(std::io::stdin())?)?;
    relay.purge();
    let ending: Result<Ending, UsageError> = runtime.block_on(async {
        let input = AsyncInput::stdin().map_err(system)?;
        let output = AsyncOutput::stdout().map_err(system)?;
        let ending = match kind {
            Kind::Sse => {
                let transport = SseTransport::new(&config).map_err(unusable)?;
                run_remote(&relay, transport, input, output, outside).await
            }
            Kind::StreamableHttp => {
                let transport = HttpTransport::new(&config).map_err(unusable)?;
                run_remote(&relay, transport, input, output, outside).await
            }
        };
        toolway_auth::settle().await;
        Ok(ending)
    });
    super::sum_up(&relay);
    logs::finish();
    // A thread may still wait for the client's input: it ends with the process.
    runtime.shutdown_background();
    Ok(ending?.into())
}

/// What comes from outside, for a task: signals, and the client's end.
pub(super) fn outside(input: std::fs::File) -> Result<mpsc::Receiver<Outside>, UsageError> {
    let (sender, receiver) = mpsc::channel(4);
    let signals = super::signals()?;
    let hung_up = sender.clone();
    let forward = move || {
        for signal in signals {
            if sender.blocking_send(Outside::Signal(signal)).is_err() {
                return;
            }
        }
    };
    let watch = move || {
        if wait_for_hang_up(&input).is_ok() {
            hung_up.blocking_send(Outside::HungUp).ok();
        }
    };
    let named = |name: &str| std::thread::Builder::new().name(name.to_owned()).stack_size(128 << 10);
    let system = |error: std::io::Error| UsageError::new("system", error.to_string());
    named("signals").spawn(forward).map_err(system)?;
    named("hang-up").spawn(watch).map_err(system)?;
    Ok(receiver)
}
