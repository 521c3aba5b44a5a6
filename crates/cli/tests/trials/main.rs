//! Trials of the real binary, each with a scripted upstream, a judge of the protocol, and a check of what is left.
#![cfg(target_os = "linux")]

#[path = "../support/answer.rs"]
mod answer;
mod t01_oversized_error;
mod t02_output_schema;
mod t03_media;
mod t04_noise;
mod t05_unwritable;
mod t06_unknown_methods;
mod t07_http_failures;

use anyhow::Result;
use toolway_testkit::{FakeTransport, Rig, Session};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A relay before a stdio server with this script.
fn stdio(script: &str) -> Result<Session> {
    Rig::new(TOOLWAY)?.script(script).start(FakeTransport::Stdio)
}
