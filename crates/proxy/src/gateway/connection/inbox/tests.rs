use super::*;
use toolway_guard::GuardConfig;

fn inbox(lines: bool) -> (tempfile::TempDir, Inbox) {
    let directory = tempfile::tempdir().unwrap();
    let mut config = GuardConfig::new(directory.path().join("saved"));
    config.memory = 1000;
    let inbox = Inbox::new(&Arc::new(Guard::new(config)), lines);
    (directory, inbox)
}

/// Feeds pieces, each with the number of its stream; an empty piece is the end of its stream.
fn feed(inbox: &mut Inbox, pieces: &[(u64, &[u8])]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (stream, piece) in pieces {
        let stream = StreamId(*stream);
        let inbound = if piece.is_empty() {
            Inbound::End { stream }
        } else {
            Inbound::Data { stream, bytes: Bytes::copy_from_slice(piece) }
        };
        let mut next = inbox.take(inbound);
        while let Some(Received::Message(message)) = next {
            messages.push(message);
            next = inbox.next();
        }
    }
    messages
}

fn texts(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| String::from_utf8(message.content.bytes().unwrap().to_vec()).unwrap();
    messages.iter().map(text).collect()
}

/// What the envelope's spans cut out of the message.
fn result(message: &Message) -> &[u8] {
    let span = message.envelope.result_span().unwrap();
    let at = |offset: u64| usize::try_from(offset).unwrap();
    &message.content.bytes().unwrap()[at(span.start)..at(span.end)]
}

const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#;

#[test]
fn a_message_is_the_same_however_it_is_cut() {
    let (_directory, mut inbox) = inbox(true);
    for piece in [1, 7, 100] {
        let mut pieces: Vec<(u64, &[u8])> = ANSWER.chunks(piece).map(|piece| (1, piece)).collect();
        pieces.push((1, b""));
        let messages = feed(&mut inbox, &pieces);
        assert_eq!(texts(&messages), [std::str::from_utf8(ANSWER).unwrap()], "{piece}");
        assert_eq!(result(&messages[0]), br#"{"a":1}"#);
    }
}

#[test]
fn a_message_in_one_piece_is_not_copied() {
    let (_directory, mut inbox) = inbox(true);
    let chunk = Bytes::from([ANSWER, b"\n", ANSWER].concat());
    let stream = StreamId(1);
    inbox.take(Inbound::Data { stream, bytes: chunk.slice(..ANSWER.len()) });
    let Some(Received::Message(message)) = inbox.take(Inbound::End { stream }) else { panic!("no message") };
    assert_eq!(message.content.bytes().unwrap().as_ptr(), chunk.as_ptr());
}

#[test]
fn messages_that_arrive_at_the_same_time_do_not_mix() {
    let (_directory, mut inbox) = inbox(false);
    let (one, two) = ANSWER.split_at(10);
    let other = br#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let messages =
        feed(&mut inbox, &[(1, one), (2, &other[..5]), (1, two), (2, &other[5..]), (2, b""), (1, b"")]);
    let expected = [std::str::from_utf8(other).unwrap(), std::str::from_utf8(ANSWER).unwrap()];
    assert_eq!(texts(&messages), expected);
    let messages = feed(&mut inbox, &[(1, one), (2, other), (2, b""), (1, two), (1, b"")]);
    assert_eq!(texts(&messages), expected);
}

#[test]
fn an_aborted_message_is_forgotten() {
    let (_directory, mut inbox) = inbox(false);
    for pieces in [1, 2] {
        for _ in 0..pieces {
            inbox.take(Inbound::Data { stream: StreamId(1), bytes: Bytes::from_static(b"{\"jsonrpc\":") });
        }
        assert!(inbox.take(Inbound::Abort { stream: StreamId(1) }).is_none());
        assert_eq!(feed(&mut inbox, &[(1, ANSWER), (1, b"")]).len(), 1);
    }
}

#[test]
fn members_of_a_batch_travel_alone_with_spans_of_their_own() {
    let (_directory, mut inbox) = inbox(false);
    let small = [b"[ ", ANSWER, b",\n", ANSWER, b"]"].concat();
    let filler = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"f":"{}"}}}}"#, "x".repeat(2000));
    let large = [b"[", filler.as_bytes(), b",", ANSWER, b"]"].concat();
    for (batch, sizes) in [(small, [ANSWER.len(), ANSWER.len()]), (large, [filler.len(), ANSWER.len()])] {
        for piece in [batch.len(), 100] {
            let mut pieces: Vec<(u64, &[u8])> = batch.chunks(piece).map(|piece| (1, piece)).collect();
            pieces.push((1, b""));
            let messages = feed(&mut inbox, &pieces);
            let found: Vec<usize> =
                messages.iter().map(|message| message.content.bytes().unwrap().len()).collect();
            assert_eq!(found, sizes);
            assert_eq!(result(&messages[1]), br#"{"a":1}"#);
        }
    }
}

#[test]
fn messages_are_utf8_without_raw_line_breaks_and_spans_still_fit() {
    let (_directory, mut inbox) = inbox(false);
    let odd = b"{\n\"jsonrpc\":\"2.0\",\r\n\"id\":1, \"x\":\"\xff\",\"result\":{\"a\":1}}";
    for piece in [odd.len(), 9] {
        let mut pieces: Vec<(u64, &[u8])> = odd.chunks(piece).map(|piece| (1, piece)).collect();
        pieces.push((1, b""));
        let messages = feed(&mut inbox, &pieces);
        let expected = "{ \"jsonrpc\":\"2.0\",  \"id\":1, \"x\":\"\u{fffd}\",\"result\":{\"a\":1}}";
        assert_eq!(texts(&messages), [expected]);
        assert_eq!(result(&messages[0]), br#"{"a":1}"#);
    }
}

#[test]
fn a_carriage_return_at_the_end_of_a_line_is_no_part_of_it() {
    let (_directory, mut inbox) = inbox(true);
    let line = [ANSWER, b"\r"].concat();
    let messages = feed(&mut inbox, &[(1, &line), (1, b"")]);
    assert_eq!(messages[0].content.bytes().unwrap(), ANSWER);
}

#[test]
fn what_is_no_message_is_counted_and_harms_nobody() {
    let (_directory, mut inbox) = inbox(true);
    let garbage: [(u64, &[u8]); 10] = [
        (1, b"Starting\x1b[0m v1"),
        (1, b""),
        (2, b"{\"a\":"),
        (2, b"1}"),
        (2, b""),
        (3, b"  "),
        (3, b""),
        (4, b"{\"jsonrpc\":\"2.0\",\"method\":\"x\""),
        (4, b""),
        (5, ANSWER),
    ];
    assert!(feed(&mut inbox, &garbage).is_empty());
    assert_eq!(inbox.ignored(), Some(("Starting[0m v1", 3)));
    assert_eq!(feed(&mut inbox, &[(5, b"")]).len(), 1);
}

#[test]
fn a_message_larger_than_memory_is_in_a_file() {
    let (directory, mut inbox) = inbox(true);
    let large = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"f":"{}"}}}}"#, "x".repeat(2000));
    let mut pieces: Vec<(u64, &[u8])> = large.as_bytes().chunks(500).map(|piece| (1, piece)).collect();
    pieces.push((1, b""));
    let messages = feed(&mut inbox, &pieces);
    assert!(messages[0].content.bytes().is_none() && messages[0].content.len() == large.len() as u64);
    drop(messages);
    let left = std::fs::read_dir(directory.path().join("saved")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the file goes with the message");
}
