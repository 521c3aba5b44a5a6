//! Owns the native runtime: a turn loop over any model, its tools and its conversation. It knows no store.

mod conversation;
pub(crate) mod model;
mod turn_loop;
