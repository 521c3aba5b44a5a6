//! Server-sent events: an incremental parser over bytes. It owns the line rules and the fields of an event;
//! it must not know what the data means, nor where the bytes come from.
//!
//! Implements "Parsing an event stream" of the WHATWG HTML standard, section 9.2.6. The data of an event is
//! handed out in pieces as it arrives and never held, so an event of any size costs no memory. Any split of
//! the input gives the same data, the same breaks and the same ends.

use memchr::{memchr_iter, memchr2};

/// Longest `id` that is kept, in bytes; a longer one counts as not sent.
pub const MAX_ID_BYTES: usize = 4096;
/// Longest `event` that is kept, in bytes; a longer one is cut there.
pub const MAX_TYPE_BYTES: usize = 256;
/// Longest field name that has a meaning is 5 bytes; one more tells a longer name apart.
const NAME_BYTES: usize = 6;

/// What the decoder found in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SsePiece<'a> {
    /// Bytes of the current event's data, a part of the input. Never empty.
    Data(&'a [u8]),
    /// A line feed between two `data` lines of one event: it belongs to the data.
    DataBreak,
    /// A blank line: the event is complete. Ask the decoder for its type, id and delay, then go on.
    End {
        /// Data was handed out for it. Without any (no `data` line, or one empty one) the event can be no
        /// message, but its id and delay count.
        data: bool,
    },
}

/// Incremental parser of one event stream.
///
/// Call [`SseDecoder::next`] until it gives `None`, then feed more input. When the input ends in the middle
/// of an event, that event never happened: drop the decoder, or [`SseDecoder::reset`] it for a new stream.
#[derive(Debug, Clone)]
pub struct SseDecoder {
    state: State,
    field: Field,
    name: [u8; NAME_BYTES],
    name_len: usize,
    after_cr: bool,
    data: DataLines,
    event_type: Vec<u8>,
    type_done: Vec<u8>,
    id_line: Vec<u8>,
    id_bad: bool,
    id_next: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    retry_line: Option<u64>,
    retry_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes of a byte order mark were seen at the very beginning.
    Mark(usize),
    LineStart,
    Name,
    /// After the colon: one space is skipped.
    Colon,
    Value,
    /// A comment or an unknown field, up to the end of the line.
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    Other,
}

/// What the `data` lines of the unfinished event have given so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataLines {
    None,
    Empty,
    Bytes,
}

const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl SseDecoder {
    /// A decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self {
            state: State::Mark(0),
            field: Field::Other,
            name: [0; NAME_BYTES],
            name_len: 0,
            after_cr: false,
            data: DataLines::None,
            event_type: Vec::new(),
            type_done: Vec::new(),
            id_line: Vec::new(),
            id_bad: false,
            id_next: None,
            id: None,
            retry_line: None,
            retry_ms: None,
        }
    }

    /// A new stream begins: an unfinished event is forgotten, the last id and the delay are kept.
    pub fn reset(&mut self) {
        let (id, retry_ms) = (self.id.take(), self.retry_ms);
        *self = Self { id_next: id.clone(), id, retry_ms, ..Self::new() };
    }

    /// The next piece of `input`, which is cut short by what was consumed; `None` when all of it was.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Option<SsePiece<'a>> {
        while let Some((&byte, rest)) = input.split_first() {
            if self.after_cr {
                self.after_cr = false;
                if byte == b'\n' {
                    *input = rest;
                    continue;
                }
            }
            let piece = match self.state {
                State::Mark(seen) => {
                    self.mark(seen, input);
                    None
                }
                State::LineStart => self.line_start(byte, input),
                State::Name => self.name(byte, input),
                State::Colon => {
                    if byte == b' ' {
                        *input = rest;
                    }
                    self.state = State::Value;
                    None
                }
                State::Value => self.value(input),
                State::Skip => {
                    self.skip_line(input);
                    None
                }
            };
            if piece.is_some() {
                return piece;
            }
        }
        None
    }

    /// Type of the event that ended last: `message` when it named none.
    pub fn event_type(&self) -> &[u8] {
        if self.type_done.is_empty() { b"message" } else { &self.type_done }
    }

    /// Type that the unfinished event has named so far: empty when none. A later line may still change it.
    pub fn pending_type(&self) -> &[u8] {
        &self.event_type
    }

    /// The last event id of the stream, as of the last complete event. Empty ids count as none.
    pub fn last_id(&self) -> Option<&[u8]> {
        self.id.as_deref().filter(|id| !id.is_empty())
    }

    /// Delay before a reconnection that the stream asked for, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// True between the first byte of an event's data and its end: a stream that stops here has lost it.
    pub fn in_data(&self) -> bool {
        self.data == DataLines::Bytes
    }

    fn mark(&mut self, seen: usize, input: &mut &[u8]) {
        if input[0] == MARK[seen] {
            *input = &input[1..];
            self.state = if seen == 2 { State::LineStart } else { State::Mark(seen + 1) };
        } else if seen == 0 {
            self.state = State::LineStart;
        } else {
            // No byte order mark after all: its first bytes begin a field name that nobody knows.
            self.name_len = NAME_BYTES;
            self.state = State::Name;
        }
    }

    fn line_start<'a>(&mut self, byte: u8, input: &mut &'a [u8]) -> Option<SsePiece<'a>> {
        match byte {
            b'\r' | b'\n' => {
                *input = &input[1..];
                self.after_cr = byte == b'\r';
                Some(self.dispatch())
            }
            b':' => {
                self.state = State::Skip;
                None
            }
            _ => {
                self.name_len = 0;
                self.state = State::Name;
                None
            }
        }
    }

    fn name<'a>(&mut self, byte: u8, input: &mut &'a [u8]) -> Option<SsePiece<'a>> {
        *input = &input[1..];
        match byte {
            b':' => {
                self.state = State::Colon;
                self.begin_field()
            }
            b'\r' | b'\n' => {
                let piece = self.begin_field();
                self.end_line(byte);
                piece
            }
            _ => {
                if self.name_len < NAME_BYTES {
                    self.name[self.name_len] = byte;
                    self.name_len += 1;
                }
                None
            }
        }
    }

    fn begin_field<'a>(&mut self) -> Option<SsePiece<'a>> {
        self.field = match &self.name[..self.name_len] {
            b"data" => Field::Data,
            b"event" => Field::Event,
            b"id" => Field::Id,
            b"retry" => Field::Retry,
            _ => Field::Other,
        };
        match self.field {
            Field::Data if self.data != DataLines::None => {
                self.data = DataLines::Bytes;
                return Some(SsePiece::DataBreak);
            }
            Field::Data => self.data = DataLines::Empty,
            Field::Event => self.event_type.clear(),
            Field::Id => {
                self.id_line.clear();
                self.id_bad = false;
            }
            Field::Retry => self.retry_line = None,
            Field::Other => {}
        }
        None
    }

    fn value<'a>(&mut self, input: &mut &'a [u8]) -> Option<SsePiece<'a>> {
        let end = memchr2(b'\r', b'\n', input);
        let (part, rest) = input.split_at(end.unwrap_or(input.len()));
        *input = rest;
        if part.is_empty() {
            if let Some((&byte, rest)) = input.split_first() {
                *input = rest;
                self.end_line(byte);
            }
            return None;
        }
        match self.field {
            Field::Data => {
                self.data = DataLines::Bytes;
                return Some(SsePiece::Data(part));
            }
            Field::Event => {
                let room = MAX_TYPE_BYTES.saturating_sub(self.event_type.len()).min(part.len());
                self.event_type.extend_from_slice(&part[..room]);
            }
            Field::Id => {
                self.id_bad |=
                    part.contains(&0) || self.id_line.len().saturating_add(part.len()) > MAX_ID_BYTES;
                if !self.id_bad {
                    self.id_line.extend_from_slice(part);
                }
            }
            Field::Retry => self.retry_digits(part),
            Field::Other => self.state = State::Skip,
        }
        None
    }

    /// Keeps the digits of `retry` as a number; anything else makes the field void.
    fn retry_digits(&mut self, part: &[u8]) {
        const VOID: u64 = u64::MAX;
        for &byte in part {
            let so_far = self.retry_line.unwrap_or(0);
            self.retry_line = Some(match byte {
                b'0'..=b'9' if so_far != VOID => {
                    so_far.saturating_mul(10).saturating_add(u64::from(byte - b'0')).min(VOID - 1)
                }
                _ => VOID,
            });
        }
    }

    fn skip_line(&mut self, input: &mut &[u8]) {
        match memchr2(b'\r', b'\n', input) {
            Some(end) => {
                let byte = input[end];
                *input = &input[end + 1..];
                self.field = Field::Other;
                self.end_line(byte);
            }
            None => *input = &[],
        }
    }

    fn end_line(&mut self, byte: u8) {
        self.after_cr = byte == b'\r';
        self.state = State::LineStart;
        match self.field {
            Field::Id if !self.id_bad => self.id_next = Some(std::mem::take(&mut self.id_line)),
            Field::Retry => {
                if let Some(ms) = self.retry_line.take().filter(|&ms| ms != u64::MAX) {
                    self.retry_ms = Some(ms);
                }
            }
            _ => {}
        }
        self.field = Field::Other;
    }

    fn dispatch<'a>(&mut self) -> SsePiece<'a> {
        if self.id_next != self.id {
            self.id.clone_from(&self.id_next);
        }
        self.type_done.clear();
        self.type_done.append(&mut self.event_type);
        let data = std::mem::replace(&mut self.data, DataLines::None);
        SsePiece::End { data: data == DataLines::Bytes }
    }
}

/// Writes `message` as one event to `out`: one `data` line for each line of it, then a blank line.
///
/// For servers and tests. Only line feeds end a line of `message`; a carriage return in it would end one for
/// the reader, so JSON with raw carriage returns must be written compactly first.
pub fn write_event(out: &mut Vec<u8>, event_type: Option<&str>, id: Option<&str>, message: &[u8]) {
    for (name, value) in [("event", event_type), ("id", id)] {
        if let Some(value) = value {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.push(b'\n');
        }
    }
    let mut from = 0;
    for end in memchr_iter(b'\n', message).chain([message.len()]) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&message[from..end]);
        out.push(b'\n');
        from = end + 1;
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
