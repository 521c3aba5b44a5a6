//! The table without a runtime: who is answered, who is told what, and that nothing is left.

mod any_order;

use std::collections::BTreeSet;

use super::*;
use crate::json::RawJson;
use crate::profile::Profile;

const D: Duration = Duration::from_secs(1);

struct Table {
    calls: Calls<u32>,
    start: Instant,
    now: Instant,
}

impl Table {
    fn new(most: usize) -> Self {
        let now = Instant::now();
        Self { calls: Calls::new(Ids::random(&Profile::PI).unwrap(), D, most), start: now, now }
    }

    fn origin(session: u64, request: u64) -> Origin {
        Origin { session, request: Id::from_number(request) }
    }

    fn begin(&mut self, request: u64, tool: usize, reply: u32) -> Result<CallId, Rejection> {
        let call = HostCall {
            id: CallId::new(""),
            tool: format!("tool{tool}"),
            mcp_name: format!("pi__tool{tool}"),
            arguments: RawJson::empty_object(),
        };
        let new = NewCall { origin: Self::origin(1, request), tool, call, reply };
        self.calls.begin(self.now, new).map(|(_, id)| id)
    }

    fn later(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    fn orders(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.calls.order()).map(|order| short(&order)).collect()
    }
}

fn short(order: &Order) -> String {
    let number = |id: &CallId| id.as_str().rsplit_once("-t").unwrap().1.to_owned();
    match order {
        Order::Start(call) => format!("start {}", number(&call.id)),
        Order::Cancelled(id, reason) => format!("cancel {}: {reason}", number(id)),
    }
}

fn replies(ended: &[Ended<u32>]) -> Vec<u32> {
    ended.iter().map(|ended| ended.reply).collect()
}

#[test]
fn calls_that_came_before_the_host_are_handed_over_in_order() {
    let mut table = Table::new(10);
    for n in 1..=3 {
        table.begin(n, 0, 0).unwrap();
    }
    assert_eq!(table.orders(), Vec::<String>::new());
    table.calls.bind();
    table.begin(4, 0, 0).unwrap();
    assert_eq!(table.orders(), ["start 1", "start 2", "start 3", "start 4"]);
    table.calls.bind();
    assert_eq!(table.orders(), Vec::<String>::new(), "a second registration is not handed them again");
}

#[test]
fn statement_23_old_settled_and_foreign_ids_change_nothing() {
    let mut table = Table::new(10);
    table.calls.bind();
    let (one, two) = (table.begin(1, 0, 1).unwrap(), table.begin(2, 0, 2).unwrap());
    assert_eq!(table.calls.claim(&one), Some(0));
    assert_eq!(table.calls.finish(&one).unwrap().reply, 1);
    let old = Ids::random(&Profile::PI).unwrap().call(2).unwrap();
    for id in [&one, &old, &CallId::new("toolu_1"), &CallId::new("")] {
        assert_eq!(table.calls.claim(id), None);
        assert!(table.calls.finish(id).is_none() && table.calls.end(id).is_none());
        assert!(table.calls.cancel(id, "x").is_none() && table.calls.not_started(id).is_none());
        assert!(!table.calls.is_pending(id) && table.calls.reply(id).is_none());
    }
    assert_eq!((table.calls.len(), table.calls.is_pending(&two)), (1, true));
}

#[test]
fn statement_24_ten_calls_have_ten_ids_of_at_most_64_characters() {
    let mut table = Table::new(10);
    let ids: BTreeSet<CallId> = (1..=10).map(|n| table.begin(n, 0, 0).unwrap()).collect();
    assert_eq!(ids.len(), 10);
    assert!(ids.iter().all(|id| id.as_str().len() <= 64 && id.is_bridge_call(&Profile::PI)));
}

#[test]
fn identical_requests_are_two_calls_and_a_cancellation_ends_the_newer() {
    let mut table = Table::new(10);
    table.calls.bind();
    let (one, two) = (table.begin(7, 0, 1).unwrap(), table.begin(7, 0, 2).unwrap());
    assert_ne!(one, two);
    let now = table.now;
    let ended = table.calls.cancel_request(now, Table::origin(1, 7), "x").unwrap();
    assert_eq!((ended.reply, table.calls.is_pending(&one)), (2, true));
    assert_eq!(table.calls.end(&one).unwrap().reply, 1);
}

#[test]
fn requests_are_told_apart_by_session_and_by_the_value_of_their_id() {
    let mut table = Table::new(10);
    table.begin(1, 0, 1).unwrap();
    let now = table.now;
    let of = |session, text: &str| Origin { session, request: Id::from_json(text.as_bytes()).unwrap() };
    assert!(table.calls.cancel_request(now, of(2, "1"), "x").is_none());
    assert!(table.calls.cancel_request(now, of(1, "\"1\""), "x").is_none());
    assert!(table.calls.cancel_request(now, of(1, "1.0"), "x").is_some());
}

#[test]
fn a_cancellation_that_overtakes_its_request_counts_for_a_while_and_once() {
    let mut table = Table::new(10);
    let now = table.now;
    assert!(table.calls.cancel_request(now, Table::origin(1, 1), "x").is_none());
    assert_eq!(table.begin(1, 0, 1).unwrap_err().kind, RejectionKind::Cancelled);
    assert!(table.begin(1, 0, 1).is_ok(), "a client that uses an id again is served");
    assert!(table.calls.cancel_request(now, Table::origin(1, 2), "x").is_none());
    table.later(5001);
    assert!(table.begin(2, 0, 2).is_ok());
}

#[test]
fn a_late_cancellation_does_not_meet_the_next_request_of_that_id() {
    let mut table = Table::new(10);
    let id = table.begin(1, 0, 1).unwrap();
    table.calls.end(&id).unwrap();
    let now = table.now;
    assert!(table.calls.cancel_request(now, Table::origin(1, 1), "x").is_none());
    assert!(table.begin(1, 0, 2).is_ok());
}

#[test]
fn cancellations_of_what_was_never_asked_are_bounded() {
    let mut table = Table::new(10);
    let now = table.now;
    for n in 0..100_000 {
        assert!(table.calls.cancel_request(now, Table::origin(1, n), "x").is_none());
    }
    assert!(table.begin(0, 0, 1).is_ok(), "the oldest are forgotten");
    assert!(table.begin(99_999, 0, 1).is_err());
}

#[test]
fn how_many_wait_is_bounded_with_an_error_that_says_so() {
    let mut table = Table::new(2);
    let id = table.begin(1, 0, 1).unwrap();
    table.begin(2, 0, 2).unwrap();
    let refused = table.begin(3, 0, 3).unwrap_err();
    assert_eq!(refused.kind, RejectionKind::Error);
    assert_eq!(refused.reason, "2 calls wait for the host already, no more are taken");
    table.calls.end(&id).unwrap();
    assert!(table.begin(4, 0, 4).is_ok());
}

#[test]
fn statement_26_an_expired_call_is_rejected_with_the_deadline_in_its_reason() {
    let mut table = Table::new(10);
    table.calls.bind();
    table.begin(1, 0, 1).unwrap();
    table.later(400);
    table.begin(2, 0, 2).unwrap();
    assert_eq!(table.orders(), ["start 1", "start 2"]);
    assert_eq!(table.calls.next_deadline(), Some(table.start + D));
    table.later(599);
    assert!(table.calls.expire(table.now).is_empty());
    table.later(1);
    assert_eq!(replies(&table.calls.expire(table.now)), [1]);
    assert_eq!(
        table.orders(),
        ["cancel 1: the host gave no result within 1000 ms, the bridge's deadline for a call"]
    );
    assert_eq!(table.calls.next_deadline(), Some(table.start + Duration::from_millis(1400)));
}

#[test]
fn the_deadline_counts_from_arrival_also_for_a_call_that_only_queued() {
    let mut table = Table::new(10);
    table.begin(1, 0, 1).unwrap();
    table.later(1000);
    assert_eq!(replies(&table.calls.expire(table.now)), [1]);
    table.calls.bind();
    assert_eq!(table.orders(), Vec::<String>::new(), "the host never hears of it");
}

#[test]
fn lesson_17_a_call_that_expired_is_not_handed_over_and_not_pending() {
    let mut table = Table::new(10);
    table.calls.bind();
    let id = table.begin(1, 0, 1).unwrap();
    table.later(1000);
    table.calls.expire(table.now);
    table.begin(2, 0, 2).unwrap();
    assert_eq!(table.orders(), ["start 2"]);
    assert!(!table.calls.is_pending(&id));
}

#[test]
fn a_result_that_is_being_made_can_expire_and_the_host_that_gave_it_is_not_told() {
    let mut table = Table::new(10);
    table.calls.bind();
    let id = table.begin(1, 0, 1).unwrap();
    table.orders();
    assert_eq!(table.calls.claim(&id), Some(0));
    assert_eq!(table.calls.claim(&id), None, "the second result of a host that answers twice");
    assert!(!table.calls.is_pending(&id) && table.calls.end(&id).is_none());
    table.later(1000);
    assert_eq!(replies(&table.calls.expire(table.now)), [1]);
    assert!(table.calls.finish(&id).is_none());
    assert_eq!(table.orders(), Vec::<String>::new());
}

#[test]
fn lesson_16_calls_after_the_live_run_ended_are_refused_until_there_is_another() {
    let mut table = Table::new(10);
    table.calls.bind();
    table.begin(1, 0, 1).unwrap();
    table.orders();
    assert_eq!(replies(&table.calls.detach()), [1]);
    assert_eq!(table.orders().len(), 1);
    let refused = table.begin(2, 0, 2).unwrap_err();
    assert_eq!(
        (refused.kind, refused.reason.contains("no active live run")),
        (RejectionKind::Cancelled, true)
    );
    table.calls.bind();
    table.begin(3, 0, 3).unwrap();
    assert_eq!(table.orders(), ["start 2"]);
}

#[test]
fn a_closed_table_refuses_with_the_reason_of_its_end() {
    let mut table = Table::new(10);
    table.begin(1, 0, 1).unwrap();
    assert_eq!(replies(&table.calls.close("the session ended")), [1]);
    table.calls.close("again");
    table.calls.bind();
    assert_eq!(table.begin(2, 0, 2).unwrap_err().reason, "the session ended");
}

#[test]
fn a_tools_calls_end_without_the_others() {
    let mut table = Table::new(10);
    table.calls.bind();
    for (n, tool) in [(1, 0), (2, 1), (3, 0)] {
        table.begin(u64::from(n), tool, n).unwrap();
    }
    table.orders();
    assert_eq!(replies(&table.calls.cancel_tool(0, "gone")), [1, 3]);
    assert_eq!(table.orders(), ["cancel 1: gone", "cancel 3: gone"]);
    assert_eq!(table.calls.len(), 1);
}
