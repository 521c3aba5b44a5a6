mod flood;
mod settings;
mod task;
mod turns;
mod waits;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};
use toolway_wire::Id;

use super::connection::{Connection, HostProtocolConfig};
use super::lines::HostLine;
use super::server::{HostEnding, READY, serve, write_some};
use crate::calls::Origin;
use crate::json::RawJson;
use crate::profile::Profile;
use crate::run::{Began, Run, Update};

fn config() -> HostProtocolConfig {
    HostProtocolConfig {
        profile: Some(Profile::HOST),
        settings: Vec::new(),
        guard: None,
        version: "0".to_owned(),
        stderr: |_| {},
    }
}

fn request(id: u64, method: &str, params: &Value) -> HostLine {
    let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    HostLine::Whole(line.to_string().into())
}

/// A connection without a process: lines go in by hand, and come out by hand.
struct Desk {
    connection: Connection,
    last: u64,
}

impl Desk {
    async fn new(tools: &[&str]) -> Self {
        let mut desk = Self { connection: Connection::new(config(), None), last: 0 };
        desk.ask("initialize", json!({"protocolVersion": 1, "host": {"name": "h"}})).await;
        let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
        desk.ask("tools/declare", json!({ "tools": tools })).await;
        desk
    }

    /// The result, or the error.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        self.connection.on_line(request(self.last, method, &params), Instant::now());
        while let Some(done) = self.connection.work.join_next().await {
            self.connection.on_done(done.unwrap());
        }
        let answers = self.lines();
        let answer = answers.iter().find(|answer| answer["id"] == self.last).unwrap();
        answer.get("result").or(answer.get("error")).unwrap().clone()
    }

    async fn open(&mut self, params: Value) -> Run {
        let opened = self.ask("run/open", params).await;
        self.connection.runs[opened["run"].as_str().unwrap()].run.clone()
    }

    /// Everything that is to be written now.
    fn lines(&mut self) -> Vec<Value> {
        self.connection.on_arrivals(Instant::now());
        let mut lines = Vec::new();
        while let Some(line) = self.connection.next_line() {
            lines.push(serde_json::from_slice(&line).unwrap());
        }
        lines
    }

    /// How many calls each `calls/started` has that is to be written now.
    fn started(&mut self) -> Vec<usize> {
        let lines = self.lines();
        assert!(lines.iter().all(|line| line["method"] == "calls/started"), "{lines:?}");
        lines.iter().map(|line| line["params"]["calls"].as_array().unwrap().len()).collect()
    }
}

fn begin(run: &Run, request: u64, arguments: &Value) -> Began {
    let origin = Origin { session: 1, request: Id::from_number(request) };
    let name = run.snapshot().exposed()[0].mcp_name.clone();
    run.begin(origin, &name, Some(RawJson::of(arguments)), None)
}

async fn rejection(began: Began) -> String {
    match began {
        Began::Rejected(rejection) => rejection.reason,
        Began::Waiting(mut waiter) => match waiter.next().await {
            Update::Rejected(rejection) => rejection.reason,
            other => panic!("{other:?}"),
        },
        Began::Answer(answer) => panic!("{answer:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_parallel_calls_and_then_for_the_usage_record() {
    let mut desk = Desk::new(&["a"]).await;
    let run = desk.open(json!({"calls": "batch"})).await;
    let mut waiting = vec![begin(&run, 1, &json!({}))];
    assert!(desk.started().is_empty());
    advance(Duration::from_millis(60)).await;
    waiting.push(begin(&run, 2, &json!({})));
    assert!(desk.started().is_empty());
    advance(Duration::from_millis(139)).await;
    assert!(desk.started().is_empty(), "before 75 + 125 ms");
    advance(Duration::from_millis(1)).await;
    assert_eq!(desk.started(), [2]);

    waiting.push(begin(&run, 3, &json!({})));
    assert!(desk.started().is_empty());
    desk.ask("run/usage", json!({"run": run.id()})).await;
    advance(Duration::from_millis(75)).await;
    assert_eq!(desk.started(), [1], "nothing more belongs to it");
}

#[tokio::test(start_paused = true)]
async fn looking_at_the_clock_loses_no_batch() {
    let mut desk = Desk::new(&["a"]).await;
    let run = desk.open(json!({"calls": "batch"})).await;
    let _waiting = begin(&run, 1, &json!({}));
    desk.connection.on_arrivals(Instant::now());
    let first = desk.connection.next_time(Instant::now()).unwrap();
    assert_eq!(first - Instant::now(), Duration::from_millis(75));
    advance(Duration::from_millis(300)).await;
    // The task asks when it is to wake up, at a moment at which the batch has become due.
    assert_eq!(desk.connection.next_time(Instant::now()), None);
    assert_eq!(desk.started(), [1]);
}

#[tokio::test(start_paused = true)]
async fn calls_as_they_come_wait_for_nothing() {
    let mut desk = Desk::new(&["a"]).await;
    let run = desk.open(json!({})).await;
    let _waiting = [begin(&run, 1, &json!({})), begin(&run, 2, &json!({}))];
    assert_eq!(desk.started().iter().sum::<usize>(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_before_the_host_reads_is_never_told() {
    let mut desk = Desk::new(&["a"]).await;
    let above = json!({"tools": {"bridge": {"callTimeoutMs": 500}}});
    desk.ask("settings/declare", json!({ "settings": above })).await;
    let run = desk.open(json!({})).await;
    let (first, second) = (begin(&run, 1, &json!({})), begin(&run, 2, &json!({})));
    desk.connection.on_arrivals(Instant::now());
    run.cancel_request(Origin { session: 1, request: Id::from_number(1) });
    advance(Duration::from_millis(501)).await;
    let reason = rejection(second).await;
    assert!(reason.contains("500 ms"), "{reason}");
    drop(first);
    assert_eq!(desk.lines(), Vec::<Value>::new());
    // Its place is free again.
    let _third = begin(&run, 3, &json!({}));
    assert_eq!(desk.started(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_told_is_cancelled_once() {
    let mut desk = Desk::new(&["a"]).await;
    let run = desk.open(json!({})).await;
    let waiting = begin(&run, 1, &json!({}));
    let started = desk.lines();
    run.cancel_request(Origin { session: 1, request: Id::from_number(1) });
    run.cancel_all("the host cancelled the run");
    let told = desk.lines();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["params"]["call"], started[0]["params"]["calls"][0]["call"]);
    let call = told[0]["params"]["call"].clone();
    assert_eq!(desk.ask("call/result", json!({"call": call, "content": 1})).await, json!({"settled": false}));
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_reads_has_a_bound_of_calls() {
    let mut desk = Desk::new(&["a"]).await;
    let run = desk.open(json!({})).await;
    let mut waiting = Vec::new();
    for n in 0..4096 {
        waiting.push(begin(&run, n, &json!({})));
    }
    let reason = rejection(begin(&run, 5000, &json!({}))).await;
    assert!(reason.contains("does not read"), "{reason}");
    assert_eq!(desk.started().iter().sum::<usize>(), 4096);
    waiting.push(begin(&run, 5001, &json!({})));
    assert_eq!(desk.started(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_guessed_id_settles_nothing() {
    let mut desk = Desk::new(&["a"]).await;
    let run = desk.open(json!({"attach": false})).await;
    let _waiting = begin(&run, 1, &json!({}));
    let id = format!(
        "toolway-bridge-run-{}-t1",
        run.id().trim_start_matches("toolway-bridge-run-").replace('-', "")
    );
    assert_eq!(desk.ask("call/result", json!({"call": id, "content": 1})).await, json!({"settled": false}));
    desk.ask("run/attach", json!({"run": run.id()})).await;
    let started = desk.lines();
    assert!(started.is_empty() || started[0]["params"]["calls"][0]["call"] == id, "{started:?}");
    assert_eq!(run.pending(), 1);
}

#[tokio::test(start_paused = true)]
async fn notifications_of_the_host_are_carried_out_and_not_answered() {
    let mut desk = Desk::new(&["a"]).await;
    for line in [
        r#"{"jsonrpc":"2.0","method":"tools/declare","params":{"tools":[{"name":"b"}]}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/declare","params":{"tools":7}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
    ] {
        desk.connection.on_line(HostLine::Whole(Bytes::from_static(line.as_bytes())), Instant::now());
    }
    assert_eq!(desk.lines(), Vec::<Value>::new());
    let manifest = desk.ask("manifest/read", json!({})).await;
    assert_eq!(manifest["names"], json!(["host__b"]));
}

#[tokio::test(start_paused = true)]
async fn bounds_of_sessions_are_told() {
    let mut desk = Desk::new(&[]).await;
    for n in 1..64 {
        assert_eq!(desk.ask("session/open", json!({"session": format!("s{n}")})).await, json!({}));
    }
    let error = desk.ask("session/open", json!({"session": "one more"})).await;
    assert_eq!((&error["code"], &error["data"]), (&json!(-32002), &json!({"limit": "sessions", "most": 64})));
    let error = desk.ask("session/open", json!({"session": "s1"})).await;
    assert_eq!(error["data"]["field"], "session");
    desk.ask("session/close", json!({"session": "s1"})).await;
    assert_eq!(desk.ask("session/open", json!({"session": "s1"})).await, json!({}));
    let error = desk.ask("run/open", json!({"session": "never"})).await;
    assert_eq!(error["data"], json!({"kind": "session", "name": "never"}));
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_the_channel_is_bounded_by_bytes_and_not_by_lines() {
    let mut desk = Desk::new(&["a"]).await;
    let run = desk.open(json!({})).await;
    let (out, mut written) = mpsc::channel(READY);
    let mut ids = 0..;
    let mut waiting = Vec::new();
    let mut sizes = |desk: &mut Desk, count, size| {
        let arguments = json!({"a": "x".repeat(size)});
        for id in ids.by_ref().take(count) {
            waiting.push(begin(&run, id, &arguments));
            desk.connection.on_arrivals(Instant::now());
        }
        write_some(&mut desk.connection, &out);
        let told = written.try_recv().unwrap();
        assert!(written.try_recv().is_err());
        (told.split(|byte| *byte == b'\n').count(), desk.lines().len())
    };
    // Large ones go one by one, and the others stay where they are counted and where their end is heard of.
    assert_eq!(sizes(&mut desk, 5, 300 << 10), (1, 4));
    // Small ones go together.
    assert_eq!(sizes(&mut desk, 50, 10), (50, 0));
    let (together, left) = sizes(&mut desk, 10, 100 << 10);
    assert_eq!((together, left), (3, 7));
}

/// The task itself, over lines in memory.
struct Task {
    lines: mpsc::Sender<HostLine>,
    out: mpsc::Receiver<Bytes>,
    signal: tokio::sync::oneshot::Sender<i32>,
    running: tokio::task::JoinSet<(HostEnding, Instant)>,
    /// What came with a line that was read.
    more: VecDeque<Value>,
}

impl Task {
    fn start() -> Self {
        Self::of(Connection::new(config(), None))
    }

    fn of(connection: Connection) -> Self {
        let (lines, input) = mpsc::channel(1);
        let (output, out) = mpsc::channel(4);
        let (signal, signalled) = tokio::sync::oneshot::channel();
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let signal = async {
                match signalled.await {
                    Ok(signal) => signal,
                    Err(_) => std::future::pending().await,
                }
            };
            serve(connection, input, output, signal).await
        });
        Self { lines, out, signal, running: task, more: VecDeque::new() }
    }

    async fn next(&mut self) -> Value {
        if self.more.is_empty() {
            let batch = self.out.recv().await.unwrap();
            let lines = batch.split(|byte| *byte == b'\n');
            self.more.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        }
        self.more.pop_front().unwrap()
    }

    async fn ended(mut self) -> HostEnding {
        self.running.join_next().await.unwrap().unwrap().0
    }

    async fn hello(&mut self) {
        let hello = json!({"protocolVersion": 1, "host": {"name": "h"}});
        self.lines.send(request(1, "initialize", &hello)).await.unwrap();
        assert_eq!(self.next().await["id"], 1);
    }
}
