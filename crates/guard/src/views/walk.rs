//! Owns the way from a message's top to the value that is being read, a few levels deep. Knows the names that
//! matter in MCP results, not what is done with them.

use toolway_wire::lex::{Container, Run};
use toolway_wire::text::TextDecoder;

/// Levels at which names matter; below them only the depth is counted.
const LEVELS: usize = 8;
const KEY_BYTES: usize = 24;

/// One step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Result,
    Error,
    Params,
    Content,
    Contents,
    Messages,
    StructuredContent,
    Meta,
    IsError,
    Description,
    Type,
    Text,
    Data,
    Blob,
    MimeType,
    Uri,
    Name,
    Resource,
    Code,
    Message,
    Level,
    Logger,
    Jsonrpc,
    Id,
    Method,
    Other,
    Element,
}

impl Step {
    fn of(name: &[u8]) -> Self {
        match name {
            b"result" => Self::Result,
            b"error" => Self::Error,
            b"params" => Self::Params,
            b"content" => Self::Content,
            b"contents" => Self::Contents,
            b"messages" => Self::Messages,
            b"structuredContent" => Self::StructuredContent,
            b"_meta" => Self::Meta,
            b"isError" => Self::IsError,
            b"description" => Self::Description,
            b"type" => Self::Type,
            b"text" => Self::Text,
            b"data" => Self::Data,
            b"blob" => Self::Blob,
            b"mimeType" => Self::MimeType,
            b"uri" => Self::Uri,
            b"name" => Self::Name,
            b"resource" => Self::Resource,
            b"code" => Self::Code,
            b"message" => Self::Message,
            b"level" => Self::Level,
            b"logger" => Self::Logger,
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            _ => Self::Other,
        }
    }
}

/// Follows the lexer's events.
#[derive(Debug)]
pub(super) struct Walk {
    depth: usize,
    steps: [Step; LEVELS],
    key: Vec<u8>,
    key_at: u64,
    in_key: bool,
    decoder: TextDecoder,
}

impl Walk {
    pub(super) fn new() -> Self {
        Self {
            depth: 0,
            steps: [Step::Other; LEVELS],
            key: Vec::with_capacity(KEY_BYTES + 8),
            key_at: 0,
            in_key: false,
            decoder: TextDecoder::default(),
        }
    }

    /// The steps to the value that begins or ends now; empty below the levels that matter and for the top.
    #[inline]
    pub(super) fn path(&self) -> &[Step] {
        if self.depth > LEVELS { &[] } else { self.steps.get(..self.depth).unwrap_or_default() }
    }

    /// Where the name of the current member stands.
    pub(super) fn key_at(&self) -> u64 {
        self.key_at
    }

    #[inline]
    pub(super) fn in_key(&self) -> bool {
        self.in_key
    }

    /// After the value's own beginning was told.
    pub(super) fn open(&mut self, container: Container) {
        let step = if container == Container::Array { Step::Element } else { Step::Other };
        if let Some(slot) = self.steps.get_mut(self.depth) {
            *slot = step;
        }
        self.depth += 1;
    }

    /// Before the value's own end is told.
    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(super) fn key_begin(&mut self, at: u64) {
        self.in_key = true;
        if self.depth <= LEVELS {
            self.key.clear();
            self.key_at = at;
        }
    }

    pub(super) fn key_run(&mut self, run: Run<'_>) {
        if self.depth <= LEVELS && self.key.len() <= KEY_BYTES {
            let piece = run.bytes.get(..run.bytes.len().min(KEY_BYTES + 1)).unwrap_or_default();
            self.decoder.run(piece, &mut self.key);
        }
    }

    pub(super) fn key_escape(&mut self, unit: u16) {
        if self.depth <= LEVELS && self.key.len() <= KEY_BYTES {
            self.decoder.escape(unit, &mut self.key);
        }
    }

    pub(super) fn key_end(&mut self) {
        self.in_key = false;
        if self.depth <= LEVELS {
            self.decoder.end(&mut self.key);
            if let Some(slot) = self.depth.checked_sub(1).and_then(|level| self.steps.get_mut(level)) {
                *slot = Step::of(&self.key);
            }
        }
    }
}

/// How many steps lead to the content block that a path lies in.
pub(super) fn block_len(path: &[Step]) -> Option<usize> {
    use Step::{Content, Contents, Element, Messages, Result};
    match path {
        [Result, Content | Contents, Element, ..] => Some(3),
        [Result, Messages, Element, Content, Element, ..] => Some(5),
        [Result, Messages, Element, Content, ..] => Some(4),
        _ => None,
    }
}

/// The path leads into the resource of a content block.
pub(super) fn path_is_resource(path: &[Step]) -> bool {
    block_len(path).is_some_and(|length| path.get(length) == Some(&Step::Resource))
}
