//! Owns the native runtime: a turn loop over any model, its tools and its conversation. It knows no store.

mod conversation;
mod model;

pub use conversation::{AssistantPart, CallResult, Message, UserOrigin, UserPart};
