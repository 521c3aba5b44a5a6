//! Owns what a server says and asks while a call runs: progress, logs, questions to the person. Knows no command.

use std::fmt::Write as _;
use std::io::BufRead as _;

use serde_json::{Value, json};
use toolway_proxy::gateway::{Companion, Happening};
use toolway_transport::Failure;
use toolway_wire::METHOD_NOT_FOUND;

use super::interrupts::Interrupts;
use super::questions::{Line, Person, elicit};
use crate::show::{Terminal, one_line, safe};

/// The person at the terminal, or nobody.
#[derive(Debug)]
pub(crate) struct Voice {
    server: String,
    /// What runs: a tool's name, a URI.
    what: String,
    terminal: Terminal,
    /// Show what servers log.
    logs: bool,
    roots: Option<Vec<String>>,
    interrupts: Interrupts,
    /// A line of progress stands on stderr.
    drawn: bool,
}

impl Voice {
    pub(super) fn new(
        server: &str,
        what: &str,
        terminal: Terminal,
        logs: bool,
        roots: Option<Vec<String>>,
        interrupts: Interrupts,
    ) -> Self {
        let (server, what) = (server.to_owned(), one_line(what, 60));
        Self { server, what, terminal, logs, roots, interrupts, drawn: false }
    }

    /// What we tell servers that we can do.
    pub(super) fn capabilities(asks: bool, roots: bool) -> String {
        let mut can = serde_json::Map::new();
        if asks {
            can.insert("elicitation".to_owned(), json!({"form": {}, "url": {}}));
        }
        if roots {
            can.insert("roots".to_owned(), json!({}));
        }
        Value::Object(can).to_string()
    }

    /// Takes the line of progress away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            write("\r\x1b[K");
        }
    }

    fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !self.terminal.err {
            return;
        }
        let line = one_line(&progress_line(&self.what, progress, total, message), self.terminal.width - 1);
        self.drawn = true;
        write(&format!("\r\x1b[K{line}"));
    }

    fn log(&mut self, params: &[u8]) {
        let Ok(params) = serde_json::from_slice::<Value>(params) else { return };
        self.clear();
        write(&format!("{}\n", safe(&log_line(&self.server, &params))));
    }
}

/// `tool: 3 of 10 (30%) message`.
fn progress_line(what: &str, progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let mut line = format!("{what}: ");
    match total.filter(|total| *total > 0.0) {
        Some(total) => {
            let percent = (progress / total * 100.0).clamp(0.0, 100.0);
            write!(line, "{progress} of {total} ({percent:.0}%)").unwrap_or_default();
        }
        None => line.push_str(&progress.to_string()),
    }
    if let Some(message) = message {
        write!(line, " {message}").unwrap_or_default();
    }
    line
}

/// `server [warning] logger: text`.
fn log_line(server: &str, params: &Value) -> String {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let logger = text("logger").map(|logger| format!(" {logger}:")).unwrap_or_default();
    let data = match params.get("data") {
        Some(Value::String(data)) => data.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    format!("{server} [{}]{logger} {data}", text("level").unwrap_or("info"))
}

impl Companion for Voice {
    fn answer(&mut self, method: &str, params: &[u8]) -> Result<Vec<u8>, Failure> {
        let refused = |message: String| Failure { code: METHOD_NOT_FOUND, message, data: None };
        match method {
            "elicitation/create" => {
                self.clear();
                let params: Value = serde_json::from_slice(params).unwrap_or(Value::Null);
                let answer = if self.terminal.asks {
                    elicit(&self.server, &params, &mut AtTerminal { interrupts: &self.interrupts })
                } else {
                    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
                    let asked = one_line(message, 200);
                    let line = format!(
                        "server {:?} asks: {asked}\nnobody can answer here (no terminal): declined\n",
                        self.server
                    );
                    write(&line);
                    json!({ "action": "decline" })
                };
                Ok(answer.to_string().into_bytes())
            }
            "roots/list" => match &self.roots {
                Some(roots) => {
                    let roots: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
                    Ok(json!({ "roots": roots }).to_string().into_bytes())
                }
                None => Err(refused("this client has no roots".to_owned())),
            },
            "sampling/createMessage" => {
                self.clear();
                write(&format!(
                    "server {:?} asked for a model (sampling/createMessage): refused\n",
                    self.server
                ));
                Err(refused("a shell has no model: sampling/createMessage is refused".to_owned()))
            }
            other => Err(refused(format!("this client cannot answer {other}"))),
        }
    }

    fn happened(&mut self, happening: Happening<'_>) {
        match happening {
            Happening::Progress { progress, total, message } => {
                self.progress(progress, total, message.as_deref());
            }
            Happening::Log(params) if self.logs => self.log(params),
            Happening::Log(_) | Happening::Notification { .. } => {}
        }
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.clear();
    }
}

/// To stderr; whoever reads it may be gone.
fn write(text: &str) {
    crate::border::tell(text);
}

/// Asks on stderr, reads from stdin.
struct AtTerminal<'a> {
    interrupts: &'a Interrupts,
}

impl Person for AtTerminal<'_> {
    fn tell(&mut self, text: &str) {
        write(text);
    }

    fn ask(&mut self, prompt: &str) -> Line {
        write(prompt);
        let answers = self.interrupts.listen(|answer| {
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            let typed = read.is_ok_and(|bytes| bytes > 0);
            // Nobody listens any more when a signal came first.
            answer.send(if typed { Line::Typed(line) } else { Line::End }).ok();
        });
        let line = answers.and_then(|answers| answers.recv().ok()).unwrap_or(Line::Signal);
        if line != Line::End {
            return line;
        }
        write("\n");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_one_line() {
        assert_eq!(progress_line("build", 3.0, Some(10.0), Some("linking")), "build: 3 of 10 (30%) linking");
        assert_eq!(progress_line("build", 0.5, None, None), "build: 0.5");
        assert_eq!(progress_line("build", 3.0, Some(0.0), None), "build: 3");
    }

    #[test]
    fn logs_are_one_line_each() {
        let params = json!({"level": "warning", "logger": "db", "data": {"a": 1}});
        assert_eq!(log_line("s", &params), "s [warning] db: {\"a\":1}");
        assert_eq!(log_line("s", &json!({"data": "x"})), "s [info] x");
    }
}
