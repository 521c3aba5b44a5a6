//! Owns what is known of one content block of a message. Holds spans, not contents.

use std::ops::Range;

use crate::directory::Temporary;

/// What a block turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// `text`, or the text of a resource.
    Text,
    /// `image` or `audio`.
    Media,
    /// An embedded resource, or contents of one, with bytes.
    Binary,
    /// A resource link.
    Link,
    /// Anything else.
    Other,
}

/// A part of the `.txt` view that is one block's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPart {
    /// Bytes in the view.
    pub(crate) range: Range<u64>,
    /// Line breaks in it.
    pub(crate) breaks: u64,
}

/// A block's bytes, decoded.
#[derive(Debug)]
pub(crate) struct BinaryPart {
    /// The file, if one could be written.
    pub(crate) temporary: Option<Temporary>,
    /// Without a dot.
    pub(crate) extension: &'static str,
    pub(crate) bytes: u64,
}

/// One content block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Where it stands in the message.
    pub(crate) span: Range<u64>,
    /// Its `type`; empty where there is none.
    pub(crate) type_name: String,
    pub(crate) mime: Option<String>,
    pub(crate) name: Option<String>,
    /// Its URI, or that of its resource.
    pub(crate) uri: Option<String>,
    /// It is an embedded resource.
    pub(crate) resource: bool,
    pub(crate) text: Option<TextPart>,
    pub(crate) binary: Option<BinaryPart>,
}

impl Block {
    pub(crate) fn kind(&self) -> BlockKind {
        match self.type_name.as_str() {
            "image" | "audio" => BlockKind::Media,
            "resource_link" => BlockKind::Link,
            _ if self.binary.is_some() => BlockKind::Binary,
            _ if self.text.is_some() => BlockKind::Text,
            _ => BlockKind::Other,
        }
    }

    /// Bytes of the block as it stands in the message.
    pub(crate) fn raw_len(&self) -> u64 {
        self.span.end - self.span.start
    }
}
