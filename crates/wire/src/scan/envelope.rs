//! Owns the envelope: what the scanner knows of one message. It copies only short fields, never the message.

use std::ops::Range;

use crate::id::Id;

/// What a message is (JSON-RPC 2.0, sections 4 and 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// A method and an id.
    Request,
    /// A method without an id.
    Notification,
    /// A result and an id.
    Response,
    /// An error, with the id of a request or `null`.
    ErrorResponse,
    /// Meant as a response, but with neither or both of result and error, or without `"jsonrpc":"2.0"`.
    Fault,
    /// Not JSON-RPC.
    #[default]
    Stranger,
}

/// The `id` member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IdField {
    /// There is none.
    #[default]
    Absent,
    /// A string, a number or `null`.
    Value(Id),
    /// Another JSON type.
    WrongType,
    /// More than 4,096 bytes; it cannot be kept.
    TooLong,
}

/// The size of a message, in characters of its compact spelling (see [`crate::text::CharCounter`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Characters of the whole message.
    pub chars: u64,
    /// Those of them that are base64 of image and audio content blocks.
    pub media_chars: u64,
    /// How many bytes that base64 stands for.
    pub media_bytes: u64,
}

impl Size {
    /// Characters without the base64 of media, as long as the media is under `media_limit` bytes.
    pub fn counted(&self, media_limit: u64) -> u64 {
        if self.media_bytes < media_limit { self.chars - self.media_chars } else { self.chars }
    }
}

/// One message: what was found in it. Offsets count from the first byte fed to the scanner.
///
/// It is moved often and looked at rarely: it is one pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    pub(super) facts: Box<Facts>,
}

/// What was found.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the message")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) id: IdField,
    pub(super) version_ok: bool,
    pub(super) method: Option<Field>,
    pub(super) name: Option<Field>,
    pub(super) uri: Option<Field>,
    pub(super) request_id: Option<Id>,
    pub(super) protocol_version: Option<Field>,
    pub(super) result_type: Option<Field>,
    pub(super) fields: Vec<u8>,
    pub(super) is_error: Option<bool>,
    pub(super) next_cursor: bool,
    pub(super) structured: bool,
    pub(super) has_result: bool,
    pub(super) null_result: bool,
    pub(super) has_error: bool,
    pub(super) wrong_method: bool,
    pub(super) lax: bool,
    pub(super) ascii: bool,
    pub(super) size: Size,
    pub(super) span: Range<u64>,
    pub(super) result: Range<u64>,
    pub(super) params: Range<u64>,
    pub(super) error: Range<u64>,
    pub(super) id_at: Range<u64>,
    pub(super) name_at: Range<u64>,
    pub(super) meta_at: Range<u64>,
    pub(super) token_at: Range<u64>,
}

/// A short text, kept in `fields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Envelope {
    /// What the message is.
    pub fn kind(&self) -> Kind {
        self.facts.kind
    }

    /// The `id` member.
    pub fn id_field(&self) -> &IdField {
        &self.facts.id
    }

    /// The id, where it is a string, a number or `null`.
    pub fn id(&self) -> Option<&Id> {
        match &self.facts.id {
            IdField::Value(id) => Some(id),
            _ => None,
        }
    }

    /// `method`, at most 1,024 bytes of it.
    pub fn method(&self) -> Option<&str> {
        self.text(self.facts.method)
    }

    /// `params.name` (the tool or prompt), at most 1,024 bytes of it.
    pub fn name(&self) -> Option<&str> {
        self.text(self.facts.name)
    }

    /// `params.uri`, at most 8,192 bytes of it.
    pub fn uri(&self) -> Option<&str> {
        self.text(self.facts.uri)
    }

    /// `params.requestId`, which `notifications/cancelled` names.
    pub fn request_id(&self) -> Option<&Id> {
        self.facts.request_id.as_ref()
    }

    /// `params._meta["io.modelcontextprotocol/protocolVersion"]`, or the `protocolVersion` of `params` or `result`.
    pub fn protocol_version(&self) -> Option<&str> {
        self.text(self.facts.protocol_version)
    }

    /// `result.resultType`.
    pub fn result_type(&self) -> Option<&str> {
        self.text(self.facts.result_type)
    }

    /// `result.isError`, where it is a boolean.
    pub fn is_error(&self) -> Option<bool> {
        self.facts.is_error
    }

    /// `result.nextCursor` is there and not `null`: more pages follow.
    pub fn has_next_cursor(&self) -> bool {
        self.facts.next_cursor
    }

    /// `result.structuredContent` is there.
    pub fn has_structured_content(&self) -> bool {
        self.facts.structured
    }

    /// The message used JSON that RFC 8259 does not allow but some servers send.
    pub fn is_lax(&self) -> bool {
        self.facts.lax
    }

    /// Every byte is below 0x80.
    pub fn is_ascii(&self) -> bool {
        self.facts.ascii
    }

    /// `"jsonrpc":"2.0"` is there.
    pub fn has_version(&self) -> bool {
        self.facts.version_ok
    }

    /// The size.
    pub fn size(&self) -> Size {
        self.facts.size
    }

    /// Where the message's object stands.
    pub fn span(&self) -> Range<u64> {
        self.facts.span.clone()
    }

    /// Where the value of `result` stands.
    pub fn result_span(&self) -> Option<Range<u64>> {
        (!self.facts.result.is_empty()).then(|| self.facts.result.clone())
    }

    /// Where the value of `params` stands.
    pub fn params_span(&self) -> Option<Range<u64>> {
        (!self.facts.params.is_empty()).then(|| self.facts.params.clone())
    }

    /// Where the value of `error` stands.
    pub fn error_span(&self) -> Option<Range<u64>> {
        (!self.facts.error.is_empty()).then(|| self.facts.error.clone())
    }

    /// Where the value of `id` stands.
    pub fn id_span(&self) -> Option<Range<u64>> {
        (!self.facts.id_at.is_empty()).then(|| self.facts.id_at.clone())
    }

    /// Where the value of `params.name` stands.
    pub fn name_span(&self) -> Option<Range<u64>> {
        (!self.facts.name_at.is_empty()).then(|| self.facts.name_at.clone())
    }

    /// Where the value of `params._meta` stands.
    pub fn meta_span(&self) -> Option<Range<u64>> {
        (!self.facts.meta_at.is_empty()).then(|| self.facts.meta_at.clone())
    }

    /// Where the value of `params._meta.progressToken` stands.
    pub fn token_span(&self) -> Option<Range<u64>> {
        (!self.facts.token_at.is_empty()).then(|| self.facts.token_at.clone())
    }

    /// The same message after a change of its bytes: with this id, with this `params.name` where one is given, and with
    /// `params` standing there. The other spans are not known any more.
    #[must_use]
    pub fn readdressed(mut self, id: Id, name: Option<&str>, params: Range<u64>) -> Self {
        let facts = &mut *self.facts;
        facts.id = IdField::Value(id);
        // The name is what was kept last, as a rule: the new one takes its place, which needs no memory.
        if let (Some(_), Some(old)) = (name, facts.name)
            && old.end as usize == facts.fields.len()
        {
            facts.fields.truncate(old.start as usize);
        }
        if let (Some(name), Ok(start)) = (name, u32::try_from(facts.fields.len()))
            && let Ok(length) = u32::try_from(name.len())
        {
            facts.fields.extend_from_slice(name.as_bytes());
            facts.name = Some(Field { start, end: start + length });
        }
        facts.params = params;
        for span in [
            &mut facts.span,
            &mut facts.result,
            &mut facts.error,
            &mut facts.id_at,
            &mut facts.name_at,
            &mut facts.meta_at,
            &mut facts.token_at,
        ] {
            *span = 0..0;
        }
        self
    }

    fn text(&self, field: Option<Field>) -> Option<&str> {
        let field = field?;
        std::str::from_utf8(self.facts.fields.get(field.start as usize..field.end as usize)?).ok()
    }
}

impl Facts {
    pub(super) fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Self { fields, ..Self::default() };
    }

    /// `params` begins: what was found in one before it does not count.
    pub(super) fn begin_params(&mut self) {
        (self.name_at, self.meta_at, self.token_at) = (0..0, 0..0, 0..0);
    }

    pub(super) fn judge(&mut self) {
        if self.null_result && self.has_error {
            self.has_result = false;
        }
        let answered = self.has_result || self.has_error;
        self.kind = if self.method.is_some() && self.version_ok {
            match self.id {
                IdField::Absent => Kind::Notification,
                _ => Kind::Request,
            }
        } else if self.method.is_some() || self.wrong_method {
            Kind::Stranger
        } else {
            match (self.has_result, self.has_error, &self.id) {
                (false, true, IdField::Absent) if self.version_ok => Kind::ErrorResponse,
                (_, _, IdField::Absent) => Kind::Stranger,
                (true, false, _) if self.version_ok => Kind::Response,
                (false, true, _) if self.version_ok => Kind::ErrorResponse,
                _ if self.version_ok || answered => Kind::Fault,
                _ => Kind::Stranger,
            }
        };
    }
}
