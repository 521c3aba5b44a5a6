//! An agent behind the Agent Client Protocol as the runtime, with a scripted agent as a real process.

mod bad;
mod desk;
mod rig;
mod servers;
mod session;
mod sign_in;
mod turns;
