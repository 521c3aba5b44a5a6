//! Scenarios of HTTP: refusals, forgotten sessions, restarts, broken streams.

use std::time::Duration;

use super::{Scene, last_line};
use crate::front::{HttpUpstream, kind};
use crate::sys;

impl Scene<'_> {
    /// One command to the upstream.
    fn say(&mut self, command: &str) {
        if let Some(upstream) = &mut self.run.upstream {
            upstream.say(command);
        }
    }

    pub(super) fn refuses(&mut self) {
        self.say(match self.name {
            "unauth_later" => "unauth",
            "session_404" => "expire",
            "status_500" => "status 500",
            _ => "hang",
        });
        self.call("pending", "echo", r#"{"text":"x"}"#, 10);
        if self.name != "session_404" {
            self.say("ok");
        }
        self.next("next");
        self.front_state("front_state", Duration::from_millis(500));
        self.put("stderr", last_line(&self.run));
    }

    pub(super) fn restarts(&mut self) {
        let Some(old) = &mut self.run.upstream else { return self.put("error", "no HTTP upstream") };
        let port = old.port;
        old.kill();
        self.call("while_down", "echo", r#"{"text":"x"}"#, 8);
        let mut flags = self.spec.upstream_flags.clone();
        if self.upstream == "http-sse" {
            flags.push("--reply-sse".to_owned());
        }
        match HttpUpstream::start(kind(self.upstream), port, &flags) {
            Ok(upstream) => self.run.upstream = Some(upstream),
            Err(error) => self.put("restart_error", error.to_string()),
        }
        sys::pause(Duration::from_millis(300));
        self.next("after_restart");
        self.next("second_after");
        self.front_state("front_state", Duration::from_millis(300));
    }

    pub(super) fn stream_breaks(&mut self) {
        let resumable = self.name.ends_with("resumable");
        self.call("pending", "break_sse", &format!(r#"{{"resumable":{resumable}}}"#), 12);
        self.next("next");
        self.front_state("front_state", Duration::from_millis(300));
    }
}
