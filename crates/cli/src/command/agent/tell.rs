//! Owns what a person sees of a run: the answer on stdout, one short line on stderr for each thing that the agent does.

use std::collections::VecDeque;
use std::io::{self, Write};

use serde_json::Value;
use toolway_agent::{AssistantBlock, Delta, Event, EventKind, ServerReport, ToolCallEvent, ToolCallStatus};
use toolway_bridge::RawJson;

use crate::show::{Terminal, one_line, safe};

/// The most characters of what a line says of a call.
const LINE: usize = 160;

/// Shows a run.
#[derive(Debug)]
pub(super) struct Teller {
    terminal: Terminal,
    quiet: bool,
    /// Text of the answer was shown, and its last line is not ended.
    in_line: bool,
    /// Texts that came in pieces, one for each step, whose messages have not come yet: these will say nothing new. What
    /// happens between events may be ahead of them by a step.
    in_pieces: VecDeque<String>,
    /// Something of the answer was shown.
    pub(super) answered: bool,
}

impl Teller {
    pub(super) fn new(terminal: Terminal, quiet: bool) -> Self {
        Self { terminal, quiet, in_line: false, in_pieces: VecDeque::new(), answered: false }
    }

    /// What happens between events. An error: nobody reads stdout.
    pub(super) fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        match delta {
            Delta::Text(text) => {
                match self.in_pieces.back_mut() {
                    Some(step) => step.push_str(text),
                    None => self.in_pieces.push_back(text.clone()),
                }
                self.text(text)
            }
            Delta::ToolCallStarted(call) => {
                self.end_line()?;
                self.note(&format!("- {}", summary(&call.name, call.args.as_ref())));
                Ok(())
            }
            Delta::ToolCallCompleted(call) if call.status == ToolCallStatus::Error => {
                self.note(&format!("  failed: {}", failure(call)));
                Ok(())
            }
            Delta::ToolCallProgress { message, .. } if self.terminal.err => {
                self.note(&format!("  {}", one_line(message, LINE)));
                Ok(())
            }
            Delta::SummaryStarted => {
                self.note("- older messages are summarised");
                Ok(())
            }
            Delta::StepStarted { .. } => {
                self.in_pieces.retain(|step| !step.trim().is_empty());
                self.in_pieces.push_back(String::new());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Events.
    pub(super) fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::System(init) => {
                for diagnostic in &init.diagnostics {
                    self.note(&format!("note: {}", safe(diagnostic)));
                }
                for server in &init.mcp_servers {
                    if let Some(line) = not_there(server) {
                        self.note(&line);
                    }
                }
            }
            EventKind::Assistant { content } => {
                for block in content {
                    match block {
                        AssistantBlock::Text(text) if !self.came(text) => self.text(text)?,
                        _ => {}
                    }
                }
            }
            // What an agent of the protocol offers is of no use here.
            EventKind::Task { status: Some(status), .. } if status == "commands" => {}
            EventKind::Task { text: Some(text), .. } => self.note(&format!("- {}", one_line(text, LINE))),
            _ => {}
        }
        Ok(())
    }

    /// Whether a message's text came in pieces before.
    fn came(&mut self, text: &str) -> bool {
        while self.in_pieces.len() > 1 && self.in_pieces.front().is_some_and(|step| step.trim().is_empty()) {
            self.in_pieces.pop_front();
        }
        let Some(step) = self.in_pieces.front_mut().filter(|step| !step.trim().is_empty()) else {
            return false;
        };
        // A step may have several messages. Where secrets were taken out the two differ.
        *step = step.strip_prefix(text).map(str::to_owned).unwrap_or_default();
        true
    }

    /// Text of the answer.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        let shown = if self.terminal.out { safe(text) } else { text.into() };
        out.write_all(shown.as_bytes())?;
        out.flush()?;
        self.in_line = !text.ends_with('\n');
        self.answered = true;
        Ok(())
    }

    /// The answer's last line is whole.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_line) {
            let mut out = io::stdout().lock();
            out.write_all(b"\n")?;
            out.flush()?;
        }
        Ok(())
    }

    /// A line on stderr; whoever reads it may be gone.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            crate::border::say(format_args!("{text}"));
        }
    }
}

/// What is said of a server that the model does not have.
pub(in crate::command) fn not_there(server: &ServerReport) -> Option<String> {
    if matches!(server.state.as_str(), "connected" | "starting" | "handed_over" | "disabled" | "shadowed") {
        return None;
    }
    let reason = server.reason.as_deref().map(|reason| format!(": {}", one_line(reason, 400)));
    let state = server.state.replace('_', " ");
    Some(format!("server {:?} is {state}{}", server.name, reason.unwrap_or_default()))
}

fn failure(call: &ToolCallEvent) -> String {
    let Some(result) = call.result.as_ref().map(RawJson::tree) else {
        return "no reason was given".to_owned();
    };
    let blocks = result.get("content").and_then(Value::as_array);
    let text = blocks.into_iter().flatten().find_map(|block| block.get("text")?.as_str().map(str::to_owned));
    let named = || {
        ["error", "message", "text", "output"]
            .iter()
            .find_map(|name| result.get(name)?.as_str().map(str::to_owned))
    };
    one_line(&text.or_else(named).unwrap_or_else(|| result.to_string()), LINE)
}

/// One line on a call: the tool, and the argument that tells most.
pub(in crate::command) fn summary(name: &str, args: Option<&RawJson>) -> String {
    let args = args.map(RawJson::tree).unwrap_or_default();
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    if let (Some(server), Some(tool)) = (text("providerIdentifier"), text("toolName")) {
        let inner = args.get("args").filter(|inner| inner.as_object().is_some_and(|map| !map.is_empty()));
        let inner = inner.map(|inner| format!(" {inner}")).unwrap_or_default();
        return one_line(&format!("{server}: {tool}{inner}"), LINE);
    }
    let telling = ["command", "path", "pattern", "url", "description", "question"];
    let said = telling.iter().find_map(|name| text(name));
    match said {
        Some(said) => one_line(&format!("{name}: {said}"), LINE),
        None => one_line(name, LINE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_line() {
        let of = |name: &str, args: &str| summary(name, Some(&RawJson::new(args.to_owned()).unwrap()));
        assert_eq!(of("shell", r#"{"command":"cargo\ntest"}"#), "shell: cargo test");
        assert_eq!(
            of("mcp", r#"{"providerIdentifier":"db","toolName":"query","args":{"n":1}}"#),
            "db: query {\"n\":1}"
        );
        assert_eq!(of("mcp", r#"{"providerIdentifier":"db","toolName":"query","args":{}}"#), "db: query");
        assert_eq!(of("updateTodos", r#"{"todos":[]}"#), "updateTodos");
        assert_eq!(summary("ls", None), "ls");
    }

    #[test]
    fn a_message_is_shown_once_however_far_ahead_its_pieces_are() {
        let teller =
            || Teller::new(Terminal { out: false, err: false, asks: false, width: 80, graphics: None }, true);
        let step = |teller: &mut Teller, text: &str| {
            teller.delta(&Delta::StepStarted { step: 1 }).unwrap();
            teller.in_pieces.back_mut().unwrap().push_str(text);
        };
        let mut ahead = teller();
        step(&mut ahead, "I look.");
        step(&mut ahead, "It says so.");
        assert!(ahead.came("I look.") && ahead.came("It says so.") && !ahead.came("And whole."));
        let mut several = teller();
        step(&mut several, "One.Two.");
        step(&mut several, "");
        assert!(several.came("One.") && several.came("Two.") && !several.came("Three."));
        let mut redacted = teller();
        step(&mut redacted, "key=abc");
        step(&mut redacted, "done");
        assert!(redacted.came("key=[redacted]") && redacted.came("done") && !redacted.came("more"));
        assert!(!teller().came("Whole."));
    }

    #[test]
    fn what_failed_says_why() {
        let with = |result: &str| {
            failure(&ToolCallEvent {
                call_id: "c".into(),
                name: "shell".into(),
                status: ToolCallStatus::Error,
                args: None,
                result: Some(RawJson::new(result.to_owned()).unwrap()),
                truncated: toolway_agent::Truncated::default(),
            })
        };
        assert_eq!(with(r#"{"content":[{"type":"text","text":"no\nsuch"}],"isError":true}"#), "no such");
        assert_eq!(with(r#"{"error":"denied"}"#), "denied");
        assert_eq!(with("[1]"), "[1]");
    }
}
