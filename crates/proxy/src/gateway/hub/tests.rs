//! What the hub does, told by events in and effects out: no runtime, no process, no socket.

mod calls;
mod eras;
mod lists;
mod messages;
mod observing;
mod questions;
mod reloads;
mod rig;
mod saved;
