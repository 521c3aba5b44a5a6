//! What a front does to messages: does it hand them on as they are? One word for each thing looked at.

mod answers;
mod compared;
mod requests;
mod traffic;
mod tree;

use std::time::Duration;

use serde_json::{Value, json};

use crate::front::{INIT, Miss, Running, Spec, StartOptions};
use crate::json as raw;
use crate::server::INIT_TAIL;
use crate::table::Row;

use compared::{by_field, short};

const WAIT: Duration = Duration::from_secs(8);

/// A front under its checks. It is replaced when it did not answer or ended, so that one failed check does not spoil
/// the next.
struct Check<'a> {
    spec: &'a Spec,
    options: StartOptions,
    run: Running,
    row: Row,
}

/// The front could not be started again: the checks end.
struct Lost;

type Going = Result<(), Lost>;

/// All checks of one front.
pub(crate) fn run(spec: &Spec, upstream: &str) -> Row {
    let mut row = Row::new();
    row.insert("front".into(), json!(spec.name));
    row.insert("upstream".into(), json!(upstream));
    let options = StartOptions::of(spec, upstream);
    let run = match Running::start(spec, &options) {
        Ok(run) => run,
        Err(error) => {
            row.insert("error".into(), json!(error));
            return row;
        }
    };
    let mut check = Check { spec, options, run, row };
    check.initialize();
    check.tools_list();
    if check.rest().is_err() {
        check.put("error", "the front does not start again");
    }
    check.row
}

/// Why there is no result, in words.
fn outcome(answer: &Result<Vec<u8>, Miss>) -> Option<String> {
    match answer {
        Err(miss) => Some(miss.to_string()),
        Ok(message) => raw::get(message, "error").map(|error| format!("error {}", short(error))),
    }
}

impl Check<'_> {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.row.insert(key.to_owned(), value.into());
    }

    /// A front that failed, or ended, is replaced.
    fn renew(&mut self, failed: bool) -> Going {
        if !failed && self.run.exited().is_none() {
            return Ok(());
        }
        self.run.stop();
        self.run = Running::start(self.spec, &self.options).map_err(|_| Lost)?;
        Ok(())
    }

    fn rest(&mut self) -> Going {
        self.answers()?;
        self.request()?;
        self.request_with_unknown_field()?;
        self.ids()?;
        self.progress()?;
        self.notifications()?;
        self.custom_method()?;
        self.server_requests()?;
        self.cancellation();
        self.blocked_by_slow_call();
        self.concurrency();
        self.no_json_tree();
        Ok(())
    }

    /// Is the server's answer handed on, and what did the server see of the client's?
    fn initialize(&mut self) {
        let want = format!(r#"{{"protocolVersion":"2025-06-18",{INIT_TAIL}}}"#);
        let got = raw::get(&self.run.init, "result").unwrap_or(b"{}").to_vec();
        self.put("initialize", by_field(want.as_bytes(), &got));
        let Ok(answer) = self.run.tool("stats", "{}", WAIT) else { return };
        let Some(stats) = raw::first_text(&answer) else { return };
        let seen = match raw::get(stats.as_bytes(), "init").unwrap_or(b"null") {
            init if init == INIT.as_bytes() => "identical".to_owned(),
            b"null" => "upstream saw no initialize".to_owned(),
            init => {
                let params = raw::get(init, "params").unwrap_or(b"{}");
                let of = |key| short(raw::get(params, key).unwrap_or(b"?"));
                let (version, client, able) = (of("protocolVersion"), of("clientInfo"), of("capabilities"));
                format!("protocol {version}, client {client}, capabilities {able}")
            }
        };
        self.put("initialize_seen_upstream", seen);
    }

    fn tools_list(&mut self) {
        let answer = self.run.request("tools/list", "{}", WAIT);
        let message = match (&answer, outcome(&answer)) {
            (Ok(message), None) => message,
            (_, why) => return self.put("tools/list", why.unwrap_or_default()),
        };
        let result = raw::get(message, "result").unwrap_or(b"{}");
        let tools = raw::get(result, "tools").map(raw::items).unwrap_or_default();
        let future = if raw::get(result, "futureList").is_some() { "kept" } else { "DROPPED" };
        let mut found = Row::new();
        found.insert("count".into(), json!(tools.len()));
        found.insert("futureList".into(), json!(future));
        let echo =
            tools.iter().find(|t| raw::string(raw::get(t, "name")).is_some_and(|n| n.ends_with("echo")));
        if let Some(echo) = echo {
            let want = br#"{"name":"echo","title":"Echo","description":"Returns its argument.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":true},"annotations":{"readOnlyHint":true,"x-unknown-hint":1.0},"_meta":{"com.example/k":{"z":1,"a":12345678901234567890}},"futureField":["keep",null]}"#;
            found.insert("echo".into(), by_field(want, echo));
        }
        self.put("tools/list", Value::Object(found));
    }
}
