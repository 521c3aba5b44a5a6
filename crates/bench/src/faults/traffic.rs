//! Scenarios of messages: crashes under a call, noise, floods, what is no JSON, batches, and sizes and depths.

use std::time::{Duration, Instant};

use super::{Scene, short};
use crate::front::Got;
use crate::json as raw;

const SOON: Duration = Duration::from_millis(300);

impl Scene<'_> {
    pub(super) fn tool_misbehaves(&mut self) {
        match self.name {
            "crash" | "crash_partial" => {
                self.call("pending", self.name, "{}", 10);
                self.front_state("front_state", Duration::from_secs(2));
                self.next("next");
                self.front_state("front_later", SOON);
            }
            "garbage" | "stderr_flood" => {
                self.call("pending", self.name, r#"{"n":4000000}"#, 10);
                let stray = self.run.extra.iter().filter(|m| !m.starts_with(b"{")).count();
                if stray > 0 {
                    self.put("stray", format!("{stray} lines that are not JSON reached the client"));
                }
                self.next("next");
            }
            "never" => {
                self.call("pending", "never", "{}", 5);
                self.next("next");
            }
            "blob_100M" => {
                self.run.reset_peak();
                self.call("pending", "blob", r#"{"n":100000000}"#, 90);
                self.put("peak_mb", self.run.usage().peak_kib / 1024);
                self.next("next");
            }
            "deep_answer_10k" => {
                self.call("pending", "deep", r#"{"depth":10000}"#, 8);
                self.front_state("front_state", SOON);
                self.next("next");
            }
            "deep_request_10k" => {
                let args = format!(r#"{{"v":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
                self.call("pending", "size", &args, 8);
                self.front_state("front_state", SOON);
                self.next("next");
            }
            other => self.put("error", format!("no such scenario: {other}")),
        }
    }

    pub(super) fn invalid_json(&mut self) {
        self.run.extra.clear();
        self.run.send(b"{this is not json}");
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut answer = "nothing".to_owned();
        loop {
            match self.run.receive(deadline) {
                Got::Message(m) if raw::get(&m, "method").is_some() => {
                    answer = format!("a notification: {}", short(&String::from_utf8_lossy(&m), 120));
                }
                Got::Message(m) => {
                    answer = short(&String::from_utf8_lossy(&m), 160);
                    break;
                }
                Got::Timeout => break,
                Got::Closed => {
                    answer = "stdout closed".into();
                    break;
                }
            }
        }
        self.put("answer", answer);
        self.next("next");
        self.front_state("front_state", SOON);
    }

    pub(super) fn batch(&mut self) {
        self.run.send(br#"[{"jsonrpc":"2.0","id":901,"method":"ping"},{"jsonrpc":"2.0","id":902,"method":"tools/call","params":{"name":"echo","arguments":{"text":"b"}}}]"#);
        let deadline = Instant::now() + Duration::from_secs(3);
        let mut answers: Vec<String> = vec![];
        while answers.len() < 2 && !answers.last().is_some_and(|a| a.starts_with('[')) {
            match self.run.receive(deadline) {
                Got::Message(m) => answers.push(short(&String::from_utf8_lossy(&m), 140)),
                Got::Timeout => break,
                Got::Closed => {
                    answers.push("stdout closed".into());
                    break;
                }
            }
        }
        if answers.is_empty() {
            answers.push("nothing in 3 s".into());
        }
        self.put("answer", answers);
        self.next("next");
    }
}
