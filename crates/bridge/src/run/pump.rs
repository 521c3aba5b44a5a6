//! Owns the handing over of calls to the host: in order, one at a time, never under the run's mutex.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;

use super::{CallSink, Inner, Run, State};
use crate::call::CallId;
use crate::calls::{Order, failed};

/// Who takes the calls, and who is telling them.
#[derive(Default)]
pub(super) struct Hands {
    sink: Option<Box<dyn CallSink>>,
    /// Counts registrations: an older sink is told nothing more.
    generation: u64,
    /// The sink is out, being told.
    telling: bool,
}

/// A registration of a sink. It can end itself, but not a newer one; dropping it changes nothing.
#[derive(Clone)]
pub struct Binding {
    run: Weak<Inner>,
    generation: u64,
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding").field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl Binding {
    /// As [`Run::detach`], where no newer registration has taken over.
    pub fn detach(&self) {
        if let Some(run) = self.current() {
            run.detach();
        }
    }

    /// As [`Run::admit`], where no newer registration has taken over; else it is for the newer one to say.
    pub fn admit(&self, id: &CallId) -> Result<(), String> {
        self.current().map_or(Ok(()), |run| run.admit(id))
    }

    /// No newer registration has taken over.
    pub fn is_current(&self) -> bool {
        self.current().is_some()
    }

    fn current(&self) -> Option<Run> {
        let run = Run(self.run.upgrade()?);
        let current = run.lock().hands.generation == self.generation;
        current.then_some(run)
    }
}

impl Run {
    /// Calls go to that sink now, those that queued first, in order. A sink that was bound before is told nothing more.
    pub fn bind(&self, sink: Box<dyn CallSink>) -> Binding {
        let (older, generation) = {
            let mut state = self.lock();
            state.hands.generation += 1;
            let generation = state.hands.generation;
            if self.is_disposed() {
                (Some(sink), generation)
            } else {
                state.calls.bind();
                (state.hands.sink.replace(sink), generation)
            }
        };
        // What a sink does when it is dropped is not done under the mutex.
        drop(older);
        self.pump();
        Binding { run: std::sync::Arc::downgrade(&self.0), generation }
    }

    /// Nobody takes calls any more: those on their way are given up, later ones are refused at once.
    pub fn detach(&self) {
        let (ended, reason) = {
            let mut state = self.lock();
            (state.calls.detach(), crate::calls::NO_LIVE_RUN)
        };
        self.reject_all(ended, reason);
        self.pump();
    }

    /// Tells the sink what it is to be told, unless somebody is at it, who will do that too.
    pub(super) fn pump(&self) {
        let Some((mut sink, mut generation)) = self.lock().take_sink() else { return };
        loop {
            let (order, older) = {
                let mut state = self.lock();
                let older = (state.hands.generation != generation)
                    .then(|| state.hands.sink.take())
                    .flatten()
                    .map(|newer| std::mem::replace(&mut sink, newer));
                generation = state.hands.generation;
                (state.calls.order(), older)
            };
            drop(older);
            let Some(order) = order else {
                match self.put_back(sink) {
                    Some((again, newer)) => (sink, generation) = (again, newer),
                    None => return,
                }
                continue;
            };
            match order {
                Order::Start(call) => {
                    let id = call.id.clone();
                    let started = catch_unwind(AssertUnwindSafe(|| sink.started(call)));
                    if let Err(reason) = started.unwrap_or_else(|_| Err("its handler broke off".to_owned())) {
                        let ended = self.lock().calls.not_started(&id);
                        if let Some(ended) = ended {
                            self.end_with(
                                &ended,
                                failed(format!("the host could not take the call: {reason}")),
                            );
                        }
                    }
                }
                Order::Cancelled(id, reason) => {
                    // One that breaks off must not keep the others from being told.
                    catch_unwind(AssertUnwindSafe(|| sink.cancelled(&id, &reason))).ok();
                }
            }
        }
    }

    /// Gives the sink back when there is nothing left to tell. `Some`: something came meanwhile, go on with this one.
    fn put_back(&self, sink: Box<dyn CallSink>) -> Option<(Box<dyn CallSink>, u64)> {
        let mut state = self.lock();
        state.hands.telling = false;
        let newer = state.hands.sink.is_some();
        let dropped = if newer || !state.calls.is_bound() {
            Some(sink)
        } else {
            state.hands.sink = Some(sink);
            None
        };
        let again = state.take_sink();
        drop(state);
        drop(dropped);
        again
    }
}

impl State {
    /// The sink, if it is there and there is something to tell it. Whoever took it must put it back.
    fn take_sink(&mut self) -> Option<(Box<dyn CallSink>, u64)> {
        if self.hands.telling || (self.calls.is_bound() && !self.calls.has_orders()) {
            return None;
        }
        let sink = self.hands.sink.take()?;
        self.hands.telling = true;
        Some((sink, self.hands.generation))
    }
}
