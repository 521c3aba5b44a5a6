//! Owns the calls that a turn ends with: records are shown, tools of the chat run, at once where there are several.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolway_bridge::{HostResult, Replayed, ToolCall, activate};

use super::process::STOPPED;
use super::turn::ticks;
use super::{Chat, PROFILE};
use crate::exit::Exit;

/// Tools that run at the same time.
const AT_ONCE: usize = 8;

impl Chat {
    /// Does what the calls want, and shows what they gave. The results, in the order of the calls.
    pub(super) async fn calls(
        &mut self,
        calls: &[ToolCall],
        abort: &CancellationToken,
        ending: &mut Option<i32>,
    ) -> Result<Vec<HostResult>, Exit> {
        let mut results: Vec<Option<HostResult>> = calls.iter().map(|call| self.at_hand(call)).collect();
        let to_run = || calls.iter().enumerate();
        let waiting: Vec<_> =
            to_run().filter(|(at, _)| results.get(*at).is_some_and(Option::is_none)).collect();
        let is_alone = waiting.len() == 1;
        let (places, mut running) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
        // The person is asked one question after the other, in the order of the calls.
        let mut asked: Option<oneshot::Receiver<()>> = None;
        for (at, call) in waiting {
            if is_alone {
                self.screen.call(&call.name, call.arguments.text());
            }
            self.working.begins(call.id.as_str(), call.name.clone());
            let cancel = abort.child_token();
            self.host.begins(&call.id, &cancel);
            let (work, places) = (self.work(call, cancel), Arc::clone(&places));
            let (done, next) = oneshot::channel::<()>();
            let before = if self.tools.asks(&call.name) { asked.replace(next) } else { None };
            running.spawn(async move {
                if let Some(before) = before {
                    // It never says anything: it is dropped when that is done.
                    before.await.ok();
                }
                let _place = places.acquire().await;
                let result = work.await;
                drop(done);
                (at, result)
            });
        }
        let mut unshown = Vec::new();
        let mut tick = ticks();
        while !running.is_empty() {
            tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => if let Err(exit) = self.stop(signal, abort, ending) {
                    // Nothing of what runs is left behind.
                    running.shutdown().await;
                    return Err(exit);
                },
                Some(done) = running.join_next() => {
                    if let Ok((at, result)) = done
                        && let (Some(call), Some(place)) = (calls.get(at), results.get_mut(at))
                    {
                        let given_up = self.host.ended(&call.id).filter(|_| !abort.is_cancelled());
                        self.working.ended(call.id.as_str());
                        // Nobody stopped it but the bridge: its deadline, an agent that is gone.
                        *place = Some(given_up.map_or(result, |reason| HostResult::error(&reason)));
                        unshown.push(at);
                    }
                }
                _ = tick.tick() => self.draw(),
            }
            // A question that stands on the screen is not written over.
            if !self.console.is_held() || running.is_empty() {
                for at in unshown.drain(..) {
                    if let (Some(call), Some(Some(result))) = (calls.get(at), results.get(at)) {
                        if !is_alone {
                            self.screen.call(&call.name, call.arguments.text());
                        }
                        self.screen.result(&text_of(result), result.is_error);
                    }
                }
            }
        }
        let given = calls.iter().zip(results).map(|(call, result)| {
            result.unwrap_or_else(|| {
                self.host.ended(&call.id);
                self.working.ended(call.id.as_str());
                HostResult::error(&format!("the tool {:?} broke off", call.name))
            })
        });
        Ok(given.collect())
    }

    /// The result of a call that runs nothing: a record that is shown, or a call that nobody waits for.
    fn at_hand(&mut self, call: &ToolCall) -> Option<HostResult> {
        match self.session.replayed(&call.name, call.id.as_str()) {
            Replayed::Result(card) => {
                self.screen.card(&card);
                Some(HostResult::text(&card.text()))
            }
            Replayed::Failed { message, card } => {
                self.screen.card(&card);
                Some(HostResult::error(&message))
            }
            Replayed::Refused(refusal) => Some(HostResult::error(&refusal.to_string())),
            Replayed::Ordinary => self.session.admit(&call.id).err().map(|reason| HostResult::error(&reason)),
        }
    }

    /// The work of one call.
    fn work(
        &self,
        call: &ToolCall,
        cancel: CancellationToken,
    ) -> impl Future<Output = HostResult> + Send + use<> {
        let is_active = self.active().contains(&call.name);
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        let (tools, skills) = (Arc::clone(&self.tools), self.skills.clone());
        async move {
            if cancel.is_cancelled() {
                return HostResult::error(STOPPED);
            }
            if name == PROFILE.skill_tool {
                return match activate(&skills, &arguments).await {
                    Ok(activation) => activation.result(),
                    Err(error) => error.result(),
                };
            }
            if !is_active {
                return HostResult::error(&format!("there is no tool {name:?} here now"));
            }
            tools.run(&name, &arguments, &cancel).await
        }
    }
}

/// The texts of a result.
fn text_of(result: &HostResult) -> String {
    let tree = result.content.tree();
    let blocks = tree.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    texts.join("\n")
}
