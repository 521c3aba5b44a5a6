//! Owns the guard: saves a message that is too large and makes the one that goes to the client instead. Does not
//! know transports, nor when it is called.

mod commit;
mod json;
mod stage;

use std::ops::Range;
use std::sync::Arc;

use toolway_wire::Envelope;

use crate::config::GuardConfig;
use crate::directory::{Directory, Temporary};
use crate::lost;
use crate::policy::{Action, CallInfo, Shape};
use crate::preview::Outline;
use crate::reshape::{Facts, Material, Parts, contents, items, reshape};
use crate::saved::Store;
use crate::source::Source;
use crate::spill::{Body, Intake};
use crate::views::{TextView, Viewed, view};
use commit::{About, Naming};
use json::Json;
use stage::Staged;

/// Text that is kept of each end for the preview, besides what the preview itself needs, in bytes.
const KEEP: usize = 64 << 10;
/// A file this large is hashed on a thread of its own, in bytes.
const HASH_BESIDE: u64 = 8 << 20;
/// Bytes of other members of a result that go on.
const MEMBERS: u64 = 1024;

/// The size policy with its store. One for a process; it can be shared between threads.
#[derive(Debug)]
pub struct Guard {
    config: GuardConfig,
    store: Store,
}

impl Guard {
    /// Does no I/O.
    pub fn new(config: GuardConfig) -> Self {
        let store = Store::new(config.store.clone());
        Self { config, store }
    }

    /// The settings.
    pub fn config(&self) -> &GuardConfig {
        &self.config
    }

    /// The saved results.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// An intake for one stream of messages.
    pub fn intake(&self) -> Intake {
        Intake::new(Arc::clone(&self.store.directory), self.config.memory, self.config.max_message_bytes)
    }

    /// Decides for a message, or for one member of a batch; see [`crate::action`].
    pub fn action(&self, message: &Envelope, call: Option<&CallInfo>) -> Action {
        crate::policy::action(&self.config, message, call)
    }

    /// Saves a whole message and gives the one that goes to the client in its place, without a line ending. Never
    /// fails: what cannot be saved is answered with a preview that says so. `None`: it passes as it is after all
    /// (the result of a task that is no tool's).
    pub fn replace(
        &self,
        message: &Envelope,
        call: Option<&CallInfo>,
        shape: Shape,
        limit: u64,
        body: &mut Body<'_>,
    ) -> Option<Vec<u8>> {
        if shape == Shape::TaskTool && !carries_tool_result(body, message) {
            return None;
        }
        let len = body.len();
        let body = std::mem::replace(body, Body::TooLarge { len });
        let staged = stage::whole(
            body,
            &self.store.directory,
            self.config.redaction.as_deref(),
            self.config.memory as u64,
        );
        Some(self.finish(Rewriting { message, call, shape, limit, bytes: len }, staged))
    }

    /// As [`Guard::replace`] for one member of a batch; `body` is the whole batch, which stays.
    pub fn replace_member(
        &self,
        message: &Envelope,
        call: Option<&CallInfo>,
        shape: Shape,
        limit: u64,
        body: &Body<'_>,
    ) -> Option<Vec<u8>> {
        if shape == Shape::TaskTool && !carries_tool_result(body, message) {
            return None;
        }
        let span = message.span();
        let redactor = self.config.redaction.as_deref();
        let staged = match whole_source(body) {
            Some(source) => stage::part(
                source.part(span.clone()),
                &self.store.directory,
                redactor,
                self.config.memory as u64,
            ),
            None => match body {
                Body::Lost { reason, .. } => {
                    Staged::Lost { head: Vec::new(), tail: Vec::new(), reason: reason.clone() }
                }
                _ => Staged::Lost { head: Vec::new(), tail: Vec::new(), reason: "too large".to_owned() },
            },
        };
        Some(self.finish(Rewriting { message, call, shape, limit, bytes: span.end - span.start }, staged))
    }

    fn finish(&self, rewriting: Rewriting<'_>, staged: Staged<'_>) -> Vec<u8> {
        let Rewriting { message, call, shape, limit, .. } = rewriting;
        let directory = if matches!(staged, Staged::File(_)) { Some(&*self.store.directory) } else { None };
        let keep = self.config.preview_chars.saturating_mul(4).saturating_add(KEEP);
        let source = staged.source();
        let (sha256, (mut viewed, carried)) = beside_hash(&staged, || {
            let viewed = view(source, shape, directory, source.len(), keep).unwrap_or_default();
            let carried = carried(&viewed, source, shape, directory);
            (viewed, carried)
        });
        let Carried { outline, beside, pretty, json_text } = carried;
        if let Staged::Lost { tail, .. } = &staged {
            viewed.ends.tail = lost::text_of_tail(tail);
            viewed.ends.bytes = rewriting.bytes.max(viewed.ends.bytes + 1);
        }
        let naming = Naming::new(&self.store, &self.config.path_map, message, call);
        let block_files = naming.block_files(&viewed);
        let items = match shape {
            Shape::Tool | Shape::TaskTool => {
                items(&viewed.blocks, &block_files, source, self.config.media_limit, limit)
            }
            Shape::Resource => contents(&viewed.blocks, source, limit),
            _ => Vec::new(),
        };
        let parts = parts(source, &viewed, limit);
        let first_uri = viewed.blocks.first().and_then(|block| block.uri.clone());
        let lines = viewed.ends.lines();
        let ends = viewed.ends.clone();
        let about = About { message, call, shape, redacted: self.config.redaction.is_some(), json_text };
        let (saved, bytes) = match staged {
            Staged::Memory(_, reason) | Staged::Lost { reason, .. } => (Err(reason), rewriting.bytes),
            Staged::File(file) => {
                let bytes = file.len;
                let saved = sha256.map_err(|error| error.to_string()).and_then(|sha256| {
                    naming
                        .commit(file, &sha256, &mut viewed, pretty, about)
                        .map_err(|error| error.to_string())
                });
                (saved, bytes)
            }
        };
        reshape(&Facts {
            envelope: message,
            call,
            shape,
            limit,
            media_limit: self.config.media_limit,
            preview_chars: self.config.preview_chars,
            read_back: self.config.read_back,
            saved_command: &self.config.saved_command,
            saved,
            bytes,
            lines,
            material: Material { ends, outline, beside },
            items,
            first_uri,
            parts,
            had_structured_content: message.has_structured_content(),
        })
    }
}

/// The SHA-256 of a staged file, and what `work` gives; for a large one both are done at the same time.
fn beside_hash<T>(staged: &Staged<'_>, work: impl FnOnce() -> T) -> (std::io::Result<[u8; 32]>, T) {
    let Staged::File(file) = staged else { return (Ok([0; 32]), work()) };
    if let Some(sha256) = file.sha256 {
        return (Ok(sha256), work());
    }
    let hash = || stage::hash(file.source());
    if file.len < HASH_BESIDE {
        return (hash(), work());
    }
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, hash) {
        Ok(hashing) => {
            let done = work();
            (hashing.join().unwrap_or_else(|_| Err(std::io::Error::other("hashing broke off"))), done)
        }
        Err(_) => (hash(), work()),
    })
}

/// What is rewritten.
#[derive(Debug, Clone, Copy)]
struct Rewriting<'a> {
    message: &'a Envelope,
    call: Option<&'a CallInfo>,
    shape: Shape,
    limit: u64,
    bytes: u64,
}

/// JSON that a message carries, read.
#[derive(Debug, Default)]
struct Carried {
    outline: Option<Outline>,
    beside: Option<Outline>,
    pretty: Option<(Temporary, u64)>,
    json_text: bool,
}

/// Reads the JSON that a message carries: its one text where that is JSON, else `structuredContent` and its like,
/// else, where there is nothing else to show, the whole result.
fn carried(viewed: &Viewed, source: Source<'_>, shape: Shape, directory: Option<&Directory>) -> Carried {
    if let Some(part) = viewed.single_text().filter(|_| begins_like_json(&viewed.ends.head)) {
        let text = match &viewed.text {
            TextView::File(temporary) => Some(Source::file(&temporary.file, viewed.ends.bytes)),
            TextView::Memory(bytes) => Some(Source::memory(bytes)),
            TextView::None | TextView::Missing(_) => None,
        };
        let one_line = directory.filter(|_| part.breaks == 0);
        let json = text.and_then(|text| json::read(text.part(part.range.clone()), one_line));
        if let Some(Json { outline, pretty }) = json {
            return Carried { outline: Some(outline), pretty, json_text: true, beside: None };
        }
    }
    let nothing_else = viewed.block_count == 0 || shape == Shape::UnknownResult;
    let span =
        viewed.spans.structured.clone().or_else(|| viewed.spans.result.clone().filter(|_| nothing_else));
    let Some(Json { outline, pretty }) = span.and_then(|span| json::read(source.part(span), directory))
    else {
        return Carried::default();
    };
    if viewed.text_blocks == 0 {
        Carried { outline: Some(outline), pretty, ..Carried::default() }
    } else {
        Carried { beside: Some(outline), pretty, ..Carried::default() }
    }
}

fn begins_like_json(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// The small parts that go on byte for byte.
fn parts(source: Source<'_>, viewed: &Viewed, limit: u64) -> Parts {
    let spans = &viewed.spans;
    let read = |span: &Option<Range<u64>>, most: u64| {
        let span = span.clone().filter(|span| span.end - span.start <= most)?;
        source.bytes(span).ok()
    };
    let mut room = MEMBERS.min(limit / 10);
    let mut members = Vec::new();
    for span in &spans.members {
        let length = span.end - span.start;
        if length <= room {
            room -= length;
            members.extend(source.bytes(span.clone()));
        }
    }
    Parts {
        meta: read(&spans.meta, limit).filter(|meta| meta.first() == Some(&b'{')),
        members,
        description: read(&spans.description, limit / 4),
        code: read(&spans.code, 100),
        data: read(&spans.structured, limit / 4),
        level: read(&spans.level, 100),
        logger: read(&spans.logger, limit / 4),
    }
}

/// The result has an array of content blocks.
fn carries_tool_result(body: &Body<'_>, message: &Envelope) -> bool {
    // What is lost cannot pass as it is.
    let Some(source) = whole_source(body) else { return true };
    let part = source.part(message.span());
    view(part, Shape::Tool, None, 0, 0).is_ok_and(|viewed| viewed.spans.has_content)
}

/// The message as it can be read as a whole, if it can.
fn whole_source<'a>(body: &'a Body<'_>) -> Option<Source<'a>> {
    match body {
        Body::Memory(bytes) => Some(Source::memory(bytes)),
        Body::File(file) => Some(file.source()),
        Body::Lost { .. } | Body::TooLarge { .. } => None,
    }
}

#[cfg(test)]
mod tests;
