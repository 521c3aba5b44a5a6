//! Whatever happens in whatever order: each call is answered once, the host is told what it must know, nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Begin { request: u64, tool: usize },
    Bind,
    Detach,
    Order,
    NotStarted,
    Claim(usize),
    Finish(usize),
    End(usize),
    Cancel(usize),
    CancelRequest(u64),
    CancelSession,
    CancelTool(usize),
    CancelAll,
    Later(u64),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..6u64, 0..3usize).prop_map(|(request, tool)| Step::Begin { request, tool }),
        2 => Just(Step::Bind),
        1 => Just(Step::Detach),
        8 => Just(Step::Order),
        1 => Just(Step::NotStarted),
        3 => (0..12usize).prop_map(Step::Claim),
        3 => (0..12usize).prop_map(Step::Finish),
        2 => (0..12usize).prop_map(Step::End),
        2 => (0..12usize).prop_map(Step::Cancel),
        2 => (0..6u64).prop_map(Step::CancelRequest),
        1 => Just(Step::CancelSession),
        1 => (0..3usize).prop_map(Step::CancelTool),
        1 => Just(Step::CancelAll),
        4 => (0..700u64).prop_map(Step::Later),
        1 => Just(Step::Close),
    ]
}

/// What must hold, whatever happens.
#[derive(Default)]
struct Model {
    ids: Vec<CallId>,
    begun: BTreeMap<u32, CallId>,
    ended: BTreeSet<u32>,
    started: Vec<CallId>,
    cancelled: BTreeSet<CallId>,
    /// Ended by the host, or never taken by it.
    by_host: BTreeSet<CallId>,
    /// The host is just being told of it.
    fresh: Option<CallId>,
}

impl Model {
    fn end(&mut self, ended: impl IntoIterator<Item = Ended<u32>>) {
        for ended in ended {
            assert_eq!(self.begun.get(&ended.reply), Some(&ended.id));
            assert!(self.ended.insert(ended.reply), "call {} is answered twice", ended.n);
        }
    }

    fn order(&mut self, order: Order) {
        self.fresh = None;
        match order {
            Order::Start(call) => {
                assert!(!self.started.contains(&call.id), "{} is started twice", call.id);
                self.started.push(call.id.clone());
                self.fresh = Some(call.id);
            }
            Order::Cancelled(id, _) => {
                assert!(self.started.contains(&id), "{id} is cancelled without a start");
                assert!(!self.by_host.contains(&id), "{id} was ended by the host");
                assert!(self.cancelled.insert(id), "a call is cancelled twice");
            }
        }
    }

    fn id(&self, at: usize) -> CallId {
        // From the newest: those are most likely alive.
        self.ids.iter().rev().nth(at).cloned().unwrap_or_else(|| CallId::new("cursor-pi-bridge-run-x-t1"))
    }

    fn take(&mut self, table: &mut Table, at: usize, step: Step) {
        let (id, now) = (self.id(at), table.now);
        let host = |ended: &Option<Ended<u32>>| ended.is_some().then(|| id.clone());
        match step {
            Step::Begin { request, tool } => {
                let reply = u32::try_from(self.begun.len()).unwrap();
                if let Ok(id) = table.begin(request, tool, reply) {
                    self.begun.insert(reply, id.clone());
                    self.ids.push(id);
                }
            }
            Step::Bind => table.calls.bind(),
            Step::Detach => self.end(table.calls.detach()),
            Step::Order => {
                if let Some(order) = table.calls.order() {
                    self.order(order);
                }
            }
            // The answer to the last order, before the next.
            Step::NotStarted => {
                if let Some(id) = self.fresh.take() {
                    let ended = table.calls.not_started(&id);
                    self.by_host.insert(id);
                    self.end(ended);
                }
            }
            Step::Claim(_) => {
                if table.calls.claim(&id).is_some() {
                    assert!(self.by_host.insert(id), "two results of a call");
                }
            }
            Step::Finish(_) => self.end(table.calls.finish(&id)),
            Step::End(_) => {
                let ended = table.calls.end(&id);
                self.by_host.extend(host(&ended));
                self.end(ended);
            }
            Step::Cancel(_) => self.end(table.calls.cancel(&id, "x")),
            Step::CancelRequest(request) => {
                self.end(table.calls.cancel_request(now, Table::origin(1, request), "x"));
            }
            Step::CancelSession => self.end(table.calls.cancel_session(1, "x")),
            Step::CancelTool(tool) => self.end(table.calls.cancel_tool(tool, "x")),
            Step::CancelAll => self.end(table.calls.cancel_all("x")),
            Step::Later(ms) => {
                table.later(ms);
                self.end(table.calls.expire(table.now));
                assert!(table.calls.next_deadline().is_none_or(|next| next > table.now));
            }
            Step::Close => self.end(table.calls.close("x")),
        }
        assert_eq!(table.calls.len(), self.begun.len() - self.ended.len());
    }
}

proptest! {
    #[test]
    fn every_call_is_answered_once_and_nothing_is_left(steps in prop::collection::vec(step(), 0..80)) {
        let (mut table, mut model) = (Table::new(8), Model::default());
        for step in steps {
            let at = match &step {
                Step::Claim(at) | Step::Finish(at) | Step::End(at) | Step::Cancel(at) => *at,
                _ => 0,
            };
            model.take(&mut table, at, step);
        }
        model.end(table.calls.close("over"));
        while let Some(order) = table.calls.order() {
            model.order(order);
        }
        prop_assert_eq!(model.ended.len(), model.begun.len());
        prop_assert_eq!(table.calls.len(), 0);
        prop_assert!(table.calls.requests.is_empty() && table.calls.notes.is_empty());
        // A host that was told to run a call, and gave it no end, was told to stop it.
        for id in &model.started {
            prop_assert_eq!(model.cancelled.contains(id), !model.by_host.contains(id));
        }
    }
}
