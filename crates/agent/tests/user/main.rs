//! Agents as a program has them: the native runtime, a scripted model, scripted servers, through the public API alone.
#![cfg(unix)]

mod bench;
mod leaks;
mod models;
mod processes;
mod surroundings;
