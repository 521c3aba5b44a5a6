//! `toolway acp` through the real binary: a small editor of the test's own, a scripted model, scripted servers; and
//! Toolway's own client half in front of it.
#![cfg(target_os = "linux")]

mod bad;
mod editor;
mod halves;
mod permission;
mod sessions;
mod turns;

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");
