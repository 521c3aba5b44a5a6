//! The script of a model: which reply is given when, as JSON and as a type.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

use super::asked::Asked;

/// What a model answers. As JSON:
///
/// ```json
/// {
///   "rules": [
///     { "when": { "last": "weather" }, "reply": { "calls": [{ "name": "weather", "arguments": { "city": "Ulm" } }] } },
///     { "when": { "result": "degrees" }, "times": 1, "replies": [{ "text": "It is warm." }] }
///   ],
///   "replies": [{ "text": ["Hel", "lo"] }, { "text": "Again." }],
///   "otherwise": { "text": "Nothing fits." }
/// }
/// ```
///
/// The first rule that fits gives the reply; of several `replies` the first one first, and the last one from then on;
/// with `times` it fits that often at most. All members of `when` must be found, as parts of texts: `user` and `result`
/// (texts of the user, results of tools, since the model last spoke), `last` (either), `system` (the instructions),
/// `any` (the whole request), `tool` (a tool of this name is offered). Where no rule fits, `replies` are given one after
/// another, then `otherwise`; where that is absent, the last of `replies` again, or an error of status 500.
///
/// A reply has, all optional:
/// - `thinking`, `text`: a text, which is sent in pieces of ten characters, or a list of pieces.
/// - `calls`: a list of `{name, arguments, id?, pieces?}`; `arguments` is an object, or a text that is sent as it is, in
///   `pieces` pieces (3).
/// - `refusal`: a text. `stop`: `length` or `filter`.
/// - `usage`: `{input, output, cacheRead, cacheWrite, reasoning}`.
/// - `status` other than 200, with `error` (a text), `code`, and `retryAfter` (the header). `headers`: an object.
/// - `cut`: the connection breaks: at the `start`, in the `middle`, at the `end` (all but the mark of the end), or after
///   that many events; with `clean` it ends as if all were well. `stall`: nothing more comes. `malformed`: an event that
///   is no JSON. `failed`: a text, which is told as a failure in the stream, at its middle. `endless`: the last
///   piece of the text again and again.
/// - `wait`: milliseconds before the answer; `pause`: before each event.
/// - `capture`: `{name: {after, until}}`: a part of what was asked last, which stands for `${name}` in texts and arguments.
#[derive(Debug, Clone, Default)]
pub struct ModelScript {
    rules: Vec<Rule>,
    replies: Vec<ModelReply>,
    otherwise: Option<ModelReply>,
}

#[derive(Debug, Clone, Default)]
struct Rule {
    when: Map<String, Value>,
    times: Option<usize>,
    replies: Vec<ModelReply>,
}

/// One reply. Its members are those of the JSON form.
#[derive(Debug, Clone)]
pub struct ModelReply {
    pub(super) thinking: Vec<String>,
    pub(super) text: Vec<String>,
    pub(super) calls: Vec<Call>,
    pub(super) refusal: Option<String>,
    pub(super) stop: Option<String>,
    pub(super) usage: HashMap<String, u64>,
    pub(super) status: u16,
    pub(super) error: String,
    pub(super) code: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) cut: Option<Place>,
    pub(super) clean: bool,
    pub(super) stall: Option<Place>,
    pub(super) malformed: Option<Place>,
    pub(super) failed: Option<String>,
    pub(super) endless: bool,
    pub(super) wait: Option<Duration>,
    pub(super) pause: Option<Duration>,
    capture: Vec<(String, String, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
}

/// A place among events.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Start,
    Middle,
    End,
    After(usize),
}

impl Place {
    fn of(value: &Value) -> Result<Self> {
        Ok(match (value.as_str(), value.as_u64()) {
            (Some("start"), _) => Self::Start,
            (Some("middle"), _) => Self::Middle,
            (Some("end"), _) => Self::End,
            (_, Some(count)) => Self::After(count.try_into()?),
            _ => bail!("{value} is no place: start, middle, end or a number of events"),
        })
    }

    pub(super) fn among(&self, events: usize, tail: usize) -> usize {
        match self {
            Self::Start => 0,
            Self::Middle => tail / 2 + 1,
            Self::End => tail,
            Self::After(count) => (*count).min(events),
        }
    }
}

impl ModelScript {
    /// A script of replies that are given one after another.
    pub fn replies(replies: impl IntoIterator<Item = ModelReply>) -> Self {
        Self { replies: replies.into_iter().collect(), ..Self::default() }
    }

    /// Reads the JSON form.
    pub fn parse(text: &str) -> Result<Self> {
        Self::of(&serde_json::from_str(text).context("the script is no JSON")?)
    }

    /// The same of a value.
    pub fn of(value: &Value) -> Result<Self> {
        known(value, &["rules", "replies", "otherwise"])?;
        let rules = list(value, "rules")?.iter().map(Rule::of).collect::<Result<_>>()?;
        let replies = list(value, "replies")?.iter().map(ModelReply::of).collect::<Result<_>>()?;
        let otherwise = value.get("otherwise").map(ModelReply::of).transpose()?;
        Ok(Self { rules, replies, otherwise })
    }
}

impl Rule {
    fn of(value: &Value) -> Result<Self> {
        known(value, &["when", "times", "reply", "replies"])?;
        let when = value.get("when").and_then(Value::as_object).cloned().unwrap_or_default();
        let words = ["user", "result", "last", "system", "any", "tool"];
        for (name, word) in &when {
            ensure!(
                words.contains(&name.as_str()) && word.is_string(),
                "`when` has a text for each of {words:?}, not {name}"
            );
        }
        let mut replies = list(value, "replies")?.iter().map(ModelReply::of).collect::<Result<Vec<_>>>()?;
        replies.extend(value.get("reply").map(ModelReply::of).transpose()?);
        ensure!(!replies.is_empty(), "a rule has no reply");
        let times = value.get("times").and_then(Value::as_u64).map(usize::try_from).transpose()?;
        Ok(Self { when, times, replies })
    }

    fn fits(&self, asked: &Asked) -> bool {
        self.when.iter().all(|(name, word)| {
            let word = word.as_str().unwrap_or_default();
            match name.as_str() {
                "user" => asked.user.iter().any(|text| text.contains(word)),
                "result" => asked.results.iter().any(|text| text.contains(word)),
                "last" => asked.last().contains(word),
                "system" => asked.system.contains(word),
                "any" => asked.all.contains(word),
                _ => asked.tools.iter().any(|tool| tool == word),
            }
        })
    }
}

impl Default for ModelReply {
    fn default() -> Self {
        Self {
            thinking: Vec::new(),
            text: Vec::new(),
            calls: Vec::new(),
            refusal: None,
            stop: None,
            usage: HashMap::new(),
            status: 200,
            error: String::new(),
            code: None,
            headers: Vec::new(),
            cut: None,
            clean: false,
            stall: None,
            malformed: None,
            failed: None,
            endless: false,
            wait: None,
            pause: None,
            capture: Vec::new(),
        }
    }
}

impl ModelReply {
    /// A text, in pieces.
    pub fn text(text: &str) -> Self {
        Self { text: pieces(text, 10), ..Self::default() }
    }

    /// A call of a tool, its arguments in pieces.
    pub fn call(name: &str, arguments: &Value) -> Self {
        Self::default().and_call(name, &arguments.to_string())
    }

    /// The same with one more call, whose arguments are sent as they are.
    #[must_use]
    pub fn and_call(mut self, name: &str, arguments: &str) -> Self {
        self.calls.push(Call { id: None, name: name.to_owned(), arguments: parts(arguments, 3) });
        self
    }

    /// A refusal by the service, with this status.
    pub fn status(status: u16, error: &str) -> Self {
        Self { status, error: error.to_owned(), ..Self::default() }
    }

    /// Reads the JSON form.
    pub fn of(value: &Value) -> Result<Self> {
        let mut reply = Self::default();
        let members = value.as_object().with_context(|| format!("a reply is an object, not {value}"))?;
        for (name, value) in members {
            reply.set(name, value).with_context(|| format!("`{name}` of a reply"))?;
        }
        Ok(reply)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        let text = || value.as_str().map(str::to_owned).with_context(|| format!("{value} is no text"));
        let millis =
            || value.as_u64().map(Duration::from_millis).with_context(|| format!("{value} is no time"));
        match name {
            "thinking" => self.thinking = text_pieces(value)?,
            "text" => self.text = text_pieces(value)?,
            "calls" => {
                self.calls =
                    value.as_array().context("no list")?.iter().map(Call::of).collect::<Result<_>>()?;
            }
            "refusal" => self.refusal = Some(text()?),
            "stop" => self.stop = Some(text()?),
            "usage" => {
                let counts = value.as_object().context("no object")?;
                self.usage =
                    counts.iter().filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect();
            }
            "status" => self.status = value.as_u64().context("no number")?.try_into()?,
            "error" => self.error = text()?,
            "code" => self.code = Some(text()?),
            "retryAfter" => {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.headers.push(("Retry-After".to_owned(), value));
            }
            "headers" => {
                for (name, value) in value.as_object().context("no object")? {
                    self.headers.push((name.clone(), value.as_str().unwrap_or_default().to_owned()));
                }
            }
            "cut" => self.cut = Some(Place::of(value)?),
            "clean" => self.clean = value == true,
            "stall" => self.stall = Some(Place::of(value)?),
            "malformed" => self.malformed = Some(Place::of(value)?),
            "failed" => self.failed = Some(text()?),
            "endless" => self.endless = value == true,
            "wait" => self.wait = Some(millis()?),
            "pause" => self.pause = Some(millis()?),
            "capture" => {
                for (name, place) in value.as_object().context("no object")? {
                    let word =
                        |name: &str| place.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                    self.capture.push((format!("${{{name}}}"), word("after"), word("until")));
                }
            }
            _ => bail!("there is no such member"),
        }
        Ok(())
    }

    /// With what it captures in place.
    fn filled(mut self, asked: &Asked) -> Self {
        let last = asked.last();
        for (name, after, until) in std::mem::take(&mut self.capture) {
            let rest = last.split_once(after.as_str()).map_or("", |(_, rest)| rest);
            let found =
                if until.is_empty() { rest } else { rest.split(until.as_str()).next().unwrap_or_default() };
            let texts = self.thinking.iter_mut().chain(&mut self.text);
            for text in texts.chain(self.calls.iter_mut().flat_map(|call| &mut call.arguments)) {
                *text = text.replace(&name, found);
            }
        }
        self
    }
}

impl Call {
    fn of(value: &Value) -> Result<Self> {
        known(value, &["name", "arguments", "id", "pieces"])?;
        let word = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let arguments = match value.get("arguments") {
            None => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        // A part of the text that is captured must not be cut.
        let cuts = if arguments.contains("${") { 1 } else { 3 };
        let count = value.get("pieces").and_then(Value::as_u64).map_or(Ok(cuts), usize::try_from)?;
        let name = word("name").context("a call has no name")?;
        Ok(Self { id: word("id"), name, arguments: parts(&arguments, count.max(1)) })
    }
}

fn known(value: &Value, names: &[&str]) -> Result<()> {
    let members = value.as_object().with_context(|| format!("{value} is no object"))?;
    let stray = members.keys().find(|name| !names.contains(&name.as_str()));
    ensure!(stray.is_none(), "there is no member {stray:?}: there are {names:?}");
    Ok(())
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value]> {
    match value.get(name) {
        None => Ok(&[]),
        Some(list) => list.as_array().map(Vec::as_slice).with_context(|| format!("`{name}` is no list")),
    }
}

fn text_pieces(value: &Value) -> Result<Vec<String>> {
    match value {
        Value::String(text) if text.contains("${") => Ok(vec![text.clone()]),
        Value::String(text) => Ok(pieces(text, 10)),
        Value::Array(list) => {
            list.iter().map(|piece| Ok(piece.as_str().context("a piece is no text")?.to_owned())).collect()
        }
        _ => bail!("{value} is no text and no list of pieces"),
    }
}

/// The text in pieces of that many characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// The text in that many pieces.
fn parts(text: &str, count: usize) -> Vec<String> {
    pieces(text, text.chars().count().div_ceil(count))
}

/// A script, and how far it is.
#[derive(Debug)]
pub(super) struct Script {
    told: ModelScript,
    fitted: Vec<usize>,
    given: usize,
    number: u64,
}

/// A reply and how many came before it.
pub(super) struct Chosen {
    pub(super) reply: ModelReply,
    pub(super) number: u64,
}

impl Script {
    pub(super) fn new(script: ModelScript) -> Self {
        Self { fitted: vec![0; script.rules.len()], told: script, given: 0, number: 0 }
    }

    pub(super) fn then(&mut self, reply: ModelReply) {
        self.told.replies.push(reply);
    }

    pub(super) fn choose(&mut self, asked: &Asked) -> Chosen {
        self.number += 1;
        let reply =
            self.next(asked).unwrap_or_else(|| ModelReply::status(500, "the script has no reply for this"));
        Chosen { reply: reply.filled(asked), number: self.number }
    }

    fn next(&mut self, asked: &Asked) -> Option<ModelReply> {
        for (rule, fitted) in self.told.rules.iter().zip(&mut self.fitted) {
            if rule.times.is_none_or(|times| *fitted < times) && rule.fits(asked) {
                let reply = rule.replies.get(*fitted).or(rule.replies.last()).cloned();
                *fitted += 1;
                return reply;
            }
        }
        let reply = self.told.replies.get(self.given).cloned();
        self.given += 1;
        reply.or_else(|| self.told.otherwise.clone()).or_else(|| self.told.replies.last().cloned())
    }
}
