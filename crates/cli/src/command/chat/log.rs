//! Owns what is kept of chats: one file of JSON lines for each, of its messages, without secrets. It knows no agent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolway_bridge::{Message, MessageBody, RawJson, Scrubber};
use toolway_secret::Secret;

use crate::compose::session_name;

/// Chats that are listed.
const LISTED: usize = 20;

/// The file of one chat. It is made with its first message.
#[derive(Debug)]
pub(super) struct Log {
    dir: Option<PathBuf>,
    cwd: String,
    pub(super) id: String,
    file: Option<File>,
    scrubber: Scrubber,
}

/// A chat that was kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) path: PathBuf,
    /// Seconds since it was written to last.
    pub(super) age: u64,
    /// What its user said first.
    pub(super) first: String,
}

impl Log {
    /// Of a new chat in that folder. Without a directory nothing is kept. What looks like a key is not, nor are `secrets`.
    pub(super) fn new(dir: Option<PathBuf>, cwd: &Path, secrets: &[Secret]) -> Self {
        let mut scrubber = Scrubber::new();
        for secret in secrets {
            scrubber.add(secret);
        }
        Self { dir, cwd: cwd.to_string_lossy().into_owned(), id: session_name(), file: None, scrubber }
    }

    /// Another chat, in the same place.
    pub(super) fn anew(&mut self) {
        self.id = session_name();
        self.file = None;
    }

    /// Goes on with a chat that was kept: its messages.
    pub(super) fn resume(&mut self, kept: &Kept) -> io::Result<Vec<Message>> {
        let messages = messages(&kept.path)?;
        self.file = Some(OpenOptions::new().append(true).open(&kept.path)?);
        self.id.clone_from(&kept.id);
        Ok(messages)
    }

    /// Keeps a message.
    pub(super) fn message(&mut self, message: &Message) -> io::Result<()> {
        self.line(&json!({"type": "message", "message": message}))
    }

    /// Keeps something that no model sees.
    pub(super) fn entry(&mut self, kind: &str, data: &RawJson) -> io::Result<()> {
        self.line(&json!({"type": "custom", "customType": kind, "data": data.tree()}))
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        if self.file.is_none() {
            let mut file = create(dir, &self.id)?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
            let now = u64::try_from(now).unwrap_or(u64::MAX);
            let head =
                json!({"type": "session", "version": 1, "id": self.id, "timestamp": now, "cwd": self.cwd});
            writeln!(file, "{head}")?;
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut value = value.clone();
        scrub(&mut value, &self.scrubber);
        let text = value.to_string();
        let clean = self.scrubber.scrub(&text);
        // What was taken out by a name beside it may have taken a quote along: then the texts alone are clean.
        let clean = if serde_json::from_str::<Value>(&clean).is_ok() { clean } else { text.as_str().into() };
        file.write_all(format!("{clean}\n").as_bytes())
    }

    /// Chats of this folder, the youngest first.
    pub(super) fn list(&self) -> Vec<Kept> {
        let Some(entries) = self.dir.as_ref().and_then(|dir| fs::read_dir(dir).ok()) else {
            return Vec::new();
        };
        let now = SystemTime::now();
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let is_log = path.extension().is_some_and(|ending| ending == "jsonl");
                Some((path.metadata().ok()?.modified().ok()?, path)).filter(|_| is_log)
            })
            .collect();
        files.sort_by(|one, other| other.cmp(one));
        let kept = files.into_iter().filter_map(|(at, path)| {
            let (id, first) = head(&path, &self.cwd)?;
            let age = now.duration_since(at).map_or(0, |age| age.as_secs());
            Some(Kept { id, path, age, first })
        });
        kept.take(LISTED).collect()
    }
}

/// Takes secrets out of every text.
fn scrub(value: &mut Value, scrubber: &Scrubber) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(clean) = scrubber.scrub(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| scrub(item, scrubber)),
        Value::Object(members) => members.values_mut().for_each(|member| scrub(member, scrubber)),
        _ => {}
    }
}

fn create(dir: &Path, id: &str) -> io::Result<File> {
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    folders.create(dir)?;
    options.open(dir.join(format!("{id}.jsonl")))
}

/// The id of a chat of that folder, and what its user said first.
fn head(path: &Path, cwd: &str) -> Option<(String, String)> {
    let mut lines = BufReader::new(File::open(path).ok()?).lines();
    let head: Value = serde_json::from_str(&lines.next()?.ok()?).ok()?;
    if head.get("cwd")?.as_str()? != cwd {
        return None;
    }
    let first = lines.map_while(Result::ok).find_map(|line| user_text(&read(&line)?));
    Some((head.get("id")?.as_str()?.to_owned(), first?))
}

/// The messages of a chat; a line that cannot be read is passed over.
fn messages(path: &Path) -> io::Result<Vec<Message>> {
    let lines = BufReader::new(File::open(path)?).lines();
    let mut messages = Vec::new();
    for line in lines {
        messages.extend(read(&line?));
    }
    Ok(messages)
}

fn read(line: &str) -> Option<Message> {
    #[derive(serde::Deserialize)]
    struct Line {
        r#type: String,
        message: Option<Message>,
    }
    let line: Line = serde_json::from_str(line).ok()?;
    line.message.filter(|_| line.r#type == "message")
}

fn user_text(message: &Message) -> Option<String> {
    let MessageBody::User { content } = message.body() else { return None };
    content.iter().find_map(|block| match block {
        toolway_bridge::Block::Text(text) => Some(text.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_kept_listed_and_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let place = Some(dir.path().join("chats"));
        let mut log = Log::new(place.clone(), Path::new("/w"), &[]);
        assert!(log.list().is_empty());
        let said = [Message::user("hello"), Message::assistant("yes")];
        for message in &said {
            log.message(message).unwrap();
        }
        log.entry("state", &RawJson::empty_object()).unwrap();
        let mut other = Log::new(place.clone(), Path::new("/w"), &[]);
        let list = other.list();
        assert_eq!((list.len(), list[0].id.as_str(), list[0].first.as_str()), (1, log.id.as_str(), "hello"));
        let bodies =
            |messages: &[Message]| messages.iter().map(|message| message.body().clone()).collect::<Vec<_>>();
        assert_eq!(bodies(&other.resume(&list[0]).unwrap()), bodies(&said));
        other.message(&Message::user("more")).unwrap();
        assert_eq!(messages(&list[0].path).unwrap().len(), 3);
        assert!(Log::new(place, Path::new("/elsewhere"), &[]).list().is_empty());
        Log::new(None, Path::new("/w"), &[]).message(&said[0]).unwrap();
    }

    #[test]
    fn no_secret_is_kept_and_no_message_is_lost_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let place = Some(dir.path().join("chats"));
        let mut log = Log::new(place.clone(), Path::new("/w"), &[Secret::new("open-sesame")]);
        for text in [
            "say open-sesame",
            "{\"password\": \"hunter2hunter2\"}",
            "x\"}],\"api_key\":\"k1234567890\"",
            "the end",
        ] {
            log.message(&Message::user(text)).unwrap();
        }
        let list = log.list();
        let kept = fs::read_to_string(&list[0].path).unwrap();
        assert_eq!(messages(&list[0].path).unwrap().len(), 4, "{kept}");
        assert!(kept.contains("the end") && kept.contains("say "), "{kept}");
        for secret in ["open-sesame", "hunter2hunter2", "k1234567890"] {
            assert!(!kept.contains(secret), "{secret}: {kept}");
        }
    }
}
