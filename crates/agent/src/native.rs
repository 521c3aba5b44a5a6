//! Owns the native runtime: a turn loop over any model, its tools and its conversation. It knows no store.

mod conversation;
mod estimate;
pub(crate) mod model;
mod turn_loop;
