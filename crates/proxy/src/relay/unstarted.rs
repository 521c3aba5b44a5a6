//! Owns the relay whose upstream could not be started: the client's first request is answered with the reason.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use toolway_wire::{LineSplitter, Piece};

use super::Ending;
use super::core::Relay;
use super::uplink::{Up, Uplink};

enum Event {
    Bytes(Vec<u8>),
    ClientClosed,
    Signal(i32),
}

/// Answers the client until its first request was told `reason`. Blocks; returns when that was done, the client
/// closed or a signal came.
pub fn run_unstarted<S>(
    relay: &Arc<Relay>,
    reason: &str,
    (input, mut output): (File, File),
    signals: S,
) -> Ending
where
    S: IntoIterator<Item = i32> + Send + 'static,
{
    relay.set_gone(reason);
    let (events, inbox) = sync_channel(4);
    let sender = events.clone();
    let signals = move || signals.into_iter().for_each(|signal| drop(sender.send(Event::Signal(signal))));
    let started = thread::Builder::new().name("signals".to_owned()).spawn(signals);
    let reading = thread::Builder::new().name("client".to_owned()).spawn(move || read(input, &events));
    if started.and(reading).is_err() {
        return Ending::NotStarted;
    }
    let mut link = Uplink::new(Arc::clone(relay));
    let mut lines = LineSplitter::new();
    for event in inbox {
        let mut answers = Vec::new();
        let mut answer = |link: &mut Uplink| {
            if let Up::Answer(lines) = link.finish() {
                answers.extend_from_slice(&lines);
            }
        };
        let closed = match event {
            Event::Signal(signal) => return Ending::Signal(signal),
            Event::Bytes(bytes) => {
                lines.split(&bytes, |piece| match piece {
                    Piece::Data(bytes) => link.feed(bytes),
                    Piece::End => answer(&mut link),
                });
                false
            }
            Event::ClientClosed => {
                if lines.is_within_line() {
                    answer(&mut link);
                }
                true
            }
        };
        let written = output.write_all(&answers);
        if closed || written.is_err() || relay.asked.load(Ordering::Acquire) {
            break;
        }
    }
    Ending::NotStarted
}

/// Hands on what the client writes, until it closes or nobody listens.
fn read(mut input: File, events: &SyncSender<Event>) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let event = match input.read(&mut buffer) {
            Ok(length) if length > 0 => Event::Bytes(buffer.get(..length).unwrap_or_default().to_vec()),
            _ => Event::ClientClosed,
        };
        let last = matches!(event, Event::ClientClosed);
        if events.send(event).is_err() || last {
            return;
        }
    }
}
