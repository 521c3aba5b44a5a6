//! Owns the way of a host's result to the agent: made into MCP's form, bounded by the guard. What is small goes at once;
//! what is large, or may need the disk, goes to a thread that may block, a few at a time.

use bytes::Bytes;
use toolway_guard::{Action, Body, CallInfo, Guard};
use toolway_wire::{Scanner, Verdict};

use super::{Run, Settlement};
use crate::call::{CallId, HostResult};
use crate::calls::failed;
use crate::result;

/// Up to this size a result is made where it came, in bytes.
const AT_ONCE: usize = 64 << 10;
/// Without a guard a result may not be larger, in bytes.
const MOST_UNGUARDED: usize = 16 << 20;
/// Before and after a result in its message.
const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":";

impl Run {
    pub(super) fn settle_with(&self, id: &CallId, result: HostResult) -> Settlement {
        let Some(tool) = self.lock().calls.claim(id) else { return Settlement::Unknown };
        if self.is_at_once(&result) {
            self.finish(id, result::tool_result(&result), result.is_error);
            return Settlement::Delivered;
        }
        let (run, id, large) = (self.clone(), id.clone(), self.0.large.clone());
        let work = async move {
            // Never closed.
            let permit = large.acquire_owned().await;
            let (again, again_id) = (run.clone(), id.clone());
            let is_error = result.is_error;
            let made = tokio::task::spawn_blocking(move || {
                let made = run.make(tool, result);
                run.finish(&id, made, is_error);
            });
            if made.await.is_err() {
                let ended = again.lock().calls.finish(&again_id);
                again.reject(ended, failed("the host's result could not be handed on".to_owned()));
            }
            drop(permit);
        };
        self.0.tasks.spawn_on(work, &self.0.runtime);
        Settlement::Delivered
    }

    fn finish(&self, id: &CallId, answer: Bytes, is_error: bool) {
        let ended = self.lock().calls.finish(id);
        // Without one the deadline or the client was faster.
        if let Some(ended) = ended {
            self.answer(&ended, answer, is_error);
        }
    }

    /// Small, and certain to pass the guard as it is.
    fn is_at_once(&self, result: &HostResult) -> bool {
        let bytes = result.content.bytes().len();
        let passes = self.0.guard.as_deref().is_none_or(|guard| {
            let config = guard.config();
            // Text of JSON that is put into a string can double.
            config.tool_rules.is_empty() && 2 * bytes as u64 + 256 <= config.max_response_chars
        });
        passes && bytes <= AT_ONCE
    }

    /// The result as the agent gets it. May block.
    fn make(&self, tool: usize, host: HostResult) -> Bytes {
        let bytes = host.content.bytes().len();
        let Some(guard) = &self.0.guard else {
            if bytes > MOST_UNGUARDED {
                return result::too_large(bytes, MOST_UNGUARDED);
            }
            return result::tool_result(&host);
        };
        let tool = self.0.snapshot.exposed().get(tool).map(|tool| tool.tool.name.clone());
        let call = CallInfo {
            method: "tools/call".to_owned(),
            tool,
            uri: None,
            server: self.0.profile.server_key.to_owned(),
            session: self.0.saved_as.clone(),
        };
        let made = result::tool_result(&host);
        drop(host);
        guarded(guard, &call, made)
    }
}

/// A result as the guard lets it pass: unchanged, or saved and previewed.
fn guarded(guard: &Guard, call: &CallInfo, made: Bytes) -> Bytes {
    let mut message = Vec::with_capacity(HEAD.len() + made.len() + 1);
    message.extend_from_slice(HEAD);
    message.extend_from_slice(&made);
    message.push(b'}');
    let mut scanner = Scanner::new();
    let Verdict::Message(envelope) = scanner.whole(&message) else { return made };
    let Action::Replace { shape, limit } = guard.action(envelope, Some(call)) else { return made };
    drop(made);
    let replaced = guard.replace(envelope, Some(call), shape, limit, &mut Body::Memory(&message));
    let message = replaced.unwrap_or(message);
    let mut scanner = Scanner::new();
    let span = match scanner.whole(&message) {
        Verdict::Message(envelope) => envelope.result_span(),
        _ => None,
    };
    let span = span.and_then(|span| Some(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?));
    let message = Bytes::from(message);
    match span.filter(|span| span.end <= message.len()) {
        Some(span) => message.slice(span),
        None => result::error("the result was too large, and could not be made smaller"),
    }
}
