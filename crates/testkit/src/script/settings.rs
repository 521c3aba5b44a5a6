//! The settings of a script: how a fake server behaves whatever it is asked. It must not know the rules.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::{Template, duration};

/// How a fake server behaves apart from its rules.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the script")]
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the end of stdin does.
    pub eof: Eof,
    /// TERM, INT and HUP do nothing.
    pub ignore_term: bool,
    /// When the process ends by itself, whatever happens.
    pub life: Duration,
    /// Whether messages without a rule are answered.
    pub defaults: bool,
    /// Answers leave as SSE streams.
    pub reply_sse: bool,
    /// Sessions are opened and asked for.
    pub session: bool,
    /// GET opens a stream (else 405).
    pub get: bool,
    /// The path of the MCP endpoint.
    pub path: String,
    /// The legacy `endpoint` event's data.
    pub endpoint: Option<Template>,
    /// The protocol version that `initialize` answers (else the client's).
    pub version: Option<String>,
    /// The capabilities that `initialize` answers.
    pub capabilities: String,
    /// The tools that `tools/list` answers, as JSON.
    pub tools: Vec<String>,
}

/// What the end of stdin does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eof {
    /// The server exits with 0.
    Exit,
    /// It answers what it was asked first.
    Drain,
    /// It stays.
    Ignore,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            eof: Eof::Exit,
            ignore_term: false,
            life: Duration::from_mins(2),
            defaults: true,
            reply_sse: false,
            session: true,
            get: true,
            path: "/mcp".to_owned(),
            endpoint: None,
            version: None,
            capabilities: r#"{"tools":{"listChanged":true}}"#.to_owned(),
            tools: Vec::new(),
        }
    }
}

impl Settings {
    pub(super) fn set(&mut self, text: &str) -> Result<()> {
        let (name, value) = text.split_once(' ').context("set NAME VALUE")?;
        let on = || match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => bail!("on or off"),
        };
        match (name, value) {
            ("eof", "exit") => self.eof = Eof::Exit,
            ("eof", "drain") => self.eof = Eof::Drain,
            ("eof", "ignore") => self.eof = Eof::Ignore,
            ("term", "ignore") => self.ignore_term = true,
            ("life", _) => self.life = duration(value)?,
            ("defaults", _) => self.defaults = on()?,
            ("reply", "sse") => self.reply_sse = true,
            ("reply", "json") => self.reply_sse = false,
            ("session", _) => self.session = on()?,
            ("get", _) => self.get = on()?,
            ("path", _) => value.clone_into(&mut self.path),
            ("endpoint", _) => self.endpoint = Some(Template::parse(value, false)?),
            ("version", _) => self.version = Some(value.to_owned()),
            ("capabilities", _) => value.clone_into(&mut self.capabilities),
            _ => bail!("no such setting"),
        }
        Ok(())
    }
}
