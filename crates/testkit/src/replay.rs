//! Recordings that `toolway ... --record FILE` makes (JSON lines: time, direction, message), played as a script of a
//! fake upstream, or as the lines of a client.

use anyhow::{Context as _, Result};
use serde_json::value::RawValue;

use crate::message::Message;
use crate::script::{Rule, Script, Step, Template};

/// Who sent a recorded message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
}

/// A recorded conversation.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The messages in order, as they were spelled.
    pub messages: Vec<(Direction, String)>,
}

impl Recording {
    /// Reads JSON lines with the members `from` (`client` or `server`; or `direction`, `downstream->upstream` or
    /// `upstream->downstream`) and `message`; an error names the line.
    pub fn parse(text: &str) -> Result<Self> {
        let mut messages = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let read = || -> Result<(Direction, String)> {
                let line = Message::parse(line.as_bytes())?;
                let direction = line.string(&["from"]).or_else(|| line.string(&["direction"]));
                let direction = match direction.as_deref() {
                    Some("client" | "downstream->upstream") => Direction::Up,
                    Some("server" | "upstream->downstream") => Direction::Down,
                    other => anyhow::bail!("no such direction: {other:?}"),
                };
                let message = line.raw("message").context("no message")?;
                // A line that was no JSON is recorded as a string.
                let spelled = match serde_json::from_str::<String>(message) {
                    Ok(text) => text,
                    Err(_) => message.to_owned(),
                };
                Ok((direction, spelled))
            };
            if !line.trim().is_empty() {
                messages.push(read().with_context(|| format!("line {}", at + 1))?);
            }
        }
        Ok(Self { messages })
    }

    /// The lines that the client sent.
    pub fn client_lines(&self) -> impl Iterator<Item = &str> {
        let up = self.messages.iter().filter(|m| m.0 == Direction::Up);
        up.map(|(_, text)| text.as_str())
    }

    /// A script that sends each of the server's messages once the client has sent what came before it; answers
    /// carry the ids of the new requests.
    pub fn script(&self) -> Result<Script> {
        let mut script = Script::default();
        script.settings.defaults = false;
        let mut seen: Vec<String> = Vec::new();
        let mut asked: Vec<(String, usize)> = Vec::new();
        script.rules.push(rule("start".to_owned(), None));
        let mut current = 0;
        for (direction, text) in &self.messages {
            let Ok(message) = Message::parse(text.as_bytes()) else {
                continue;
            };
            let method = message.method();
            if *direction == Direction::Up {
                let what = method.clone().unwrap_or_else(|| "response".to_owned());
                seen.push(what.clone());
                let nth = seen.iter().filter(|s| **s == what).count() as u64;
                script.rules.push(rule(what, Some((nth, false))));
                current = script.rules.len() - 1;
                asked.extend(message.id().map(|id| (id.to_owned(), current)));
                continue;
            }
            let mut at = current;
            let mut answer = Template::exact(text.as_bytes());
            if let (true, Some(id)) = (message.is_response(), message.id()) {
                at = asked.iter().rev().find(|a| a.0 == id).map_or(current, |a| a.1);
                answer = with_new_id(text, id)?;
            }
            if let Some(rule) = script.rules.get_mut(at) {
                rule.steps.push(Step::Send(answer));
            }
        }
        Ok(script)
    }
}

fn rule(what: String, nth: Option<(u64, bool)>) -> Rule {
    Rule { what, nth, when: None, steps: Vec::new() }
}

/// The same text, with the request's id in the place of the recorded one.
fn with_new_id(text: &str, id: &str) -> Result<Template> {
    let members: std::collections::BTreeMap<&str, &RawValue> = serde_json::from_str(text)?;
    let raw = members.get("id").context("no id")?.get();
    let at = (raw.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    let at = at.context("the id is not in the text")?;
    let bytes = text.as_bytes();
    let before = bytes.get(..at).context("before")?;
    let after = bytes.get(at + id.len()..).context("after")?;
    Ok(Template::exact(before).then(Template::parse("{id}", false)?).then(Template::exact(after)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Values;

    const RECORDED: &str = r#"
{"time":"2026-11-30T10:00:00Z","direction":"downstream->upstream","message":{"jsonrpc":"2.0","id":0,"method":"initialize"}}
{"time":"2026-11-30T10:00:00Z","direction":"upstream->downstream","message":{"jsonrpc":"2.0","result":{"n":1.0},"id":0}}
{"time":1780000000.5,"from":"client","message":{"jsonrpc":"2.0","id":"a","method":"ping"}}
{"time":"2026-11-30T10:00:01Z","direction":"downstream->upstream","message":{"jsonrpc":"2.0","id":"b","method":"ping"}}
{"time":"2026-11-30T10:00:01Z","direction":"upstream->downstream","message":{"jsonrpc":"2.0","method":"note"}}
{"time":"2026-11-30T10:00:02Z","direction":"upstream->downstream","message":{"jsonrpc":"2.0","id":"a","result":{}}}
"#;

    #[test]
    fn a_recording_becomes_a_script_that_answers_new_ids() {
        let recording = Recording::parse(RECORDED).unwrap();
        assert_eq!(recording.client_lines().count(), 3);
        let script = recording.script().unwrap();
        let rules: Vec<_> = script.rules.iter().map(|r| (r.what.as_str(), r.nth)).collect();
        assert_eq!(
            rules,
            [
                ("start", None),
                ("initialize", Some((1, false))),
                ("ping", Some((1, false))),
                ("ping", Some((2, false)))
            ]
        );
        let values = Values { line: br#"{"id":"new"}"#.to_vec(), ..Values::default() };
        let sent = |rule: usize| match &script.rules[rule].steps[0] {
            Step::Send(text) => String::from_utf8(text.render(&values)).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(sent(1), r#"{"jsonrpc":"2.0","result":{"n":1.0},"id":"new"}"#);
        assert_eq!(sent(2), r#"{"jsonrpc":"2.0","id":"new","result":{}}"#);
        assert_eq!(sent(3), r#"{"jsonrpc":"2.0","method":"note"}"#);
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        let error = Recording::parse("\n{\"direction\":\"up\"}").unwrap_err();
        assert!(format!("{error:#}").starts_with("line 2"), "{error:#}");
    }
}
