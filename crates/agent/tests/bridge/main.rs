//! The bridge as it is, between a host and agents of this crate on both runtimes: what the bridge promises, with an agent
//! that is alive.

mod calls;
mod ends;
mod prompts;
mod replay;
mod rig;
mod scene;
mod skills;
mod talk;
