//! The real binary as a bridge between a scripted host and an agent over real sockets.
#![cfg(target_os = "linux")]

mod agent;
mod bad_hosts;
mod calls;
mod conversation;
mod display;
mod endings;
mod host;
mod sessions;
mod surfaces;
mod trials;
mod turns;
