//! `fakemcp`: a scripted MCP server over stdio, Streamable HTTP or legacy SSE. The script format is in `toolway_testkit::script`.
//!
//! `fakemcp SCRIPT|--script TEXT|--replay RECORDING [--transport stdio|http|sse] [--port N] [--log FILE] [--test ADDRESS] [--mark WORD]`
//! With HTTP it writes `LISTEN port` to stderr. The log (or `$LOG`) is JSON lines: what it saw and did. A test that
//! listens at ADDRESS gets the same lines, and can send actions, one a line. `fakemcp --linger` is a process that
//! stays: `--setsid` in a session of its own, `--stubborn` deaf to TERM, `--orphan` with no parent.

use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use toolway_testkit::{Fake, FakeConfig, FakeTransport, Journal, Recording, Script, ignore_signals};

#[derive(Default)]
struct Arguments {
    script: Option<Script>,
    transport: Option<FakeTransport>,
    port: u16,
    log: Option<String>,
    test: Option<SocketAddr>,
    mark: String,
    words: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = parse()?;
    if arguments.words.iter().any(|word| word == "--linger") {
        return linger(&arguments);
    }
    let script = arguments.script.context("no script given")?;
    let log = arguments.log.or_else(|| std::env::var("LOG").ok());
    let log = log
        .map(|path| File::options().create(true).append(true).open(path))
        .transpose()
        .context("the log cannot be written")?;
    let config = FakeConfig {
        transport: arguments.transport.unwrap_or(FakeTransport::Stdio),
        port: arguments.port,
        test: arguments.test,
        mark: arguments.mark,
        program: std::env::current_exe()?,
    };
    Fake::serve(script, config, Journal::new(log, None))
}

fn parse() -> Result<Arguments> {
    let mut parsed = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--script" => parsed.script = Some(Script::parse(&value()?)?),
            "--replay" => {
                let recording = Recording::parse(&read(&value()?)?)?;
                parsed.script = Some(recording.script()?);
            }
            "--port" => parsed.port = value()?.parse()?,
            "--log" => parsed.log = Some(value()?),
            "--test" => parsed.test = Some(value()?.parse()?),
            "--mark" => parsed.mark = value()?,
            "--transport" => {
                parsed.transport = Some(match value()?.as_str() {
                    "stdio" => FakeTransport::Stdio,
                    "http" => FakeTransport::Http,
                    "sse" => FakeTransport::Sse,
                    other => bail!("no such transport: {other}"),
                });
            }
            flag if flag.starts_with("--") => parsed.words.push(flag.to_owned()),
            path => parsed.script = Some(Script::parse(&read(path)?)?),
        }
    }
    Ok(parsed)
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))
}

/// Stays until the test that listens has gone, or two minutes if none listens.
fn linger(arguments: &Arguments) -> Result<()> {
    let has = |flag: &str| arguments.words.iter().any(|word| word == flag);
    if has("--orphan") {
        let rest = std::env::args().skip(1).filter(|word| word != "--orphan");
        Command::new(std::env::current_exe()?).args(rest).spawn()?;
        return Ok(());
    }
    if has("--stubborn") {
        ignore_signals()?;
    }
    if has("--setsid") {
        rustix::process::setsid()?;
    }
    let Some(test) = arguments.test else {
        std::thread::park_timeout(std::time::Duration::from_mins(2));
        return Ok(());
    };
    let mut test = TcpStream::connect(test)?;
    Journal::default().start(&test, json!({ "role": "linger" }))?;
    // The end of the test is the end of this process; how it ended does not matter.
    test.read_to_end(&mut Vec::new()).unwrap_or_default();
    Ok(())
}
