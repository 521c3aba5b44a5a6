//! Loopback MCP servers side by side: a bare one, and bridges that let a host answer. What a call costs, how many may
//! be in flight, and what a program says of itself in its own process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::conn::Conn;
use crate::front::{HttpLink, INIT, Miss, Spec, Target};
use crate::json as raw;
use crate::measure;
use crate::proc;
use crate::sys::{self, float, percentile};
use crate::table::Row;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) rounds: usize,
    /// Calls one after the other.
    pub(crate) calls: usize,
    /// Calls in all over `window` connections.
    pub(crate) pipe: usize,
    pub(crate) window: usize,
    /// Calls that all wait before the first is answered.
    pub(crate) flight: usize,
}

const ANSWER: Duration = Duration::from_secs(30);

/// Measures each program in interleaved rounds; the first is the baseline. A program is `NAME=WORD WORD...`: it writes
/// one line of JSON, `{"url", "echo", "gate"}`, and ends with its stdin. Where the line has `figures`, they are taken as
/// they are. `gate` is a tool that answers when `{"wait": N}` calls of it are there.
pub(crate) fn run(programs: &[String], config: Config, out: Option<&Path>) -> anyhow::Result<()> {
    let specs: Vec<Spec> = programs.iter().map(|p| spec(p)).collect::<anyhow::Result<_>>()?;
    let baseline = specs.first().map(|spec| spec.name.clone()).context("no program")?;
    measure::rounds(&specs, config.rounds, &baseline, out, |spec| {
        let mut row = Row::new();
        row.insert("front".into(), json!(spec.name));
        let argv = spec.command("").cloned().unwrap_or_default();
        if let Err(error) = program(&argv, config, &mut row) {
            row.insert("error".into(), json!(error.to_string()));
        }
        row
    })
}

fn spec(program: &str) -> anyhow::Result<Spec> {
    let (name, command) = program.split_once('=').with_context(|| format!("{program}: NAME=COMMAND"))?;
    let command = command.split_whitespace().map(str::to_owned).collect();
    Ok(Spec { name: name.to_owned(), commands: [(String::new(), command)].into(), ..Spec::default() })
}

/// A program that runs, and is killed when it is dropped.
#[derive(Debug)]
struct Program {
    child: Child,
    _stdin: Option<ChildStdin>,
    _stdout: BufReader<ChildStdout>,
    said: Value,
}

impl Program {
    fn start(argv: &[String]) -> anyhow::Result<Self> {
        let (program, arguments) = argv.split_first().context("no command")?;
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let said = serde_json::from_str(&line).with_context(|| format!("{program} said {line:?}"))?;
        Ok(Self { child, _stdin: stdin, _stdout: stdout, said })
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    fn text(&self, name: &str) -> &str {
        self.said[name].as_str().unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        proc::kill_tree(self.pid());
        self.child.wait().ok();
    }
}

fn program(argv: &[String], config: Config, row: &mut Row) -> anyhow::Result<()> {
    let program = Program::start(argv)?;
    if let Some(figures) = program.said["figures"].as_object() {
        row.extend(figures.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    let (host, path) = program.text("url").trim_start_matches("http://").split_once('/').context("no url")?;
    let mut link = HttpLink::new(host.to_owned(), format!("/{path}"));
    let talk = |link: &mut HttpLink, message: &str| -> anyhow::Result<Vec<u8>> {
        link.post(message.as_bytes(), ANSWER).map_err(|miss| anyhow::anyhow!("{miss}"))?;
        Ok(link.got.pop_front().unwrap_or_default())
    };
    talk(&mut link, INIT)?;
    talk(&mut link, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
    let target = link.target.clone();
    let echo = program.text("echo");
    let checked = sequential(&target, echo, config.calls, program.pid(), row);
    let checked = checked.and_then(|()| pipelined(&target, echo, config, program.pid(), row));
    let checked = checked.and_then(|()| flight(&target, program.text("gate"), config, program.pid(), row));
    checked.map_err(|miss| anyhow::anyhow!("{miss}"))
}

fn call(id: usize, tool: &str, arguments: &str) -> Vec<u8> {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","#);
    format!(r#"{head}"arguments":{arguments}}}}}"#).into_bytes()
}

/// The answer to `id`: a result that is no error.
fn is_right(conn: &mut Conn, id: usize) -> Result<bool, Miss> {
    let posted = Target::receive(conn, ANSWER)?;
    let own = id.to_string();
    let right = |message: &[u8]| {
        raw::get(message, "id") == Some(own.as_bytes())
            && raw::get(message, "result").is_some_and(|result| raw::get(result, "isError").is_none())
    };
    Ok(posted.status == 200 && posted.messages.iter().any(|message| right(message)))
}

fn sequential(target: &Target, tool: &str, calls: usize, pid: i32, row: &mut Row) -> Result<(), Miss> {
    let mut conn = target.connect()?;
    let mut times = Vec::with_capacity(calls);
    let mut wrong = 0_usize;
    let mut before = 0.0;
    // A fifth more, to warm up.
    let warm = calls / 5;
    for id in 0..calls + warm {
        if id == warm {
            before = proc::usage(pid).cpu_us;
        }
        let message = call(id, tool, &format!(r#"{{"text":"{id}"}}"#));
        let begin = Instant::now();
        target.send(&mut conn, &message)?;
        wrong += usize::from(!is_right(&mut conn, id)?);
        if id >= warm {
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    let used = proc::usage(pid).cpu_us - before;
    row.insert("echo_p50_us".into(), json!(percentile(&mut times, 50)));
    row.insert("echo_p99_us".into(), json!(percentile(&mut times, 99)));
    row.insert("cpu_us_call".into(), json!(used / float(times.len() as u64)));
    row.insert("wrong".into(), json!(wrong));
    Ok(())
}

fn pipelined(target: &Target, tool: &str, config: Config, pid: i32, row: &mut Row) -> Result<(), Miss> {
    let mut conns = (0..config.window).map(|_| target.connect()).collect::<Result<Vec<_>, _>>()?;
    let rounds = config.pipe / config.window.max(1);
    let mut wrong = 0_usize;
    let before = proc::usage(pid).cpu_us;
    let begin = Instant::now();
    for round in 0..rounds {
        for (k, conn) in conns.iter_mut().enumerate() {
            let id = round * config.window + k;
            target.send(conn, &call(id, tool, &format!(r#"{{"text":"{id}"}}"#)))?;
        }
        for (k, conn) in conns.iter_mut().enumerate() {
            wrong += usize::from(!is_right(conn, round * config.window + k)?);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let calls = float((rounds * config.window) as u64);
    row.insert("pipe_calls_s".into(), json!(calls / seconds));
    row.insert("pipe_cpu_us_call".into(), json!((proc::usage(pid).cpu_us - before) / calls));
    row.insert("pipe_wrong".into(), json!(wrong));
    Ok(())
}

/// Calls on as many connections, none of which is answered before all are there.
fn flight(target: &Target, gate: &str, config: Config, pid: i32, row: &mut Row) -> Result<(), Miss> {
    if gate.is_empty() || config.flight == 0 {
        return Ok(());
    }
    proc::reset_peak(pid);
    let begin = Instant::now();
    let mut conns = (0..config.flight).map(|_| target.connect()).collect::<Result<Vec<_>, _>>()?;
    let arguments = format!(r#"{{"wait":{}}}"#, config.flight);
    for (id, conn) in conns.iter_mut().enumerate() {
        target.send(conn, &call(id, gate, &arguments))?;
    }
    let mut right = 0_usize;
    for (id, conn) in conns.iter_mut().enumerate() {
        right += usize::from(is_right(conn, id)?);
    }
    row.insert("flight_ms".into(), json!(sys::ms(begin.elapsed())));
    row.insert("flight_right".into(), json!(right));
    row.insert("flight_peak_mb".into(), json!(float(proc::usage(pid).peak_kib) / 1024.0));
    Ok(())
}
