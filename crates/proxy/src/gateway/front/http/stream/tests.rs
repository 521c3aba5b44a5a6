//! Streams: what is kept for a client that comes back, and what a slow one misses.

use super::*;

fn id(number: u64) -> Id {
    Id::from_number(number)
}

fn data(text: &str) -> Data {
    Data::of(Payload::Bytes(Bytes::copy_from_slice(text.as_bytes())))
}

fn texts(stream: &Stream, from: u64, reader: u64) -> Vec<String> {
    let (mut found, mut at) = (Vec::new(), from);
    while let Next::Event(event) = stream.after(at, reader, Waker::noop()) {
        at = event.sequence;
        let Data::Bytes(bytes) = event.data else { panic!("a file") };
        found.push(String::from_utf8(bytes.to_vec()).unwrap());
    }
    found
}

#[tokio::test]
async fn a_lone_answer_is_plain_and_everything_else_is_events() {
    let second = Duration::from_secs(1);
    let stream = Stream::new(1, [id(1)], false);
    stream.push(data("answer"), Some(&id(1)));
    assert!(matches!(stream.first(second).await, First::Answer(_)));
    let stream = Stream::new(1, [id(1)], false);
    stream.push(data("progress"), None);
    assert!(matches!(stream.first(second).await, First::Events));
    let stream = Stream::new(1, [id(1)], false);
    assert!(matches!(stream.first(Duration::ZERO).await, First::Events));
    stream.end();
    assert!(matches!(stream.first(second).await, First::Nothing));
}

#[test]
fn a_reader_that_comes_back_gets_what_it_missed() {
    let stream = Stream::new(1, [id(1)], false);
    let first = stream.attach();
    stream.push(data("a"), None);
    stream.push(data("b"), None);
    assert_eq!(texts(&stream, 0, first), ["a", "b"]);
    stream.detach(first);
    stream.push(data("c\nd"), Some(&id(1)));
    assert!(!stream.is_attached() && !stream.is_spent());
    let second = stream.attach();
    assert!(matches!(stream.after(0, first, Waker::noop()), Next::End), "the first one has lost it");
    assert_eq!(texts(&stream, 1, second), ["b", "c d"]);
    assert!(stream.is_spent());
    assert!(matches!(stream.after(3, second, Waker::noop()), Next::End));
}

#[test]
fn a_client_that_takes_nothing_costs_bounded_memory_and_still_gets_its_answers() {
    let stream = Stream::new(1, [id(1)], false);
    let large = "x".repeat(100_000);
    for _ in 0..1000 {
        stream.push(data(&large), None);
    }
    assert!(stream.lock().held <= KEPT_BYTES + 100_000);
    stream.push(data("answer"), Some(&id(1)));
    let reader = stream.attach();
    assert_eq!(texts(&stream, 0, reader).last().map(String::as_str), Some("answer"));
    let stream = Stream::new(2, [], false);
    (0..10_000).for_each(|_| stream.push(data("x"), None));
    assert_eq!(stream.lock().events.len(), KEPT_EVENTS);
}

#[test]
fn a_client_that_is_slow_misses_no_change_of_a_list() {
    let stream = Stream::new(1, [], false);
    (0..KEPT_EVENTS).for_each(|_| stream.push(data("x"), None));
    let news = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    (0..10).for_each(|_| stream.push(data(news), None));
    let reader = stream.attach();
    let texts = texts(&stream, 0, reader);
    assert_eq!((texts.len(), texts.last().map(String::as_str)), (KEPT_EVENTS + 1, Some(news)));
    let next = stream.after(KEPT_EVENTS as u64 + 1, reader, Waker::noop());
    assert!(matches!(next, Next::Wait));
}

#[test]
fn taken_events_are_kept_up_to_a_bound() {
    let stream = Stream::new(1, [], false);
    let reader = stream.attach();
    let mut at = 0;
    for number in 0..2000 {
        stream.push(data(&number.to_string()), None);
        let Next::Event(event) = stream.after(at, reader, Waker::noop()) else { panic!("no event") };
        at = event.sequence;
    }
    assert_eq!(stream.lock().events.len(), KEPT_EVENTS);
}
