//! An agent behind the Agent Client Protocol as the runtime, with a scripted agent as a real process.

mod bad;
mod desk;
mod rig;
mod session;
mod turns;
