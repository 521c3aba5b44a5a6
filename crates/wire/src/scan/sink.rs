//! Owns the watcher: lexer events in, envelopes out. It follows names only where they matter; elsewhere it counts.

use super::envelope::{Envelope, IdField, Kind, Size};
use super::facts::Block;
use super::node::Node;
use super::scalar::{Catch, Scalar, cut};
use super::{MAX_BATCH, Verdict};
use crate::lex::{Container, Run, Sink};
use crate::text::{CharCounter, TextDecoder};

const KEY_BYTES: usize = 48;
/// Containers that can be open at places that matter, with room to spare.
const LEVELS: usize = 8;
/// After so many members that are no messages, and none that is one, it is no batch.
const STRANGERS_FIRST: usize = 64;
const NO_MEMBER: &str = "a batch without a message";
const TOO_MANY: &str = "a batch of more than 10,000 messages";

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one place, asked on the hot path")]
pub(super) struct Watcher {
    /// The places of the open containers, outermost first, as far as they matter.
    places: [Node; LEVELS],
    level: usize,
    /// Containers open below the last place that matters.
    skipped: u64,
    /// The place of the value that comes next or is open.
    node: Node,
    in_key: bool,
    key: [u8; KEY_BYTES],
    key_len: usize,
    key_decoder: TextDecoder,
    catch: Catch,
    /// A number or literal is open.
    in_atom: bool,
    /// It begins like `null`.
    null: bool,
    counter: CharCounter,
    chars: u64,
    /// No byte of the message so far was above 0x7F.
    ascii: bool,
    block: Block,
    current: Envelope,
    batch: bool,
    members: Vec<Envelope>,
    strangers: usize,
    stranger: Option<&'static str>,
}

impl Default for Watcher {
    fn default() -> Self {
        Self {
            places: [Node::Skip; LEVELS],
            level: 0,
            skipped: 0,
            node: Node::Skip,
            in_key: false,
            key: [0; KEY_BYTES],
            key_len: 0,
            key_decoder: TextDecoder::default(),
            catch: Catch::default(),
            in_atom: false,
            null: false,
            counter: CharCounter::default(),
            chars: 0,
            ascii: true,
            block: Block::default(),
            current: Envelope::default(),
            batch: false,
            members: Vec::new(),
            strangers: 0,
            stranger: None,
        }
    }
}

impl Watcher {
    #[inline]
    pub(super) fn reset(&mut self) {
        self.level = 0;
        self.skipped = 0;
        self.node = Node::Skip;
        self.in_key = false;
        self.in_atom = false;
        self.catch.cap = 0;
        self.chars = 0;
        self.counter = CharCounter::default();
        self.current.facts.clear();
        self.stranger = None;
        if self.batch {
            self.members = Vec::new();
            self.strangers = 0;
            self.batch = false;
        }
    }

    pub(super) fn stranger(&self) -> Option<&'static str> {
        self.stranger
    }

    /// The envelope, to be filled from outside after a reset.
    pub(super) fn empty(&mut self) -> &mut Envelope {
        &mut self.current
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
                return Verdict::NotRpc(NO_MEMBER);
            }
            for member in &mut self.members {
                member.facts.lax = lax;
            }
            return Verdict::Batch { members: &self.members, strangers: self.strangers };
        }
        self.current.facts.lax = lax;
        if self.current.facts.kind == Kind::Stranger {
            return Verdict::NotRpc("the members of a JSON-RPC 2.0 message are not there");
        }
        Verdict::Message(&self.current)
    }

    /// No message's object is open.
    fn outside(&self) -> bool {
        self.level == 0 && self.skipped == 0
    }

    /// A value that is no message stands where one should.
    fn strange_member(&mut self) {
        if self.batch {
            self.count_stranger();
        } else {
            self.stranger = Some("a message is an object");
        }
    }

    /// A batch may hold some, as long as it can still be one.
    fn count_stranger(&mut self) {
        self.strangers += 1;
        if self.members.is_empty() && self.strangers > STRANGERS_FIRST {
            self.stranger = Some(NO_MEMBER);
        } else if self.members.len() + self.strangers > MAX_BATCH {
            self.stranger = Some(TOO_MANY);
        }
    }

    /// A value begins at `self.node`.
    #[inline]
    fn begin_value(&mut self, at: u64) {
        match self.node {
            Node::Skip if self.outside() => self.strange_member(),
            Node::Result => {
                self.current.facts.result = at..at;
                self.current.facts.has_result = true;
                self.current.facts.null_result = false;
            }
            Node::Error => {
                self.current.facts.error = at..at;
                self.current.facts.has_error = true;
            }
            Node::Params => {
                self.current.facts.begin_params();
                self.current.facts.params = at..at;
            }
            Node::Id => self.current.facts.id_at = at..at,
            Node::Name => self.current.facts.name_at = at..at,
            Node::ParamsMeta => {
                self.current.facts.meta_at = at..at;
                self.current.facts.token_at = 0..0;
            }
            Node::ProgressToken => self.current.facts.token_at = at..at,
            Node::StructuredContent => self.current.facts.structured = true,
            _ => {}
        }
    }

    /// The value at `self.node` has ended.
    #[inline]
    fn end_value(&mut self, end: u64, null: bool) {
        match self.node {
            Node::Result => {
                self.current.facts.result.end = end;
                self.current.facts.null_result = null;
            }
            Node::Error => {
                self.current.facts.error.end = end;
                self.current.facts.has_error = !null;
            }
            Node::Params => self.current.facts.params.end = end,
            Node::Id => self.current.facts.id_at.end = end,
            Node::Name => self.current.facts.name_at.end = end,
            Node::ParamsMeta => self.current.facts.meta_at.end = end,
            Node::ProgressToken => self.current.facts.token_at.end = end,
            _ => {}
        }
    }

    /// The next value's place, when the container at hand is an array.
    #[inline]
    fn next_place(&mut self) {
        if self.skipped == 0 {
            self.node = self.place().element();
        }
    }

    /// The place of the innermost container that matters.
    #[inline]
    fn place(&self) -> Node {
        self.level.checked_sub(1).and_then(|inner| self.places.get(inner)).copied().unwrap_or_default()
    }

    #[inline]
    fn enter_member(&mut self, name: &[u8]) {
        self.node = self.place().member(name);
    }

    /// The scalar that came in pieces is complete.
    fn use_catch(&mut self) {
        self.catch.end();
        self.catch.cap = 0;
        let catch = std::mem::take(&mut self.catch);
        let scalar = Scalar {
            string: catch.string,
            raw: &catch.raw,
            decoded: catch.escaped.then_some(catch.decoded.as_slice()),
            overflow: catch.overflow,
        };
        self.current.facts.take(self.node, scalar, &mut self.block);
        self.catch = catch;
    }

    fn end_message(&mut self, end: u64) {
        self.current.facts.span.end = end;
        self.current.facts.size.chars = self.chars;
        self.current.facts.ascii = self.ascii;
        self.current.facts.judge();
        if !self.batch {
            return;
        }
        if self.current.facts.kind == Kind::Stranger {
            self.count_stranger();
        } else if self.members.len() + self.strangers >= MAX_BATCH {
            self.stranger = Some(TOO_MANY);
        } else {
            self.members.push(self.current.clone());
        }
    }

    fn open_outside(&mut self, container: Container, at: u64) {
        if container == Container::Array {
            if self.batch {
                self.strange_member();
                self.skipped = 1;
            } else {
                self.batch = true;
            }
            return;
        }
        self.current.facts.clear();
        self.current.facts.span = at..at;
        self.ascii = true;
        self.chars = 1;
        self.node = Node::Message;
        self.push_place();
    }

    fn push_place(&mut self) {
        match self.places.get_mut(self.level) {
            Some(place) => {
                *place = self.node;
                self.level += 1;
            }
            None => self.skipped = 1,
        }
    }
}

impl Sink for Watcher {
    fn open(&mut self, container: Container, at: u64) {
        if self.skipped > 0 {
            self.chars += 1;
            self.skipped += 1;
            return;
        }
        if self.level == 0 {
            self.open_outside(container, at);
            return;
        }
        self.chars += 1;
        self.begin_value(at);
        match self.node {
            Node::Id => self.current.facts.id = IdField::WrongType,
            Node::Method => self.current.facts.wrong_method = true,
            Node::NextCursor => self.current.facts.next_cursor = true,
            _ => {}
        }
        if self.node == Node::Skip {
            self.skipped = 1;
            return;
        }
        if self.node.is_block() {
            self.block = Block::default();
        }
        self.push_place();
        if container == Container::Array {
            self.next_place();
        } else if self.node == Node::Content {
            self.node = Node::Block;
        }
    }

    fn close(&mut self, container: Container, end: u64) {
        if self.skipped > 0 {
            self.chars += 1;
            self.skipped -= 1;
            if self.skipped == 0 {
                self.next_place();
            }
            return;
        }
        let Some(inner) = self.level.checked_sub(1) else {
            return;
        };
        self.chars += 1;
        self.level = inner;
        self.node = self.places.get(inner).copied().unwrap_or_default();
        if inner == 0 {
            self.node = Node::Skip;
            self.end_message(end);
            return;
        }
        if container == Container::Object && self.node.is_block() {
            if self.block.media {
                let Size { media_chars, media_bytes, .. } = &mut self.current.facts.size;
                *media_chars += self.block.chars;
                *media_bytes += (self.block.chars * 3 / 4).saturating_sub(self.block.padding.min(2));
            }
            self.block = Block::default();
        }
        self.end_value(end, false);
        self.next_place();
    }

    #[inline]
    fn comma(&mut self) {
        if !self.outside() {
            self.chars += 1;
        }
    }

    #[inline]
    fn string_begin(&mut self, key: bool, at: u64) {
        self.in_key = key;
        if self.skipped > 0 {
            return;
        }
        if key {
            self.key_len = 0;
        } else {
            self.begin_value(at);
            self.catch.begin(self.node.kept_bytes(), true);
        }
    }

    #[inline]
    fn string(&mut self, key: bool, at: u64, run: Run<'_>) {
        let text = CharCounter::whole(run);
        self.ascii &= run.ascii;
        self.chars += text + 2 + u64::from(key);
        if self.skipped > 0 {
            return;
        }
        if key {
            self.enter_member(run.bytes);
            return;
        }
        if self.node == Node::Skip {
            if self.outside() {
                self.strange_member();
            }
            return;
        }
        self.begin_value(at);
        let cap = self.node.kept_bytes();
        if cap > 0 {
            let (raw, overflow) = cut(run.bytes, cap);
            self.current.facts.take(
                self.node,
                Scalar { string: true, raw, decoded: None, overflow },
                &mut self.block,
            );
        } else if self.node == Node::BlockData {
            self.block.padding = memchr::memchr_iter(b'=', run.bytes).count() as u64;
            self.block.chars = text;
        }
        self.end_value(at + run.bytes.len() as u64 + 2, false);
    }

    #[inline]
    fn run(&mut self, run: Run<'_>) {
        self.counter.run(run);
        self.ascii &= run.ascii;
        if self.skipped > 0 {
            return;
        }
        if self.in_key {
            let end = self.key_len + run.bytes.len();
            if let Some(slot) = self.key.get_mut(self.key_len..end) {
                slot.copy_from_slice(run.bytes);
            }
            self.key_len = end;
        } else if self.catch.cap > 0 {
            self.catch.run(run.bytes);
        } else if self.node == Node::BlockData {
            self.block.padding += memchr::memchr_iter(b'=', run.bytes).count() as u64;
        }
    }

    #[inline]
    fn escape(&mut self, unit: u16, raw: &[u8]) {
        self.counter.escape(unit);
        if self.skipped > 0 {
            return;
        }
        if self.in_key {
            let mut decoded = Vec::new();
            self.key_decoder.escape(unit, &mut decoded);
            let end = self.key_len + decoded.len();
            if let Some(slot) = self.key.get_mut(self.key_len..end) {
                slot.copy_from_slice(&decoded);
            }
            self.key_len = end;
        } else if self.catch.cap > 0 {
            self.catch.escape(unit, raw);
        }
    }

    #[inline]
    fn string_end(&mut self, end: u64) {
        let text = self.counter.take();
        self.chars += text + 2 + u64::from(self.in_key);
        let key = std::mem::take(&mut self.in_key);
        if self.skipped > 0 {
            return;
        }
        if key {
            let name = self.key.get(..self.key_len).unwrap_or_default();
            self.node = self.place().member(name);
            return;
        }
        if self.catch.cap > 0 {
            self.use_catch();
        } else if self.node == Node::BlockData {
            self.block.chars = text;
        }
        self.end_value(end, false);
    }

    #[inline]
    fn whole_atom(&mut self, bytes: &[u8], at: u64) {
        self.chars += bytes.len() as u64;
        if self.skipped > 0 {
            return;
        }
        self.begin_value(at);
        let cap = self.node.kept_bytes();
        if cap > 0 {
            let (raw, overflow) = cut(bytes, cap);
            self.current.facts.take(
                self.node,
                Scalar { string: false, raw, decoded: None, overflow },
                &mut self.block,
            );
        }
        self.end_value(at + bytes.len() as u64, bytes.first() == Some(&b'n'));
    }

    #[inline]
    fn atom(&mut self, bytes: &[u8], at: u64) {
        self.chars += bytes.len() as u64;
        if self.skipped > 0 {
            return;
        }
        if !self.in_atom {
            self.in_atom = true;
            self.null = bytes.first() == Some(&b'n');
            self.begin_value(at);
            self.catch.begin(self.node.kept_bytes(), false);
        }
        if self.catch.cap > 0 {
            self.catch.run(bytes);
        }
    }

    #[inline]
    fn atom_end(&mut self, end: u64) {
        if self.skipped > 0 {
            return;
        }
        self.in_atom = false;
        if self.catch.cap > 0 {
            self.use_catch();
        }
        self.end_value(end, self.null);
    }
}
