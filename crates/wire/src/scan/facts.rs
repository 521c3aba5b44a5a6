//! Owns what becomes of a scalar at a place that matters: the fact it tells about the message. Follows no places.

use super::envelope::{Facts, Field, IdField};
use super::node::Node;
use super::scalar::Scalar;

/// The content block that is open, as far as media goes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Block {
    pub(super) media: bool,
    pub(super) chars: u64,
    pub(super) padding: u64,
}

impl Facts {
    /// Notes the scalar at a place.
    #[inline]
    pub(super) fn take(&mut self, node: Node, scalar: Scalar<'_>, block: &mut Block) {
        let string = scalar.string;
        match node {
            Node::Jsonrpc => self.version_ok = string && scalar.text() == b"2.0",
            Node::Id => self.id = scalar.id(),
            Node::Method if string => self.method = self.keep(scalar),
            Node::Method => self.wrong_method = true,
            Node::BlockType => block.media = string && matches!(scalar.text(), b"image" | b"audio"),
            Node::Name if string => self.name = self.keep(scalar),
            Node::Uri if string => self.uri = self.keep(scalar),
            Node::RequestId => {
                if let IdField::Value(id) = scalar.id() {
                    self.request_id = Some(id);
                }
            }
            Node::ProtocolVersion if string => self.protocol_version = self.keep(scalar),
            Node::ResultType if string => self.result_type = self.keep(scalar),
            Node::IsError if !string => {
                self.is_error = match scalar.raw {
                    b"true" => Some(true),
                    b"false" => Some(false),
                    _ => None,
                };
            }
            Node::NextCursor => self.next_cursor = string || scalar.raw != b"null",
            _ => {}
        }
    }

    fn keep(&mut self, scalar: Scalar<'_>) -> Option<Field> {
        let start = u32::try_from(self.fields.len()).ok()?;
        let text = scalar.text();
        if text.is_ascii() {
            self.fields.extend_from_slice(text);
        } else {
            self.fields.extend_from_slice(String::from_utf8_lossy(text).as_bytes());
        }
        let end = u32::try_from(self.fields.len()).ok()?;
        Some(Field { start, end })
    }
}
