//! Owns what becomes of the upstream's other blocks: kept byte for byte, linked to their file, or left out.

use toolway_wire::push_string;

use crate::file_uri::{PathStyle, file_uri};
use crate::reshape::ShownFile;
use crate::source::Source;
use crate::views::{Block, BlockKind};

/// One of the upstream's blocks in the rewritten message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) kind: BlockKind,
    /// The block's JSON; `None` where it is only in the file.
    pub(crate) json: Option<Vec<u8>>,
}

/// What becomes of the contents of a resource after the first: kept where small, else named.
pub(crate) fn contents(blocks: &[Block], source: Source<'_>, limit: u64) -> Vec<Item> {
    let mut small = limit / 2;
    let item = |block: &Block| {
        let keep = block.raw_len() <= limit / 8 && block.raw_len() <= small;
        let json = if keep {
            small -= block.raw_len();
            source.bytes(block.span.clone()).ok()
        } else {
            block.uri.as_ref().map(|uri| {
                let mut out = b"{\"uri\":".to_vec();
                push_string(uri, &mut out);
                out.extend_from_slice(b",\"mimeType\":\"text/plain\",\"text\":\"[in the saved file]\"}");
                out
            })
        };
        Item { kind: block.kind(), json }
    };
    blocks.iter().skip(1).map(item).collect()
}

/// The blocks besides text, in their order. `files` has the file of each block that was decoded.
pub(crate) fn items(
    blocks: &[Block],
    files: &[Option<ShownFile>],
    source: Source<'_>,
    media_limit: u64,
    limit: u64,
) -> Vec<Item> {
    let mut media = 0;
    let mut small = limit / 2;
    let mut out = Vec::new();
    for (block, file) in blocks.iter().zip(files) {
        let bytes = block.binary.as_ref().map_or(0, |binary| binary.bytes);
        let keep = match block.kind() {
            BlockKind::Text if !block.resource => continue,
            BlockKind::Media => {
                let under = media + bytes < media_limit && block.binary.is_some();
                media += if under { bytes } else { 0 };
                under
            }
            _ => {
                let under = block.raw_len() <= limit / 8 && block.raw_len() <= small;
                small -= if under { block.raw_len() } else { 0 };
                under
            }
        };
        let kept = if keep { source.bytes(block.span.clone()).ok() } else { None };
        let json = kept.or_else(|| file.as_ref().map(|file| link(block, file)));
        // The text of a resource is in the preview already.
        if json.is_some() || block.kind() != BlockKind::Text {
            out.push(Item { kind: block.kind(), json });
        }
    }
    out
}

/// A `resource_link` to the file of a block.
fn link(block: &Block, file: &ShownFile) -> Vec<u8> {
    let mut out = b"{\"type\":\"resource_link\",\"uri\":".to_vec();
    push_string(&uri_of(&file.path), &mut out);
    out.extend_from_slice(b",\"name\":");
    let own = file.path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = block.name.as_deref().filter(|name| name.chars().count() <= 100).unwrap_or(own);
    push_string(name, &mut out);
    if let Some(mime) = block.mime.as_deref().filter(|mime| mime.chars().count() <= 100) {
        out.extend_from_slice(b",\"mimeType\":");
        push_string(mime, &mut out);
    }
    out.extend_from_slice(format!(",\"size\":{}}}", file.bytes).as_bytes());
    out
}

/// The URI of a path as the client sees it, which may be of another system than this one.
pub(crate) fn uri_of(path: &str) -> String {
    let bytes = path.as_bytes();
    let windows = bytes.starts_with(b"\\\\")
        || matches!(bytes, [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    file_uri(bytes, if windows { PathStyle::Windows } else { PathStyle::Posix })
}
