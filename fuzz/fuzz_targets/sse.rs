//! Events are the same however the stream was cut; what was written as an event is read back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolway_wire::sse::{SseDecoder, SsePiece, write_event};

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, step) = (input.0, usize::from(input.1).max(1));
    let whole = events(&mut std::iter::once(bytes.as_slice()));
    assert_eq!(whole, events(&mut bytes.chunks(step)), "cut into pieces of {step}");

    let message: Vec<u8> = bytes.into_iter().filter(|byte| !b"\r\n".contains(byte)).collect();
    let mut written = Vec::new();
    write_event(&mut written, Some("message"), Some("7"), &message);
    let read = events(&mut written.chunks(step));
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].data, message);
    assert_eq!(read[0].id.as_deref(), Some(b"7".as_slice()));
});

#[derive(Debug, PartialEq)]
struct Event {
    data: Vec<u8>,
    kind: Vec<u8>,
    id: Option<Vec<u8>>,
    retry_ms: Option<u64>,
    has_data: bool,
}

fn events(pieces: &mut dyn Iterator<Item = &[u8]>) -> Vec<Event> {
    let (mut decoder, mut data, mut found) = (SseDecoder::new(), Vec::new(), Vec::new());
    for mut piece in pieces {
        while let Some(part) = decoder.next(&mut piece) {
            match part {
                SsePiece::Data(bytes) => data.extend_from_slice(bytes),
                SsePiece::DataBreak => data.push(b'\n'),
                SsePiece::End { data: has_data } => found.push(Event {
                    data: std::mem::take(&mut data),
                    kind: decoder.event_type().to_vec(),
                    id: decoder.last_id().map(<[u8]>::to_vec),
                    retry_ms: decoder.retry_ms(),
                    has_data,
                }),
            }
        }
    }
    found
}
