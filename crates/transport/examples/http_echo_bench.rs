//! Round trips through the Streamable HTTP transport, without a relay around it: `http_echo_bench URL [CALLS]`.
//!
//! The server must offer a tool `echo {text}`. Prints the median of sequential calls, then the rate with 64 in
//! flight.

use std::io::Write as _;
use std::time::{Duration, Instant};

use toolway_transport::{HttpConfig, HttpTransport, Inbound, Members, Outbound, Payload, Transport};
use toolway_wire::{Scanner, Verdict};

const WINDOW: u64 = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("a URL is needed")?;
    let calls: u64 = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(&url, calls))
}

async fn run(url: &str, calls: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut transport = HttpTransport::new(&HttpConfig::new(url)?)?;
    transport.send(message(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    )?)?;
    answers(&mut transport, 1).await?;
    transport.send(message(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?)?;
    let mut times = Vec::new();
    for id in 1..=calls {
        let began = Instant::now();
        transport.send(echo(id)?)?;
        answers(&mut transport, 1).await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let began = Instant::now();
    let mut sent = 0;
    let mut done = 0;
    while done < calls {
        while sent < calls && sent - done < WINDOW {
            sent += 1;
            transport.send(echo(calls + sent)?)?;
        }
        done += answers(&mut transport, 1).await?;
    }
    let rate = f64::from(u32::try_from(calls)?) / began.elapsed().as_secs_f64();
    let median = times.get(times.len() / 2).copied().unwrap_or(Duration::ZERO);
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or(Duration::ZERO);
    writeln!(
        std::io::stdout(),
        "sequential p50 {median:?} p99 {p99:?}, {WINDOW} in flight {rate:.0} calls/s"
    )?;
    transport.close().await;
    Ok(())
}

fn echo(id: u64) -> Result<Outbound, Box<dyn std::error::Error>> {
    message(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}}}}}}"#
    ))
}

fn message(text: &str) -> Result<Outbound, Box<dyn std::error::Error>> {
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    match scanner.finish() {
        Verdict::Message(envelope) => Ok(Outbound {
            payload: Payload::Bytes(text.to_owned().into()),
            members: Members::One(envelope.clone()),
        }),
        other => Err(format!("not a message: {other:?}").into()),
    }
}

/// Waits for `wanted` answers, and takes what else is there.
async fn answers(transport: &mut HttpTransport, wanted: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let mut ended = 0;
    loop {
        let event = match transport.try_receive() {
            Some(event) => event,
            None if ended >= wanted => return Ok(ended),
            None => transport.receive().await.ok_or("closed")?,
        };
        match event {
            Inbound::End { .. } => ended += 1,
            Inbound::Failed { failure, .. } => return Err(failure.message.into()),
            _ => {}
        }
    }
}
