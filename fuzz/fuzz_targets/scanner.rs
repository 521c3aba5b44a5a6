//! Whatever the bytes are, the scanner ends, and how they were cut changes nothing about its verdict.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolway_wire::{Feeding, Scanner};

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, step) = (input.0, usize::from(input.1).max(1));
    let whole = verdict(&mut Scanner::new(), &mut std::iter::once(bytes.as_slice()));
    let mut scanner = Scanner::new();
    let pieces = verdict(&mut scanner, &mut bytes.chunks(step));
    assert_eq!(whole, pieces, "cut into pieces of {step}");
    scanner.reset();
    assert_eq!(whole, verdict(&mut scanner, &mut bytes.chunks(1)), "cut into single bytes, by a used scanner");
});

/// The verdict in words; `None` when the scanner wants no more of it, which it may say earlier or later.
fn verdict(scanner: &mut Scanner, pieces: &mut dyn Iterator<Item = &[u8]>) -> Option<String> {
    for piece in pieces {
        if scanner.feed(piece) == Feeding::NotRpc {
            return None;
        }
    }
    match scanner.finish() {
        toolway_wire::Verdict::NotJson(_) | toolway_wire::Verdict::NotRpc(_) => None,
        verdict => Some(format!("{verdict:?}")),
    }
}
