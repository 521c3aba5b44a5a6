//! What comes beside the answers: progress, notifications, the server's own requests, cancellation, concurrency.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Check, Going, WAIT, outcome, short};
use crate::front::{Got, Link};
use crate::json as raw;
use crate::sys;

const SERVER_REQUESTS: [(&str, &str); 4] = [
    ("ping", "{}"),
    ("roots/list", "{}"),
    (
        "sampling/createMessage",
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}"#,
    ),
    (
        "elicitation/create",
        r#"{"message":"m","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}"#,
    ),
];

fn is_method(message: &[u8], method: &str) -> bool {
    raw::is_str(raw::get(message, "method"), method)
}

impl Check<'_> {
    fn is_stdio(&self) -> bool {
        matches!(self.run.link, Link::Stdio(_))
    }

    pub(super) fn progress(&mut self) -> Going {
        self.run.extra.clear();
        let (id, prefix) = (self.run.id(), self.spec.prefix.clone());
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{prefix}progress","arguments":{{"n":20}},"_meta":{{"progressToken":"tok-1"}}}}}}"#
        );
        let answer = self.run.call_raw(message.as_bytes(), id.as_bytes(), Instant::now() + WAIT);
        let before = self.run.extra.len();
        self.run.tool("echo", r#"{"text":"x"}"#, WAIT).ok();
        let of = |messages: &[Vec<u8>]| -> Vec<Vec<u8>> {
            messages.iter().filter(|m| is_method(m, "notifications/progress")).cloned().collect()
        };
        let (all, early) = (of(&self.run.extra), of(&self.run.extra[..before]).len());
        let step = |m: &[u8]| raw::int(raw::path(m, &["params", "progress"]));
        let in_order = all.windows(2).all(|w| step(&w[0]) < step(&w[1]));
        let first = br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok-1","progress":1,"total":20,"message":"step 1","futureField":1.0}}"#;
        let exact = all.first().is_some_and(|p| p == first);
        let n = all.len();
        let word = outcome(&answer).unwrap_or_else(|| {
            format!(
                "{n} of 20 arrived, {early} before the result, in order: {in_order}, bytes identical: {exact}"
            )
        });
        self.put("progress", word);
        self.renew(answer.is_err())
    }

    pub(super) fn notifications(&mut self) -> Going {
        self.run.extra.clear();
        let answer = self.run.tool("notify", "{}", WAIT);
        self.run.tool("sleep", r#"{"ms":150}"#, WAIT).ok();
        let has = |method| self.run.extra.iter().any(|m| is_method(m, method));
        let word = match outcome(&answer) {
            Some(why) => json!(why),
            None => {
                json!({"message": has("notifications/message"), "unknown": has("notifications/x-unknown")})
            }
        };
        self.put("notifications", word);
        self.renew(answer.is_err())
    }

    pub(super) fn custom_method(&mut self) -> Going {
        let answer = self.run.request("x-bench/custom", "{}", WAIT);
        self.put("custom_method", outcome(&answer).unwrap_or_else(|| "handed on".into()));
        self.renew(answer.is_err())
    }

    pub(super) fn server_requests(&mut self) -> Going {
        for (method, params) in SERVER_REQUESTS {
            self.run.extra.clear();
            let args = format!(r#"{{"method":"{method}","params":{params}}}"#);
            let answer = self.run.tool("server_request", &args, WAIT);
            let reached = self.run.extra.iter().any(|m| is_method(m, method));
            let word = match &answer {
                _ if self.spec.is_http && reached => {
                    "reached the client (the harness's HTTP client cannot answer in mid-stream)".to_owned()
                }
                Err(miss) => miss.to_string(),
                Ok(message) => {
                    let got = raw::first_text(message).unwrap_or_else(|| short(message));
                    let how = if reached { "reached the client" } else { "did not reach the client" };
                    format!("{how}; upstream got {}", short(got.as_bytes()))
                }
            };
            self.put(&format!("server_request:{method}"), word);
            self.renew(answer.is_err())?;
        }
        Ok(())
    }

    pub(super) fn cancellation(&mut self) {
        if !self.is_stdio() {
            return;
        }
        let id = self.run.id();
        let call = self.run.tool_message(&id, "sleep", r#"{"ms":600}"#);
        self.run.send(call.as_bytes());
        sys::pause(Duration::from_millis(100));
        let cancel = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"bench"}}}}"#
        );
        self.run.send(cancel.as_bytes());
        sys::pause(Duration::from_millis(700));
        let stats =
            self.run.tool("stats", "{}", WAIT).ok().and_then(|m| raw::first_text(&m)).unwrap_or_default();
        let seen = raw::get(stats.as_bytes(), "cancelled").map(short).unwrap_or_default();
        self.put("cancelled", format!("client cancelled id {id}; upstream saw {seen}"));
    }

    /// Does a slow call hold up a fast one behind it?
    pub(super) fn blocked_by_slow_call(&mut self) {
        if !self.is_stdio() {
            return;
        }
        let (slow, fast) = (self.run.id(), self.run.id());
        let begin = Instant::now();
        for (id, tool, args) in [(&slow, "sleep", r#"{"ms":500}"#), (&fast, "echo", r#"{"text":"x"}"#)] {
            let message = self.run.tool_message(id, tool, args);
            self.run.send(message.as_bytes());
        }
        let (mut slow_ms, mut fast_ms) = (f64::NAN, f64::NAN);
        while slow_ms.is_nan() || fast_ms.is_nan() {
            let Got::Message(message) = self.run.receive(begin + WAIT) else { break };
            let id = raw::get(&message, "id").unwrap_or(b"");
            if id == slow.as_bytes() {
                slow_ms = sys::ms(begin.elapsed());
            } else if id == fast.as_bytes() {
                fast_ms = sys::ms(begin.elapsed());
            }
        }
        let word =
            format!("echo sent after sleep(500) came after {fast_ms:.0} ms, sleep after {slow_ms:.0} ms");
        self.put("blocked_by_slow_call", word);
    }

    pub(super) fn concurrency(&mut self) {
        if !self.is_stdio() {
            return;
        }
        let begin = Instant::now();
        for _ in 0..20 {
            let id = self.run.id();
            let message = self.run.tool_message(&id, "sleep", r#"{"ms":200}"#);
            self.run.send(message.as_bytes());
        }
        let mut answers = 0;
        while answers < 20 {
            let Got::Message(message) = self.run.receive(begin + WAIT) else { break };
            answers += usize::from(raw::get(&message, "method").is_none());
        }
        let ms = sys::ms(begin.elapsed());
        self.put("20x_sleep200_ms", format!("{answers} answers in {ms:.0} ms"));
    }
}
