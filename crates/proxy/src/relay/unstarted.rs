//! Owns the relay whose upstream could not be started: the client's first request is answered with the reason.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;

use toolway_wire::{LineSplitter, Piece};

use super::Ending;
use super::core::Relay;
use super::uplink::{Up, Uplink};

/// Answers the client until its first request was told `reason`. Blocks; returns when that was done or the client
/// closed.
pub fn run_unstarted(relay: &Arc<Relay>, reason: &str, mut input: File, mut output: File) -> Ending {
    relay.set_gone(reason);
    let mut link = Uplink::new(Arc::clone(relay));
    let mut lines = LineSplitter::new();
    let mut buffer = vec![0; 16 << 10];
    let mut asked = false;
    while !asked {
        let length = match input.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => length,
        };
        let mut answers = Vec::new();
        lines.split(buffer.get(..length).unwrap_or_default(), |piece| match piece {
            Piece::Data(bytes) => link.feed(bytes),
            Piece::End => {
                if let Up::Answer(lines) = link.finish() {
                    answers.extend_from_slice(&lines);
                }
            }
        });
        asked = relay.asked.load(std::sync::atomic::Ordering::Acquire);
        if output.write_all(&answers).is_err() {
            break;
        }
    }
    Ending::NotStarted
}
