//! Lines are the same however the stream was cut, and hold what the stream held apart from the framing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolway_wire::{LineSplitter, Piece};

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, step) = (input.0, usize::from(input.1).max(1));
    let whole = lines(&mut std::iter::once(bytes.as_slice()));
    assert_eq!(whole, lines(&mut bytes.chunks(step)), "cut into pieces of {step}");
    let expected: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(unframed).collect();
    let complete = &expected[..expected.len() - 1];
    assert_eq!(whole, complete, "the lines that have ended");
});

fn unframed(line: &[u8]) -> Vec<u8> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line).to_vec()
}

fn lines(pieces: &mut dyn Iterator<Item = &[u8]>) -> Vec<Vec<u8>> {
    let (mut splitter, mut line, mut lines) = (LineSplitter::new(), Vec::new(), Vec::new());
    for piece in pieces {
        splitter.split(piece, |part| match part {
            Piece::Data(data) => line.extend_from_slice(data),
            Piece::End => lines.push(std::mem::take(&mut line)),
        });
    }
    lines
}
