//! MCP messages over raw bytes: lexer, scanner, codecs and protocol eras. No I/O, and no tree of a message.

mod error;
mod id;
mod line;
mod scan;

pub mod era;
pub mod find;
pub mod lex;
pub mod request;
pub mod sse;
pub mod text;

pub use error::{
    INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, UPSTREAM_ERROR, error_response,
    push_string,
};
pub use id::{Id, IdHasher};
pub use line::{LineSplitter, Piece};
pub use scan::{Envelope, Feeding, IdField, Kind, MAX_BATCH, Scanner, Size, Verdict};
