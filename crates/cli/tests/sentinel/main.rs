//! A secret in every field that takes one, and a run of everything with all logs on, recordings, audit lines, servers that
//! give back what they were sent, and failures: none of the secrets is in any output, in the list of processes, or in a
//! file. What a server's answer carries to its caller, and what a server is sent, is not looked at: that is theirs.
#![cfg(target_os = "linux")]

mod finder;
mod hosts;
mod place;
mod relays;
mod reports;
mod running;
mod signed_in;

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");
