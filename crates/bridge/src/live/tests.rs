//! The queue's order, waits and drops, as a table of times: no runtime, no clock.

use super::*;
use crate::json::RawJson;

fn call(id: &str) -> HostCall {
    HostCall {
        id: CallId::new(id),
        tool: "read".to_owned(),
        mcp_name: "pi__read".to_owned(),
        arguments: RawJson::empty_object(),
    }
}

fn ids(calls: &[HostCall]) -> Vec<&str> {
    calls.iter().map(|call| call.id.as_str()).collect()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

type Queue = LiveQueue<&'static str>;

fn emitted(queue: &mut Queue, now: Instant) -> Option<Emit<&'static str>> {
    match queue.poll(now, |_| true) {
        Poll::Emit(emit) => Some(emit),
        _ => None,
    }
}

#[test]
fn statement_19_two_calls_within_75_ms_are_one_batch() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Call(call("a")), start);
    assert_eq!(queue.poll(start, |_| true), Poll::Wait(start + ms(75)));
    queue.push(LiveItem::Call(call("b")), start + ms(74));
    queue.usage();
    let Some(Emit::Calls(calls)) = emitted(&mut queue, start + ms(75)) else { panic!("no batch") };
    assert_eq!(ids(&calls), ["a", "b"]);
    assert_eq!(queue.poll(start + ms(75), |_| true), Poll::Empty);
}

#[test]
fn the_usage_record_is_waited_for_in_steps_of_25_ms_and_no_longer_than_125() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Call(call("a")), start);
    for (now, until) in
        [(0, 75), (75, 100), (99, 100), (100, 125), (125, 150), (150, 175), (175, 200), (199, 200)]
    {
        assert_eq!(queue.poll(start + ms(now), |_| true), Poll::Wait(start + ms(until)), "at {now} ms");
    }
    assert!(emitted(&mut queue, start + ms(200)).is_some());

    queue.push(LiveItem::Call(call("b")), start);
    assert_eq!(queue.poll(start + ms(80), |_| true), Poll::Wait(start + ms(100)));
    queue.usage();
    assert!(emitted(&mut queue, start + ms(100)).is_some());
}

#[test]
fn a_usage_record_counts_for_one_batch() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Call(call("a")), start);
    queue.usage();
    assert!(emitted(&mut queue, start + ms(75)).is_some());
    queue.push(LiveItem::Call(call("b")), start + ms(75));
    assert_eq!(queue.poll(start + ms(150), |_| true), Poll::Wait(start + ms(175)));
}

#[test]
fn kinds_are_told_apart_and_order_is_kept() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::AsTheyCome);
    for item in [
        LiveItem::Text("a".to_owned()),
        LiveItem::Text("b".to_owned()),
        LiveItem::Thinking("c".to_owned()),
        LiveItem::Call(call("1")),
        LiveItem::Call(call("2")),
        LiveItem::Replay("card"),
        LiveItem::Call(call("3")),
        LiveItem::Text("d".to_owned()),
    ] {
        queue.push(item, start);
    }
    let mut seen = Vec::new();
    while let Some(emit) = emitted(&mut queue, start) {
        seen.push(emit);
    }
    assert_eq!(
        seen,
        [
            Emit::Text("ab".to_owned()),
            Emit::Thinking("c".to_owned()),
            Emit::Calls(vec![call("1"), call("2")]),
            Emit::Replays(vec!["card"]),
            Emit::Calls(vec![call("3")]),
            Emit::Text("d".to_owned()),
        ]
    );
}

#[test]
fn lesson_17_a_batch_drops_calls_that_nobody_waits_for() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Call(call("gone")), start);
    queue.push(LiveItem::Call(call("kept")), start);
    queue.usage();
    let Poll::Emit(Emit::Calls(calls)) = queue.poll(start + ms(75), |id| id.as_str() == "kept") else {
        panic!("no batch")
    };
    assert_eq!(ids(&calls), ["kept"]);
}

#[test]
fn when_no_call_is_left_there_is_no_turn() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Call(call("gone")), start);
    assert_eq!(queue.poll(start + ms(500), |_| false), Poll::Empty);
    assert!(queue.is_empty());
}

#[test]
fn the_wait_begins_when_the_tool_comes_to_the_head() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Text("first".to_owned()), start);
    queue.push(LiveItem::Call(call("a")), start);
    assert_eq!(emitted(&mut queue, start + ms(50)), Some(Emit::Text("first".to_owned())));
    assert_eq!(queue.poll(start + ms(50), |_| true), Poll::Wait(start + ms(125)));
}

#[test]
fn a_host_that_asked_for_calls_as_they_come_never_waits() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::AsTheyCome);
    queue.push(LiveItem::Call(call("a")), start);
    assert_eq!(emitted(&mut queue, start), Some(Emit::Calls(vec![call("a")])));
}

#[test]
fn nothing_waits_after_the_run_ended() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Replay("card"), start);
    queue.end();
    assert_eq!(emitted(&mut queue, start), Some(Emit::Replays(vec!["card"])));
}

#[test]
fn what_nobody_waits_for_is_forgotten_wherever_it_is() {
    let start = Instant::now();
    let mut queue = Queue::new(Pace::Batches);
    queue.push(LiveItem::Text("text".to_owned()), start);
    queue.push(LiveItem::Call(call("a")), start);
    queue.push(LiveItem::Call(call("b")), start);
    queue.forget_stale(|id| id.as_str() == "b");
    assert_eq!(queue.len(), 2);
    assert_eq!(emitted(&mut queue, start), Some(Emit::Text("text".to_owned())));
    queue.end();
    assert_eq!(emitted(&mut queue, start), Some(Emit::Calls(vec![call("b")])));
}
