//! Behaviour of the event stream parser: the standard's examples, every line ending, and any split.

use super::{MAX_ID_BYTES, MAX_TYPE_BYTES, SseDecoder, SsePiece, write_event};
use proptest::prelude::*;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Event {
    data: Option<Vec<u8>>,
    kind: Vec<u8>,
    id: Option<Vec<u8>>,
    retry_ms: Option<u64>,
}

/// Events of `chunks`, and what was left unfinished.
fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Vec<u8>) {
    let mut decoder = SseDecoder::new();
    let (mut events, mut data) = (Vec::new(), Vec::new());
    for mut chunk in chunks {
        while let Some(piece) = decoder.next(&mut chunk) {
            match piece {
                SsePiece::Data(bytes) => {
                    assert!(!bytes.is_empty());
                    data.extend_from_slice(bytes);
                }
                SsePiece::DataBreak => data.push(b'\n'),
                SsePiece::End { data: any } => events.push(Event {
                    data: any.then(|| std::mem::take(&mut data)),
                    kind: decoder.event_type().to_vec(),
                    id: decoder.last_id().map(<[u8]>::to_vec),
                    retry_ms: decoder.retry_ms(),
                }),
            }
        }
    }
    (events, data)
}

fn datas(text: &[u8]) -> Vec<String> {
    let (events, _) = events([text]);
    events.into_iter().filter_map(|event| event.data).map(|data| String::from_utf8(data).unwrap()).collect()
}

fn message(data: &str) -> Event {
    Event { data: Some(data.into()), kind: b"message".to_vec(), ..Event::default() }
}

#[test]
fn lines_of_data_are_joined_by_line_feeds() {
    assert_eq!(datas(b"data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
    assert_eq!(datas(b"data\n\ndata\ndata\n\ndata:"), ["\n"]);
    assert_eq!(datas(b"data: a\ndata:\ndata\n\n"), ["a\n\n"]);
}

#[test]
fn one_space_after_the_colon_is_dropped() {
    assert_eq!(datas(b"data:test\n\ndata: test\n\ndata:  two\n\ndata: \n\n"), ["test", "test", " two"]);
}

#[test]
fn comments_and_unknown_fields_are_ignored() {
    assert_eq!(
        datas(b": test stream\n\ndata: one\n:data: no\ndatax: no\ndat: no\nx\n data: no\n\n"),
        ["one"]
    );
}

#[test]
fn every_line_ending_ends_a_line() {
    for text in [&b"data: a\ndata: b\n\n"[..], b"data: a\rdata: b\r\r", b"data: a\r\ndata: b\r\n\r\n"] {
        assert_eq!(datas(text), ["a\nb"], "{}", text.escape_ascii());
    }
    assert_eq!(datas(b"data: a\n\rdata: b\r\n\n"), ["a", "b"]);
}

#[test]
fn ids_last_until_the_next_one_and_count_when_the_event_is_complete() {
    let (found, _) = events([&b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 9\ndata: lost"[..]]);
    assert_eq!(
        found,
        [
            Event { id: Some(b"1".to_vec()), ..message("a") },
            Event { id: Some(b"1".to_vec()), ..message("b") },
            message("c"),
        ]
    );
}

#[test]
fn an_id_with_nul_or_without_end_is_ignored() {
    let mut text = b"id: ok\n\nid: a\0b\ndata: x\n\nid: ".to_vec();
    text.extend(vec![b'i'; MAX_ID_BYTES + 1]);
    text.extend(b"\ndata: y\n\n");
    let (found, _) = events([&text[..]]);
    assert!(found.iter().all(|event| event.id.as_deref() == Some(b"ok")), "{found:?}");
}

#[test]
fn an_event_without_data_still_sets_id_and_delay() {
    let (found, _) = events([&b"id: 7\nretry: 250\n\n"[..]]);
    assert_eq!(
        found,
        [Event { data: None, kind: b"message".to_vec(), id: Some(b"7".to_vec()), retry_ms: Some(250) }]
    );
}

#[test]
fn a_delay_is_made_of_digits() {
    for (text, expected) in [
        (&b"retry: 10\n\n"[..], Some(10)),
        (b"retry: 1\nretry: x\n\n", Some(1)),
        (b"retry: 1x\n\n", None),
        (b"retry: -1\n\n", None),
        (b"retry\n\n", None),
        (b"retry: 99999999999999999999999999\n\n", Some(u64::MAX - 1)),
    ] {
        let (found, _) = events([text]);
        assert_eq!(found[0].retry_ms, expected, "{}", text.escape_ascii());
    }
}

#[test]
fn a_type_lasts_for_one_event_and_is_cut_when_endless() {
    let (found, _) = events([&b"event: endpoint\ndata: /x\n\ndata: y\n\nevent\ndata: z\n\n"[..]]);
    let types: Vec<_> = found.iter().map(|event| event.kind.escape_ascii().to_string()).collect();
    assert_eq!(types, ["endpoint", "message", "message"]);
    let long = [&b"event: "[..], &vec![b'e'; 100_000], b"\ndata: x\n\n"].concat();
    assert_eq!(events([&long[..]]).0[0].kind, vec![b'e'; MAX_TYPE_BYTES]);
}

#[test]
fn a_byte_order_mark_is_dropped_once() {
    assert_eq!(datas(b"\xEF\xBB\xBFdata: a\n\n"), ["a"]);
    assert_eq!(datas(b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n"), ["b"]);
    assert_eq!(datas(b"\xEF\xBBdata: a\ndata: b\n\n"), ["b"]);
    assert_eq!(datas(b"\xEF\ndata: b\n\n"), ["b"]);
}

#[test]
fn an_unfinished_event_is_discarded_with_the_stream() {
    let (found, rest) = events([&b"data: whole\n\ndata: half"[..]]);
    assert_eq!((found, rest), (vec![message("whole")], b"half".to_vec()));
    let mut decoder = SseDecoder::new();
    let mut input = &b"id: 3\nretry: 5\n\nid: 4\ndata: half"[..];
    while decoder.next(&mut input).is_some() {}
    assert!(decoder.in_data());
    decoder.reset();
    assert!(!decoder.in_data());
    let mut input = &b"\xEF\xBB\xBFdata: next\n\n"[..];
    assert_eq!(decoder.next(&mut input), Some(SsePiece::Data(b"next")));
    assert_eq!(decoder.next(&mut input), Some(SsePiece::End { data: true }));
    assert_eq!((decoder.last_id(), decoder.retry_ms()), (Some(&b"3"[..]), Some(5)));
}

#[test]
fn what_write_event_writes_is_read_back() {
    let mut out = Vec::new();
    write_event(&mut out, Some("message"), Some("41"), b"{\n \"a\": 1\n}");
    let (found, _) = events([&out[..]]);
    assert_eq!(found, [Event { id: Some(b"41".to_vec()), ..message("{\n \"a\": 1\n}") }]);
}

/// Streams made of what the format cares about, and noise.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = proptest::sample::select(vec![
        &b"data"[..],
        b"data: ",
        b"event: ",
        b"id: ",
        b"retry: 12",
        b":",
        b" ",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xEF\xBB\xBF",
        b"\xEF",
        b"\0",
        "gr\u{fc}\u{df}e".as_bytes(),
        b"{\"jsonrpc\":\"2.0\"}",
    ]);
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

/// The standard's algorithm over the whole text at once, as plainly as it can be written.
fn reference(text: &[u8]) -> Vec<Event> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let (mut lines, mut line, mut i) = (Vec::new(), Vec::new(), 0);
    while i < text.len() {
        match text[i] {
            b'\r' | b'\n' => {
                if text[i] == b'\r' && text.get(i + 1) == Some(&b'\n') {
                    i += 1;
                }
                lines.push(std::mem::take(&mut line));
            }
            byte => line.push(byte),
        }
        i += 1;
    }
    let (mut out, mut data, mut kind, mut id, mut retry) = (vec![], vec![], vec![], None::<Vec<u8>>, None);
    for line in lines {
        if line.is_empty() {
            data.pop();
            out.push(Event {
                data: (!data.is_empty()).then(|| std::mem::take(&mut data)),
                kind: if kind.is_empty() { b"message".to_vec() } else { std::mem::take(&mut kind) },
                id: id.clone().filter(|id| !id.is_empty()),
                retry_ms: retry,
            });
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or(b"");
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => data.extend(value.iter().copied().chain([b'\n'])),
            b"event" => kind = value.to_vec(),
            b"id" if !value.contains(&0) => id = Some(value.to_vec()),
            b"retry" => {
                if let Some(ms) = std::str::from_utf8(value).ok().and_then(|v| {
                    (!v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()))
                        .then(|| v.parse().unwrap_or(u64::MAX - 1))
                }) {
                    retry = Some(ms);
                }
            }
            _ => {}
        }
    }
    out
}

proptest! {
    #[test]
    fn any_split_gives_the_events_of_the_standard(text in stream(), cuts in proptest::collection::vec(0usize..400, 0..12)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]);
        let (found, _) = events(pieces);
        prop_assert_eq!(&found, &reference(&text));
        let (found, _) = events(text.chunks(1));
        prop_assert_eq!(&found, &reference(&text));
    }
}
