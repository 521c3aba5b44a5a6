//! Owns the watcher: lexer events in, envelopes out. It follows names for a few levels only; below them it counts.

use super::envelope::{Envelope, Field, IdField, Kind, Size};
use super::{MAX_BATCH, Verdict};
use crate::id::Id;
use crate::lex::{Container, Run, Sink};
use crate::text::{CharCounter, TextDecoder};

/// Levels below the message's own object at which names matter.
const WATCHED: usize = 7;
const KEY_BYTES: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Key {
    #[default]
    Other,
    Element,
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Uri,
    RequestId,
    ProtocolVersion,
    MetaVersion,
    Meta,
    IsError,
    ResultType,
    NextCursor,
    StructuredContent,
    Content,
    Messages,
    Type,
    Data,
}

impl Key {
    fn of(name: &[u8]) -> Self {
        match name {
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            b"name" => Self::Name,
            b"uri" => Self::Uri,
            b"requestId" => Self::RequestId,
            b"protocolVersion" => Self::ProtocolVersion,
            b"io.modelcontextprotocol/protocolVersion" => Self::MetaVersion,
            b"_meta" => Self::Meta,
            b"isError" => Self::IsError,
            b"resultType" => Self::ResultType,
            b"nextCursor" => Self::NextCursor,
            b"structuredContent" => Self::StructuredContent,
            b"content" => Self::Content,
            b"messages" => Self::Messages,
            b"type" => Self::Type,
            b"data" => Self::Data,
            _ => Self::Other,
        }
    }
}

/// What a scalar is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Slot {
    #[default]
    None,
    Version,
    Id,
    Method,
    Name,
    Uri,
    RequestId,
    ProtocolVersion,
    IsError,
    ResultType,
    NextCursor,
    BlockType,
    BlockData,
}

impl Slot {
    fn cap(self) -> usize {
        match self {
            Self::Id | Self::RequestId => 4096,
            Self::Uri => 8192,
            Self::BlockType | Self::Version => 16,
            Self::Method | Self::Name => 1024,
            _ => 128,
        }
    }
}

/// The content block that is open, as far as media goes.
#[derive(Debug, Default, Clone, Copy)]
struct Block {
    media: bool,
    chars: u64,
    padding: u64,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the bytes so far")]
#[derive(Debug, Default)]
pub(super) struct Watcher {
    /// Open containers, the message's own included.
    depth: u32,
    /// 1 within a batch, else 0.
    base: u32,
    path: [Key; WATCHED],
    in_key: bool,
    key: Vec<u8>,
    counter: CharCounter,
    slot: Slot,
    raw: Vec<u8>,
    decoded: Vec<u8>,
    decoder: TextDecoder,
    escaped: bool,
    overflow: bool,
    in_string: bool,
    /// A number or literal is open, and begins like `null`.
    atom: Option<bool>,
    block: Block,
    chars: u64,
    current: Envelope,
    members: Vec<Envelope>,
    strangers: usize,
    batch: bool,
    stranger: Option<&'static str>,
}

impl Watcher {
    pub(super) fn reset(&mut self) {
        self.depth = 0;
        self.base = 0;
        self.in_key = false;
        self.in_string = false;
        self.atom = None;
        self.slot = Slot::None;
        self.chars = 0;
        self.current.clear();
        if self.batch {
            self.members = Vec::new();
            self.strangers = 0;
            self.batch = false;
        }
        self.stranger = None;
        self.counter = CharCounter::default();
        self.raw.shrink_to(8192);
        self.decoded.shrink_to(8192);
    }

    pub(super) fn stranger(&self) -> Option<&'static str> {
        self.stranger
    }

    pub(super) fn current(&self) -> &Envelope {
        &self.current
    }

    pub(super) fn verdict(&mut self, lax: bool) -> Verdict<'_> {
        if let Some(reason) = self.stranger {
            return Verdict::NotRpc(reason);
        }
        if self.batch {
            if self.members.is_empty() {
                return Verdict::NotRpc("a batch without a message");
            }
            for member in &mut self.members {
                member.lax = lax;
            }
            return Verdict::Batch { members: &self.members, strangers: self.strangers };
        }
        self.current.lax = lax;
        if self.current.kind == Kind::Stranger {
            return Verdict::NotRpc("the members of a JSON-RPC 2.0 message are not there");
        }
        Verdict::Message(&self.current)
    }

    /// Containers open below the message's object, that object included; 0 outside of it.
    fn level(&self) -> usize {
        (self.depth - self.base.min(self.depth)) as usize
    }

    /// The names on the way to the value that begins now.
    fn path(&self) -> &[Key] {
        self.path.get(..self.level()).unwrap_or_default()
    }

    fn is_block(&self) -> bool {
        matches!(
            self.path(),
            [Key::Result, Key::Content, Key::Element]
                | [Key::Result, Key::Messages, Key::Element, Key::Content]
                | [Key::Result, Key::Messages, Key::Element, Key::Content, Key::Element]
        )
    }

    /// The container that holds the value at hand is a content block.
    fn within_block(&self) -> bool {
        matches!(
            self.path(),
            [Key::Result, Key::Content, Key::Element, _]
                | [Key::Result, Key::Messages, Key::Element, Key::Content, _]
                | [Key::Result, Key::Messages, Key::Element, Key::Content, Key::Element, _]
        )
    }

    fn slot_of(&self) -> Slot {
        match self.path() {
            [Key::Jsonrpc] => Slot::Version,
            [Key::Id] => Slot::Id,
            [Key::Method] => Slot::Method,
            [Key::Params, Key::Name] => Slot::Name,
            [Key::Params, Key::Uri] => Slot::Uri,
            [Key::Params, Key::RequestId] => Slot::RequestId,
            [Key::Params | Key::Result, Key::ProtocolVersion]
            | [Key::Params, Key::Meta, Key::MetaVersion] => Slot::ProtocolVersion,
            [Key::Result, Key::IsError] => Slot::IsError,
            [Key::Result, Key::ResultType] => Slot::ResultType,
            [Key::Result, Key::NextCursor] => Slot::NextCursor,
            [.., Key::Type] if self.within_block() => Slot::BlockType,
            [.., Key::Data] if self.within_block() => Slot::BlockData,
            _ => Slot::None,
        }
    }

    /// A value begins; scalars of interest are caught from here on.
    fn begin_value(&mut self, at: u64, container: bool) {
        let level = self.level();
        if level == 0 {
            if !container {
                self.strange_member();
            }
            return;
        }
        if level > WATCHED {
            return;
        }
        if level == 1 {
            self.begin_top(at, container);
        }
        if level == 2 && self.path() == [Key::Result, Key::StructuredContent] {
            self.current.structured = true;
        }
        self.slot = if container { Slot::None } else { self.slot_of() };
        if container {
            self.container_in_slot();
        }
        if self.slot != Slot::None {
            self.raw.clear();
            self.decoded.clear();
            self.escaped = false;
            self.overflow = false;
            self.decoder = TextDecoder::default();
        }
    }

    fn begin_top(&mut self, at: u64, container: bool) {
        let span = at..at;
        match self.path() {
            [Key::Result] => {
                self.current.result = span;
                self.current.has_result = true;
            }
            [Key::Error] => {
                self.current.error = span;
                self.current.has_error = true;
            }
            [Key::Params] => self.current.params = span,
            [Key::Method] if container => self.current.wrong_method = true,
            _ => {}
        }
    }

    fn container_in_slot(&mut self) {
        match self.path() {
            [Key::Id] => self.current.id = IdField::WrongType,
            [Key::Result, Key::NextCursor] => self.current.next_cursor = true,
            _ => {}
        }
    }

    /// A value at level 1 has ended: the spans that are wanted are closed.
    fn end_value(&mut self, end: u64, null: bool) {
        let level = self.level();
        if level == 1 {
            match self.path() {
                [Key::Result] => {
                    self.current.result.end = end;
                    self.current.null_result = null;
                }
                [Key::Error] => {
                    self.current.error.end = end;
                    if null {
                        self.current.has_error = false;
                    }
                }
                [Key::Params] => self.current.params.end = end,
                _ => {}
            }
        }
    }

    fn strange_member(&mut self) {
        if self.base == 0 {
            self.stranger = Some("a message is an object");
        } else if self.members.is_empty() && self.strangers == 0 {
            self.stranger = Some("the members of a batch are objects");
        } else {
            self.strangers += 1;
        }
    }

    fn keep(&mut self) -> Option<Field> {
        let start = u32::try_from(self.current.fields.len()).ok()?;
        let text = String::from_utf8_lossy(&self.decoded);
        self.current.fields.extend_from_slice(text.as_bytes());
        let end = u32::try_from(self.current.fields.len()).ok()?;
        Some(Field { start, end })
    }

    /// The scalar in the slot is complete.
    fn fill_slot(&mut self) {
        let slot = std::mem::take(&mut self.slot);
        let string = self.in_string;
        match slot {
            Slot::Id | Slot::RequestId => {
                let id = self.caught_id();
                match (slot, id) {
                    (Slot::Id, id) => self.current.id = id,
                    (_, IdField::Value(id)) => self.current.request_id = Some(id),
                    _ => {}
                }
            }
            Slot::Version => self.current.version_ok = string && self.decoded == b"2.0",
            Slot::Method if string => self.current.method = self.keep(),
            Slot::Method => self.current.wrong_method = true,
            Slot::Name if string => self.current.name = self.keep(),
            Slot::Uri if string => self.current.uri = self.keep(),
            Slot::ProtocolVersion if string => self.current.protocol_version = self.keep(),
            Slot::ResultType if string => self.current.result_type = self.keep(),
            Slot::IsError => match (string, self.raw.as_slice()) {
                (false, b"true") => self.current.is_error = Some(true),
                (false, b"false") => self.current.is_error = Some(false),
                _ => {}
            },
            Slot::NextCursor => self.current.next_cursor = string || self.raw != b"null",
            Slot::BlockType => {
                self.block.media = string && matches!(self.decoded.as_slice(), b"image" | b"audio");
            }
            _ => {}
        }
    }

    fn caught_id(&mut self) -> IdField {
        if self.overflow {
            return IdField::TooLong;
        }
        if self.in_string {
            let mut quoted = Vec::with_capacity(self.raw.len() + 2);
            quoted.push(b'"');
            quoted.extend_from_slice(&self.raw);
            quoted.push(b'"');
            return IdField::Value(Id::string(&quoted, self.escaped.then(|| self.decoded.clone())));
        }
        match self.raw.first() {
            Some(b'n') => IdField::Value(Id::null()),
            Some(b'-' | b'0'..=b'9') => IdField::Value(Id::number(&self.raw)),
            _ => IdField::WrongType,
        }
    }

    fn catch(&mut self, bytes: &[u8]) {
        let room = self.slot.cap().saturating_sub(self.raw.len());
        self.overflow |= bytes.len() > room;
        let piece = bytes.get(..bytes.len().min(room)).unwrap_or_default();
        self.raw.extend_from_slice(piece);
        if self.in_string {
            self.decoder.run(piece, &mut self.decoded);
        }
    }

    fn begin_message(&mut self, at: u64) {
        self.current.clear();
        self.current.span = at..at;
        self.chars = 0;
    }

    fn end_message(&mut self, end: u64) {
        self.current.span.end = end;
        self.current.size.chars = self.chars;
        self.current.judge();
        if self.base == 0 {
            return;
        }
        if self.current.kind == Kind::Stranger {
            self.strangers += 1;
        } else if self.members.len() >= MAX_BATCH {
            self.stranger = Some("a batch of more than 10,000 messages");
        } else {
            self.members.push(self.current.clone());
        }
    }
}

impl Sink for Watcher {
    fn open(&mut self, container: Container, at: u64) {
        let level = self.level();
        if self.depth == 0 && container == Container::Array {
            self.base = 1;
            self.batch = true;
            self.depth = 1;
            return;
        }
        if level == 0 {
            if container == Container::Array {
                self.strange_member();
            }
            self.begin_message(at);
        } else {
            self.begin_value(at, true);
            if level < WATCHED && self.is_block() {
                self.block = Block::default();
            }
        }
        self.chars += 1;
        self.depth += 1;
        let level = self.level();
        if let Some(key) = level.checked_sub(1).and_then(|inner| self.path.get_mut(inner)) {
            *key = if container == Container::Array { Key::Element } else { Key::Other };
        }
    }

    fn close(&mut self, container: Container, end: u64) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth < self.base {
            return;
        }
        self.chars += 1;
        let level = self.level();
        if level == 0 {
            if container == Container::Object {
                self.end_message(end);
            }
            return;
        }
        if level < WATCHED && self.is_block() && self.block.media {
            let Size { media_chars, media_bytes, .. } = &mut self.current.size;
            *media_chars += self.block.chars;
            *media_bytes += (self.block.chars * 3 / 4).saturating_sub(self.block.padding.min(2));
            self.block = Block::default();
        }
        self.end_value(end, false);
    }

    fn comma(&mut self) {
        if self.depth > self.base {
            self.chars += 1;
        }
    }

    #[inline]
    fn string_begin(&mut self, key: bool, at: u64) {
        self.in_key = key;
        if key {
            self.key.clear();
        } else {
            self.in_string = true;
            self.begin_value(at, false);
        }
    }

    #[inline]
    fn run(&mut self, run: Run<'_>) {
        self.counter.run(run);
        if self.in_key {
            if self.level() <= WATCHED && self.key.len() < KEY_BYTES {
                let room = KEY_BYTES - self.key.len();
                self.key.extend_from_slice(run.bytes.get(..run.bytes.len().min(room)).unwrap_or_default());
            }
        } else if self.slot == Slot::BlockData {
            self.block.padding += memchr::memchr_iter(b'=', run.bytes).count() as u64;
        } else if self.slot != Slot::None {
            self.catch(run.bytes);
        }
    }

    fn escape(&mut self, unit: u16, raw: &[u8]) {
        self.counter.escape(unit);
        if self.in_key {
            if self.key.len() < KEY_BYTES {
                self.decoder.escape(unit, &mut self.key);
            }
        } else if self.slot != Slot::None && self.slot != Slot::BlockData {
            self.escaped = true;
            let room = self.slot.cap().saturating_sub(self.raw.len());
            self.overflow |= raw.len() > room;
            if raw.len() <= room {
                self.raw.extend_from_slice(raw);
                self.decoder.escape(unit, &mut self.decoded);
            }
        }
    }

    #[inline]
    fn string_end(&mut self, end: u64) {
        let text = self.counter.take();
        self.chars += text + 2;
        if self.in_key {
            self.in_key = false;
            self.chars += 1;
            let level = self.level();
            if let Some(slot) = level.checked_sub(1).and_then(|inner| self.path.get_mut(inner)) {
                *slot = Key::of(&self.key);
            }
            return;
        }
        if self.slot == Slot::BlockData {
            self.block.chars = text;
            self.slot = Slot::None;
        } else if self.slot != Slot::None {
            self.decoder.end(&mut self.decoded);
            self.fill_slot();
        }
        self.in_string = false;
        self.end_value(end, false);
    }

    fn atom(&mut self, bytes: &[u8], at: u64) {
        if self.atom.is_none() {
            self.begin_value(at, false);
            self.atom = Some(bytes.first() == Some(&b'n'));
        }
        if self.slot != Slot::None {
            self.catch(bytes);
        }
        self.chars += bytes.len() as u64;
    }

    fn atom_end(&mut self, end: u64) {
        if self.slot != Slot::None {
            self.fill_slot();
        }
        let null = self.atom.take().unwrap_or(false);
        self.end_value(end, null);
    }
}
