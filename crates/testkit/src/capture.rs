//! The judge of a conversation: JSON-RPC's rules (and the stdio transport's) on every line that passes. It sees both
//! directions and sends nothing.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::message::Message;

/// Collects what was asked and answered, and every breach of a rule.
#[derive(Debug, Default)]
pub struct Capture {
    requests: BTreeMap<String, Request>,
    asked_by_server: Vec<String>,
    invalid_sent: usize,
    null_answers: usize,
    violations: Vec<String>,
    allowed: Vec<String>,
}

#[derive(Debug, Default)]
struct Request {
    times: usize,
    answers: usize,
    cancelled: bool,
    invalid: bool,
}

impl Capture {
    /// Breaches that mention `text` are meant by the test.
    pub fn allow(&mut self, text: &str) {
        self.allowed.push(text.to_owned());
    }

    /// A line that the client sends, without its line ending.
    pub fn sent(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(messages) = Message::parse_line(line) else {
            self.invalid_sent += 1;
            return;
        };
        for message in messages {
            match message.method().as_deref() {
                None if message.is_response() => {}
                None => self.invalid_sent += 1,
                Some("notifications/cancelled") => {
                    let id = message.path(&["params", "requestId"]).unwrap_or_default();
                    if let Some(request) = self.requests.get_mut(id) {
                        request.cancelled = true;
                    }
                }
                Some(_) => self.asked(&message),
            }
        }
    }

    fn asked(&mut self, message: &Message<'_>) {
        let Some(id) = message.id() else { return };
        let request = self.requests.entry(id.to_owned()).or_default();
        request.times += 1;
        let by_type = id.starts_with('"') || id.starts_with('-') || id.as_bytes()[0].is_ascii_digit();
        if !by_type || message.raw("jsonrpc") != Some("\"2.0\"") {
            request.invalid = true;
            self.invalid_sent += 1;
        }
    }

    /// A line that the client gets, without its line ending.
    pub fn received(&mut self, line: &[u8]) {
        let shown: String = String::from_utf8_lossy(line).chars().take(200).collect();
        let breach = |what: String| format!("{what}: {shown}");
        if line.ends_with(b"\r") {
            self.violations.push(breach("a line ends with CR".to_owned()));
        }
        let messages = match Message::parse_line(line) {
            Ok(messages) => messages,
            Err(error) => {
                self.violations.push(breach(format!("{error:#}")));
                return;
            }
        };
        for message in messages {
            if let Err(error) = self.judge(&message) {
                self.violations.push(breach(error.to_string()));
            }
        }
    }

    fn judge(&mut self, message: &Message<'_>) -> Result<()> {
        if message.raw("jsonrpc") != Some("\"2.0\"") {
            bail!("no \"jsonrpc\":\"2.0\"");
        }
        let members = (message.raw("result"), message.raw("error"));
        if message.raw("method").is_some() {
            if message.method().is_none() {
                bail!("the method is no string");
            }
            if members != (None, None) {
                bail!("a request with a result or an error");
            }
            self.asked_by_server.extend(message.id().map(str::to_owned));
            return Ok(());
        }
        match members {
            (Some(_), None) => {}
            (None, Some(error)) => well_formed(error)?,
            _ => bail!("not exactly one of result and error"),
        }
        let id = message.id().unwrap_or("null");
        if let Some(request) = self.requests.get_mut(id) {
            request.answers += 1;
            if request.answers > request.times {
                bail!("a second answer to {id}");
            }
            return Ok(());
        }
        self.null_answers += 1;
        if id != "null" {
            bail!("an answer to {id}, which was never asked");
        }
        if self.null_answers > self.invalid_sent {
            bail!("an answer to nothing");
        }
        Ok(())
    }

    /// The ids of requests that still wait for an answer.
    pub fn unanswered(&self) -> Vec<&str> {
        let open = |(_, r): &(&String, &Request)| r.answers < r.times && !r.cancelled && !r.invalid;
        let ids = self.requests.iter().filter(open);
        ids.map(|(id, _)| id.as_str()).collect()
    }

    /// The breaches that no test meant.
    pub fn violations(&self) -> Vec<&str> {
        let meant = |v: &&String| !self.allowed.iter().any(|text| v.contains(text.as_str()));
        let breaches = self.violations.iter().filter(meant);
        breaches.map(String::as_str).collect()
    }

    /// Fails on any breach; requests may be open.
    pub fn check(&self) -> Result<()> {
        let violations = self.violations();
        if !violations.is_empty() {
            bail!("{} breaches of the protocol: {violations:#?}", violations.len());
        }
        Ok(())
    }

    /// Fails on any breach, and on any request that was neither answered nor cancelled.
    pub fn check_complete(&self) -> Result<()> {
        self.check()?;
        let open = self.unanswered();
        if !open.is_empty() {
            bail!("never answered: {open:?}");
        }
        Ok(())
    }
}

fn well_formed(error: &str) -> Result<()> {
    let error = Message::parse(error.as_bytes())?;
    let code = error.raw("code").unwrap_or_default();
    if code.parse::<i64>().is_err() {
        bail!("the error's code is no integer");
    }
    if error.string(&["message"]).is_none() {
        bail!("the error's message is no string");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(sent: &[&str], received: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut capture = Capture::default();
        for line in sent {
            capture.sent(line.as_bytes());
        }
        for line in received {
            capture.received(line.as_bytes());
        }
        let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
        (owned(capture.violations()), owned(capture.unanswered()))
    }

    const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn a_proper_conversation_passes() {
        let batch = r#"[{"jsonrpc":"2.0","id":"1","method":"ping"},{"jsonrpc":"2.0","method":"n"}]"#;
        let answers = [
            ANSWER,
            r#"[{"jsonrpc":"2.0","id":"1","error":{"code":-32000,"message":"no"}}]"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}"#,
        ];
        let (violations, open) = judged(&[ASK, batch, "{nonsense"], &answers);
        assert!(violations.is_empty(), "{violations:?}");
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn each_breach_is_found() {
        let breaches = [
            ("not a JSON object", "banner"),
            ("not a JSON object", ""),
            ("not a JSON object", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}"),
            ("no \"jsonrpc\":\"2.0\"", r#"{"id":1,"result":{}}"#),
            ("not exactly one", r#"{"jsonrpc":"2.0","id":1}"#),
            ("not exactly one", r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#),
            ("never asked", r#"{"jsonrpc":"2.0","id":"1","result":{}}"#),
            ("never asked", r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#),
            ("an answer to nothing", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#),
            ("no integer", r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#),
            ("no string", r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#),
            ("ends with CR", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r"),
            ("with a result", r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#),
        ];
        for (what, line) in breaches {
            let (violations, _) = judged(&[ASK], &[line]);
            assert_eq!(violations.len(), 1, "{line}: {violations:?}");
            assert!(violations[0].contains(what), "{line}: {violations:?}");
        }
    }

    #[test]
    fn answers_are_counted_against_requests() {
        assert!(judged(&[ASK], &[ANSWER, ANSWER]).0[0].contains("a second answer"));
        assert!(judged(&[ASK, ASK], &[ANSWER, ANSWER]).0.is_empty());
        assert_eq!(judged(&[ASK], &[]).1, ["1"]);
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert!(judged(&[ASK, cancel], &[]).1.is_empty());
        assert!(judged(&[ASK, cancel], &[ANSWER]).0.is_empty());
    }

    #[test]
    fn meant_breaches_can_be_allowed() {
        let mut capture = Capture::default();
        capture.received(b"banner");
        assert!(capture.check().is_err());
        capture.allow("banner");
        assert!(capture.check().is_ok());
    }
}
