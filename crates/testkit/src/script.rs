//! The script of a fake server: what it answers to which message. It must not know how bytes reach a client.
//!
//! A script is text, read line by line. `#` begins a comment line. A rule names what it waits for, and its actions
//! follow after `->` or on indented lines of their own:
//! ```text
//! set eof ignore
//! tool {"name":"build","inputSchema":{"type":"object"}}
//! on tools/call/build -> text HEAD {x*30000} TAIL
//! on tools/call/slow
//!     wait go
//!     answer {"content":[]}
//! on tools/call/flaky 2+ when broken -> exit 3
//! ```
//! **Rules**: `on WHAT [N|N+] [when FLAG]`. WHAT is a method, `tools/call/NAME`, `response` (an answer of the
//! client), `start` (before anything is read), `eof` (stdin ended), `invalid` (a line that is no message), `GET`,
//! `DELETE`, `POST` (an HTTP request, before its body is looked at), or `*` (any message). The first rule that fits
//! answers. `N` is the Nth message that WHAT has matched, `N+` that and all later ones.
//!
//! **Actions** for every transport:
//! `send TEXT` (one message), `answer RESULT`, `text CHARS` (a result of one text block; CHARS as inside a JSON
//! string), `error CODE MESSAGE`, `raw BYTES` (exactly these, with escapes and no line ending), `pieces N` (later
//! bytes leave N at a time; 0: whole), `delay 20ms`, `wait FLAG`, `arm FLAG`, `disarm FLAG`, `never`, `exit CODE`,
//! `close` (stdout, or the connection), `stderr TEXT`, `spawn [setsid] [stubborn] [orphan] [keep-stdout]` (a
//! process that stays), `reset` (all connections), `forget` (all sessions).
//! For HTTP: `status N [REASON]`, `header NAME: VALUE`, `body BYTES`, `redirect N URL`, `chunked`, `stream` (an SSE
//! answer; later `send`s are its events), `id TEXT` (of the next event), `retry MS`, `resume ID TEXT` (what a GET
//! with this `Last-Event-ID` gets), `cut` (the connection breaks), `end` (the stream ends properly).
//! Texts are [`Template`]s. A message of the client arms `response:ID`, `cancelled:ID` and `seen:METHOD`.
//!
//! **Settings**: `set eof exit|drain|ignore`, `set term ignore`, `set life 60s`, `set defaults off` (nothing is
//! answered but by rule), `set reply json|sse`, `set session on|off`, `set get on|off`, `set path /mcp`,
//! `set endpoint TEXT` (legacy SSE), `set version TEXT`, `set capabilities JSON`, `tool JSON` (one of `tools/list`).
//! Unless turned off, `initialize`, `ping`, `tools/list` and the tool `echo` are answered, unknown methods get
//! -32601, and a tool that has a rule is listed.

mod settings;
mod template;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

pub use settings::{Eof, Settings};
pub use template::{Template, Values, fixed_bytes};

/// A parsed script.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Its rules, in order.
    pub rules: Vec<Rule>,
    /// Its settings.
    pub settings: Settings,
}

/// What is answered to which message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// A method, `tools/call/NAME`, or one of the words of the script format.
    pub what: String,
    /// Only the Nth message; with `true` also later ones.
    pub nth: Option<(u64, bool)>,
    /// Only while this flag is armed.
    pub when: Option<String>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One message.
    Send(Template),
    /// Exactly these bytes.
    Raw(Template),
    /// Later bytes leave this many at a time; 0: whole.
    Pieces(usize),
    /// A pause.
    Delay(Duration),
    /// A pause until the flag is armed.
    Wait(String),
    /// Arms a flag.
    Arm(String),
    /// Disarms a flag.
    Disarm(String),
    /// No answer at all.
    Never,
    /// The process ends.
    Exit(i32),
    /// stdout, or the connection, is closed.
    Close,
    /// A line on stderr.
    Stderr(Template),
    /// A process that stays: arguments for `fakemcp --linger`.
    Spawn(Vec<String>),
    /// All connections break.
    Reset,
    /// All sessions are forgotten.
    Forget,
    /// HTTP status and reason.
    Status(u16, String),
    /// An HTTP header.
    Header(String, Template),
    /// An HTTP body.
    Body(Template),
    /// `Transfer-Encoding: chunked`, one chunk a write.
    Chunked,
    /// The answer is an SSE stream.
    Stream,
    /// The id of the next event.
    EventId(String),
    /// An SSE `retry` field.
    Retry(u64),
    /// What a GET with this `Last-Event-ID` gets.
    Resume(String, Template),
    /// The connection breaks here.
    Cut,
    /// The stream ends properly here.
    End,
}

impl Step {
    /// Whether this step can keep its rule from going on.
    pub fn blocks(&self) -> bool {
        matches!(self, Self::Delay(_) | Self::Wait(_))
    }

    /// Parses one action of the script format.
    pub fn parse(text: &str) -> Result<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let plain = || Template::parse(rest, false);
        let bytes = || Template::parse(rest, true);
        Ok(match word {
            "send" => Self::Send(plain()?),
            "answer" => Self::Send(result(plain()?)),
            "text" => {
                let open = Template::exact(br#"{"content":[{"type":"text","text":""#.as_slice());
                let close = Template::exact(br#""}]}"#.as_slice());
                Self::Send(result(open.then(plain()?).then(close)))
            }
            "error" => Self::Send(error(rest)?),
            "raw" => Self::Raw(bytes()?),
            "body" => Self::Body(bytes()?),
            "stderr" => Self::Stderr(bytes()?),
            "pieces" => Self::Pieces(rest.parse()?),
            "delay" => Self::Delay(duration(rest)?),
            "wait" => Self::Wait(rest.to_owned()),
            "arm" => Self::Arm(rest.to_owned()),
            "disarm" => Self::Disarm(rest.to_owned()),
            "never" => Self::Never,
            "exit" => Self::Exit(rest.parse()?),
            "close" => Self::Close,
            "reset" => Self::Reset,
            "forget" => Self::Forget,
            "spawn" => Self::Spawn(spawn(rest)?),
            "chunked" => Self::Chunked,
            "stream" => Self::Stream,
            "id" => Self::EventId(rest.to_owned()),
            "retry" => Self::Retry(rest.parse()?),
            "cut" => Self::Cut,
            "end" => Self::End,
            "status" => {
                let (code, reason) = rest.split_once(' ').unwrap_or((rest, "Scripted"));
                Self::Status(code.parse()?, reason.to_owned())
            }
            "header" => {
                let (name, value) = rest.split_once(':').context("header NAME: VALUE")?;
                Self::Header(name.to_owned(), Template::parse(value.trim(), true)?)
            }
            "resume" => {
                let (id, text) = rest.split_once(' ').context("resume ID TEXT")?;
                Self::Resume(id.to_owned(), Template::parse(text, false)?)
            }
            _ => bail!("no such action: {word}"),
        })
    }
}

impl Script {
    /// Parses a script; an error names the line.
    pub fn parse(text: &str) -> Result<Self> {
        let mut script = Self::default();
        for (at, line) in text.lines().enumerate() {
            script.line(line).with_context(|| format!("line {}: {line}", at + 1))?;
        }
        for rule in &script.rules {
            if let Some(name) = rule.what.strip_prefix("tools/call/") {
                let key = format!("\"name\":{}", serde_json::Value::from(name));
                if !script.settings.tools.iter().any(|tool| tool.contains(&key)) {
                    let tool = format!("{{{key},\"inputSchema\":{{\"type\":\"object\"}}}}");
                    script.settings.tools.push(tool);
                }
            }
        }
        Ok(script)
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let text = line.trim_start();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if let Some(head) = text.strip_prefix("on ") {
            self.rules.push(rule(head)?);
        } else if let Some(setting) = text.strip_prefix("set ") {
            self.settings.set(setting)?;
        } else if let Some(tool) = text.strip_prefix("tool ") {
            self.settings.tools.push(tool.to_owned());
        } else {
            let rule = self.rules.last_mut().context("an action before any rule")?;
            rule.steps.push(Step::parse(text)?);
        }
        Ok(())
    }
}

fn rule(head: &str) -> Result<Rule> {
    let (head, first) = match head.split_once(" -> ") {
        Some((head, action)) => (head, Some(Step::parse(action)?)),
        None => (head, None),
    };
    let mut words = head.split_whitespace();
    let what = words.next().context("on WHAT")?.to_owned();
    let (mut nth, mut when) = (None, None);
    while let Some(word) = words.next() {
        if word == "when" {
            when = Some(words.next().context("when FLAG")?.to_owned());
        } else {
            let digits = word.strip_suffix('+');
            nth = Some((digits.unwrap_or(word).parse()?, digits.is_some()));
        }
    }
    let steps = first.into_iter().collect();
    Ok(Rule { what, nth, when, steps })
}

fn result(result: Template) -> Template {
    let open = Template::parse(r#"{"jsonrpc":"2.0","id":{id},"result":"#, false);
    open.unwrap_or_default().then(result).then(Template::exact(b"}".as_slice()))
}

fn error(rest: &str) -> Result<Template> {
    let (code, message) = rest.split_once(' ').context("error CODE MESSAGE")?;
    let code: i64 = code.parse()?;
    let message = serde_json::Value::from(message);
    let open = r#"{"jsonrpc":"2.0","id":{id},"error":"#;
    let text = format!(r#"{open}{{"code":{code},"message":{message}}}}}"#);
    Template::parse(&text, false)
}

fn spawn(rest: &str) -> Result<Vec<String>> {
    let known = ["setsid", "stubborn", "orphan", "keep-stdout"];
    let words: Vec<&str> = rest.split_whitespace().collect();
    if let Some(word) = words.iter().find(|word| !known.contains(word)) {
        bail!("spawn cannot {word}");
    }
    Ok(words.iter().map(|word| format!("--{word}")).collect())
}

fn duration(text: &str) -> Result<Duration> {
    if let Some(ms) = text.strip_suffix("ms") {
        return Ok(Duration::from_millis(ms.parse()?));
    }
    let seconds = text.strip_suffix('s').context("a duration is 20ms or 3s")?;
    Ok(Duration::from_secs(seconds.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(step: &Step) -> String {
        let Step::Send(template) = step else { panic!("{step:?}") };
        let values = Values { line: br#"{"id":"a","params":{}}"#.to_vec(), ..Values::default() };
        String::from_utf8(template.render(&values)).unwrap()
    }

    #[test]
    fn rules_settings_and_tools_are_read() {
        let script = Script::parse(
            "# a comment\nset eof ignore\nset life 5s\n\
             tool {\"name\":\"a\",\"inputSchema\":{}}\n\
             on tools/call/a -> text hi\n\
             on tools/call/b 2+ when broken\n    delay 20ms\n    exit 3\n",
        )
        .unwrap();
        assert_eq!(script.settings.eof, Eof::Ignore);
        assert_eq!(script.settings.life, Duration::from_secs(5));
        assert_eq!(
            script.settings.tools,
            [r#"{"name":"a","inputSchema":{}}"#, r#"{"name":"b","inputSchema":{"type":"object"}}"#]
        );
        assert_eq!(
            script.rules[1],
            Rule {
                what: "tools/call/b".to_owned(),
                nth: Some((2, true)),
                when: Some("broken".to_owned()),
                steps: vec![Step::Delay(Duration::from_millis(20)), Step::Exit(3)],
            }
        );
    }

    #[test]
    fn short_forms_are_whole_messages() {
        assert_eq!(
            sent(&Step::parse(r"text a\nb{x*3}").unwrap()),
            r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"a\nbxxx"}]}}"#
        );
        assert_eq!(
            sent(&Step::parse("answer {\"a\":{}}").unwrap()),
            r#"{"jsonrpc":"2.0","id":"a","result":{"a":{}}}"#
        );
        assert_eq!(
            sent(&Step::parse("error -32000 say \"no\"").unwrap()),
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"say \"no\""}}"#
        );
    }

    #[test]
    fn mistakes_name_the_line() {
        for text in
            ["\nsing", "\non ping -> sing", "\nset eof maybe", "\non ping 2x", "\non ping -> spawn twice"]
        {
            let error = Script::parse(text).unwrap_err();
            assert!(format!("{error:#}").starts_with("line 2: "), "{error:#}");
        }
    }
}
