//! Owns the numbers and their text for Prometheus (text exposition format 0.0.4). Opens no socket.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolway_secret::Redactor;

use super::{CallRecord, Outcome};

/// Upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];
/// Methods with a label of their own; what clients invent makes no label.
const METHODS: [&str; 6] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
];
/// Tools with a label of their own. A server that renames its tools for ever costs no more.
const MAX_TARGETS: usize = 5000;
const MAX_SERVERS: usize = 1000;
const OTHER: &str = "(other)";

/// All numbers of one gateway.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    servers: BTreeMap<String, ServerNumbers>,
    targets: usize,
    sessions: u64,
    sessions_in_all: u64,
    others: Vec<(&'static str, Arc<AtomicU64>)>,
}

#[derive(Debug, Default)]
struct ServerNumbers {
    state: Option<&'static str>,
    /// By method and target: calls by outcome.
    calls: HashMap<&'static str, HashMap<String, [u64; Outcome::ALL.len()]>>,
    request_bytes: u64,
    response_bytes: u64,
    /// One more than there are bounds.
    durations: [u64; BOUNDS.len() + 1],
    seconds: f64,
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A counter that somebody else keeps.
    pub(super) fn counts_also(&self, name: &'static str, counter: Option<Arc<AtomicU64>>) {
        self.lock().others.extend(counter.map(|counter| (name, counter)));
    }

    pub(super) fn session(&self, opened: bool) {
        let mut numbers = self.lock();
        if opened {
            numbers.sessions += 1;
            numbers.sessions_in_all += 1;
        } else {
            numbers.sessions = numbers.sessions.saturating_sub(1);
        }
    }

    /// Of all servers; one that is not among them is not configured any more.
    pub(super) fn server_states(&self, states: &[(&str, &'static str)]) {
        let mut numbers = self.lock();
        for known in numbers.servers.values_mut() {
            known.state = None;
        }
        for (server, state) in states {
            let state = Some(*state);
            if let Some(known) = numbers.servers.get_mut(*server) {
                known.state = state;
            } else if numbers.servers.len() < MAX_SERVERS {
                numbers
                    .servers
                    .insert((*server).to_owned(), ServerNumbers { state, ..ServerNumbers::default() });
            }
        }
    }

    pub(super) fn call(&self, call: &CallRecord<'_>) {
        let mut numbers = self.lock();
        let Numbers { servers, targets, .. } = &mut *numbers;
        let method = METHODS.into_iter().find(|method| *method == call.method).unwrap_or("other");
        let of = |servers: &BTreeMap<String, ServerNumbers>| {
            if servers.contains_key(call.server) || servers.len() < MAX_SERVERS { call.server } else { OTHER }
        };
        let name = of(servers);
        if !servers.contains_key(name) {
            servers.insert(name.to_owned(), ServerNumbers::default());
        }
        let Some(server) = servers.get_mut(name) else { return };
        let by_target = server.calls.entry(method).or_default();
        // Addresses of resources are no labels, there may be any number.
        let target = if method.starts_with("resources/") { "" } else { call.target };
        let target = if by_target.contains_key(target) || *targets < MAX_TARGETS { target } else { OTHER };
        if !by_target.contains_key(target) {
            *targets += 1;
            by_target.insert(target.to_owned(), [0; Outcome::ALL.len()]);
        }
        let outcome = Outcome::ALL.iter().position(|outcome| *outcome == call.outcome);
        if let Some(count) =
            by_target.get_mut(target).zip(outcome).and_then(|(counts, outcome)| counts.get_mut(outcome))
        {
            *count += 1;
        }
        server.request_bytes += call.request_bytes;
        server.response_bytes += call.response_bytes;
        let seconds = call.duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = server.durations.get_mut(bucket) {
            *count += 1;
        }
        server.seconds += seconds;
    }

    /// Everything, as Prometheus reads it.
    pub(super) fn text(&self) -> String {
        let numbers = self.lock();
        let mut out = Text(String::with_capacity(4096));
        out.family("toolway_build_info", "gauge", "The version that runs.");
        out.sample("toolway_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        out.family("toolway_sessions", "gauge", "Clients that are connected.");
        out.sample("toolway_sessions", &[], numbers.sessions);
        out.family("toolway_sessions_total", "counter", "Clients that have connected.");
        out.sample("toolway_sessions_total", &[], numbers.sessions_in_all);
        out.states(&numbers.servers);
        out.family("toolway_calls_total", "counter", "Requests to servers that have ended.");
        for (server, method, target, counts) in numbers.calls() {
            for (outcome, count) in Outcome::ALL.iter().zip(counts).filter(|(_, count)| **count > 0) {
                let labels =
                    [("server", server), ("method", method), ("target", target), ("outcome", outcome.name())];
                out.sample("toolway_calls_total", &labels, *count);
            }
        }
        for (name, help, of) in BYTES {
            out.family(name, "counter", help);
            for (server, one) in &numbers.servers {
                out.sample(name, &[("server", server)], of(one));
            }
        }
        out.family("toolway_call_duration_seconds", "histogram", "From a request's arrival to its end.");
        for (server, one) in &numbers.servers {
            out.histogram("toolway_call_duration_seconds", server, one);
        }
        for (name, counter) in &numbers.others {
            out.family(name, "counter", "Not written because it could not be written in time.");
            out.sample(name, &[], counter.load(Ordering::Relaxed));
        }
        out.0
    }
}

type Of = fn(&ServerNumbers) -> u64;

const BYTES: [(&str, &str, Of); 2] = [
    ("toolway_request_bytes_total", "Bytes of requests to servers.", |one| one.request_bytes),
    ("toolway_response_bytes_total", "Bytes of answers of servers.", |one| one.response_bytes),
];

impl Numbers {
    /// (server, method, target, counts), sorted.
    fn calls(&self) -> Vec<(&str, &str, &str, &[u64])> {
        let mut all: Vec<(&str, &str, &str, &[u64])> = Vec::new();
        for (server, one) in &self.servers {
            for (method, targets) in &one.calls {
                all.extend(
                    targets.iter().map(|(target, counts)| (&**server, *method, &**target, &counts[..])),
                );
            }
        }
        all.sort_unstable();
        all
    }
}

struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            for letter in Redactor::values().redact(text).chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    letter => self.0.push(letter),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        writeln!(self.0, " {value}").ok();
    }

    fn states(&mut self, servers: &BTreeMap<String, ServerNumbers>) {
        let mut by_state: BTreeMap<&str, u64> = BTreeMap::new();
        self.family(
            "toolway_server_state",
            "gauge",
            "The state of each configured server: 1 for the one it is in.",
        );
        for (server, one) in servers {
            if let Some(state) = one.state {
                *by_state.entry(state).or_default() += 1;
                self.sample("toolway_server_state", &[("server", server), ("state", state)], 1);
            }
        }
        self.family("toolway_servers", "gauge", "Configured servers by state.");
        for (state, count) in by_state {
            self.sample("toolway_servers", &[("state", state)], count);
        }
    }

    fn histogram(&mut self, name: &str, server: &str, one: &ServerNumbers) {
        let (mut sum, bucket) = (0, format!("{name}_bucket"));
        for (at, count) in one.durations.iter().enumerate() {
            sum += count;
            let bound = BOUNDS.get(at).map_or_else(|| "+Inf".to_owned(), ToString::to_string);
            self.sample(&bucket, &[("server", server), ("le", &bound)], sum);
        }
        self.sample(&format!("{name}_sum"), &[("server", server)], one.seconds);
        self.sample(&format!("{name}_count"), &[("server", server)], sum);
    }
}
