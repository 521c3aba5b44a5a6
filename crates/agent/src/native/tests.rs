//! The engine as a whole, with a model that answers from a script and without any network.

mod calls;
mod ends;
mod rig;
mod room;
mod subagents;

use self::rig::{Rig, answer, call, says, text};
