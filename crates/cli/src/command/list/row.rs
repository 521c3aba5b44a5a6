//! Owns one row of the list: a configured entry, and what became of its start.

use serde_json::{Value, json};
use std::fmt::Write as _;
use toolway_config::{Entry, RemoteKind, Standing, Target};
use toolway_proxy::gateway::{ServerEntry, ServerState};

use crate::command::shell::Started;
use crate::show::one_line;

/// The most characters of a name or a place in the table.
const MOST: usize = 48;

/// One configured entry.
#[derive(Debug)]
pub(super) struct Row {
    name: String,
    /// `None`: it can be started, and was not.
    state: Option<ServerState>,
    /// `project /x/mcp.json:3`.
    from: String,
    source: Value,
    transport: Option<&'static str>,
    command: Option<String>,
    url: Option<String>,
    counts: Option<[usize; 4]>,
    notes: Vec<String>,
    protocol: Option<String>,
    server: Option<Value>,
    /// Why it is not approved.
    distrust: Option<String>,
    start_ms: Option<u64>,
}

impl Row {
    pub(super) fn new(entry: &Entry, server: &ServerEntry) -> Self {
        let mut row = Self {
            name: entry.name.clone(),
            state: server.plan.as_ref().err().cloned(),
            from: format!("{} {}", entry.source, entry.place),
            source: json!({
                "kind": entry.source.name(),
                "file": (!entry.place.file.as_os_str().is_empty()).then(|| entry.place.file.to_string_lossy()),
                "line": entry.place.at.map(|at| at.line),
                "column": entry.place.at.map(|at| at.column),
                "dialect": entry.dialect.name(),
            }),
            transport: None,
            command: None,
            url: None,
            counts: None,
            notes: Vec::new(),
            protocol: None,
            server: None,
            distrust: match &entry.standing {
                Standing::Untrusted { reason } => Some(reason.clone()),
                _ => None,
            },
            start_ms: None,
        };
        // As it is written, placeholders and all: what they stand for may be a secret.
        match entry.definition.as_ref().map(|definition| &definition.target) {
            Some(Target::Stdio(stdio)) => {
                row.transport = Some("stdio");
                let whole = stdio.command.raw();
                let first = if stdio.args.is_none() {
                    whole.split_whitespace().next().unwrap_or_default()
                } else {
                    whole
                };
                row.command = Some(first.to_owned());
            }
            Some(Target::Remote(remote)) => {
                row.transport = Some(if remote.kind == RemoteKind::Sse { "sse" } else { "http" });
                row.url = Some(shown_url(remote.url.raw()));
            }
            None => {}
        }
        row
    }

    /// What became of its start.
    pub(super) fn add(&mut self, started: &Started) {
        self.state = Some(started.state.clone());
        self.start_ms = u64::try_from(started.took.as_millis()).ok();
        if let Some(negotiated) = &started.negotiated {
            self.transport = Some(negotiated.carrier.name());
            self.protocol = Some(negotiated.version.clone());
            self.server =
                Some(json!({ "name": negotiated.server_name(), "version": negotiated.server_version() }));
        }
        if let Some(lists) = &started.lists {
            self.counts =
                Some([lists.tools.len(), lists.prompts.len(), lists.resources.len(), lists.templates.len()]);
            self.notes.clone_from(&started.remarks);
        }
    }

    fn state_name(&self) -> &'static str {
        self.state.as_ref().map_or("ready", ServerState::name)
    }

    /// SERVER, STATE, TOOLS, TRANSPORT, FROM.
    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            one_line(&self.name, MOST),
            self.state_name().to_owned(),
            self.counts.map(|counts| counts[0].to_string()).unwrap_or_default(),
            self.transport.unwrap_or_default().to_owned(),
            one_line(&self.from, 2 * MOST),
        ]
    }

    /// Why it is in this state, with what to do, as lines of their own.
    pub(super) fn reason(&self) -> Option<String> {
        let name = one_line(&self.name, MOST);
        let (reason, hint) = self.explained();
        let mut text = String::new();
        if let Some(reason) = reason {
            writeln!(text, "{name}: {reason}").unwrap_or_default();
        }
        if let Some(hint) = hint {
            writeln!(text, "{name}: {}{hint}", if text.is_empty() { "" } else { "hint: " })
                .unwrap_or_default();
        }
        for note in &self.notes {
            writeln!(text, "{name}: note: {note}").unwrap_or_default();
        }
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn json(&self) -> Value {
        let (reason, hint) = self.explained();
        let stage = match &self.state {
            Some(ServerState::Failed { stage, .. }) => Some(stage.name()),
            _ => None,
        };
        let count = |index: usize| self.counts.and_then(|counts| counts.get(index).copied());
        json!({
            "name": self.name,
            "state": self.state_name(),
            "stage": stage,
            "reason": reason,
            "hint": hint,
            "source": self.source,
            "transport": self.transport,
            "command": self.command,
            "url": self.url,
            "protocol": self.protocol,
            "server": self.server,
            "tools": count(0),
            "prompts": count(1),
            "resources": count(2),
            "templates": count(3),
            "notes": self.notes,
            "startMs": self.start_ms,
        })
    }

    /// What happened, and what to do.
    fn explained(&self) -> (Option<String>, Option<String>) {
        match &self.state {
            None | Some(ServerState::Starting | ServerState::Connected | ServerState::Missing) => {
                (None, None)
            }
            Some(ServerState::Failed { stage, reason, hint }) => {
                (Some(format!("{}: {reason}", stage.name())), hint.clone())
            }
            Some(ServerState::NeedsAuth { hint }) => {
                (Some("the server wants a login".to_owned()), Some(hint.clone()))
            }
            Some(ServerState::Untrusted { hint }) => {
                let reason = self.distrust.as_ref().map(|reason| format!("not approved: {reason}"));
                (reason, Some(hint.clone()))
            }
            Some(ServerState::NeedsInput { inputs }) => {
                (Some(format!("needs a value that only you can give: {}", inputs.join(", "))), None)
            }
            Some(ServerState::Blocked { policy }) => (Some(format!("forbidden by {policy}")), None),
            Some(ServerState::Disabled { by }) => (Some(format!("switched off at {by}")), None),
            Some(ServerState::Shadowed { by }) => (Some(format!("that at {by} is used")), None),
        }
    }
}

/// Without user, password, query and fragment.
fn shown_url(raw: &str) -> String {
    let end = raw.find(['?', '#']).unwrap_or(raw.len());
    let kept = raw.get(..end).unwrap_or(raw);
    match kept.split_once("://") {
        Some((scheme, rest)) => {
            let host_end = rest.find('/').unwrap_or(rest.len());
            let (host, path) = rest.split_at(host_end);
            let host = host.rsplit('@').next().unwrap_or(host);
            format!("{scheme}://{host}{path}")
        }
        None => kept.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (raw, shown) in [
            ("https://u:p@h:1/a/b?key=x#y", "https://h:1/a/b"),
            ("http://127.0.0.1/${env:TOK}", "http://127.0.0.1/${env:TOK}"),
            ("${URL}?k=1", "${URL}"),
            ("http://h", "http://h"),
        ] {
            assert_eq!(shown_url(raw), shown);
        }
    }
}
