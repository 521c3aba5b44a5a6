//! Owns the way of a host's result to the agent: made into MCP's form, bounded by the guard. What is small and passes
//! goes at once; what is large, or needs the disk, goes to a thread that may block, a few at a time.

use std::sync::Arc;

use bytes::Bytes;
use toolway_guard::{Action, Body, CallInfo, Guard, Shape};
use toolway_wire::{Envelope, Scanner, Verdict};

use super::{Run, Settlement};
use crate::call::{CallId, HostResult};
use crate::calls::failed;
use crate::result;
use crate::skills::skill_tool;

/// Up to this size a result is made where it came, in bytes.
const AT_ONCE: usize = 64 << 10;
/// Without a guard a result may not be larger, in bytes.
const MOST_UNGUARDED: usize = 16 << 20;
/// Before a result in its message.
const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":";

impl Run {
    pub(super) fn settle_with(&self, id: &CallId, host: HostResult) -> Settlement {
        let Some(tool) = self.lock().calls.claim(id) else { return Settlement::Unknown };
        let is_error = host.is_error;
        if host.content.bytes().len() > AT_ONCE {
            self.elsewhere(id, is_error, move |run| run.make(tool, host).unwrap_or_else(Oversized::replace));
            return Settlement::Delivered;
        }
        match self.make(tool, host) {
            Ok(made) => self.finish(id, made, is_error),
            Err(oversized) => self.elsewhere(id, is_error, |_| oversized.replace()),
        }
        Settlement::Delivered
    }

    /// Finishes a call on a thread that may block.
    fn elsewhere(&self, id: &CallId, is_error: bool, make: impl FnOnce(&Self) -> Bytes + Send + 'static) {
        let (run, id, large) = (self.clone(), id.clone(), Arc::clone(&self.0.large));
        let work = async move {
            // Never closed.
            let permit = large.acquire_owned().await;
            let (blocking, of) = (run.clone(), id.clone());
            let made = tokio::task::spawn_blocking(move || {
                let made = make(&blocking);
                blocking.finish(&of, made, is_error);
            });
            if made.await.is_err() {
                let ended = run.lock().calls.finish(&id);
                run.reject(ended, failed("the host's result could not be handed on".to_owned()));
            }
            drop(permit);
        };
        self.0.tasks.spawn_on(work, &self.0.runtime);
    }

    fn finish(&self, id: &CallId, answer: Bytes, is_error: bool) {
        let ended = self.lock().calls.finish(id);
        // Without one the deadline or the client was faster.
        if let Some(ended) = ended {
            self.answer(&ended, answer, is_error);
        }
    }

    /// A skill is of no use in part, and has a bound of its own: a mebibyte, cut with a note.
    fn bounds_itself(&self, tool: usize) -> bool {
        let profile = &self.0.profile;
        let exposed = self.0.snapshot.exposed().get(tool);
        exposed.is_some_and(|it| it.tool.name == profile.skill_tool && it.tool == skill_tool(profile))
    }

    /// The result as the agent gets it, unless the guard has to replace it. Does no I/O.
    fn make(&self, tool: usize, host: HostResult) -> Result<Bytes, Box<Oversized>> {
        let bytes = host.content.bytes().len();
        let Some(guard) = self.0.guard.as_ref().filter(|_| !self.bounds_itself(tool)) else {
            let fits = bytes <= MOST_UNGUARDED;
            return Ok(if fits {
                result::tool_result(&host)
            } else {
                result::too_large(bytes, MOST_UNGUARDED)
            });
        };
        let made = result::tool_result(&host);
        drop(host);
        let config = guard.config();
        let message = (HEAD.len() + made.len() + 1) as u64;
        if config.tool_rules.is_empty() && message <= config.max_response_chars {
            return Ok(made);
        }
        let tool = self.0.snapshot.exposed().get(tool).map(|tool| tool.tool.name.clone());
        let call = CallInfo {
            method: "tools/call".to_owned(),
            tool,
            uri: None,
            server: self.0.profile.server_key.to_owned(),
            session: self.0.saved_as.clone(),
        };
        Oversized::check(guard, call, made)
    }
}

/// A result that the guard replaces: saved, and previewed.
struct Oversized {
    guard: Arc<Guard>,
    call: CallInfo,
    message: Vec<u8>,
    envelope: Envelope,
    shape: Shape,
    limit: u64,
}

impl Oversized {
    /// The result, if it passes as it is.
    fn check(guard: &Arc<Guard>, call: CallInfo, made: Bytes) -> Result<Bytes, Box<Self>> {
        let mut message = Vec::with_capacity(HEAD.len() + made.len() + 1);
        message.extend_from_slice(HEAD);
        message.extend_from_slice(&made);
        message.push(b'}');
        let mut scanner = Scanner::new();
        let Verdict::Message(envelope) = scanner.whole(&message) else { return Ok(made) };
        let Action::Replace { shape, limit } = guard.action(envelope, Some(&call)) else { return Ok(made) };
        let (guard, envelope) = (Arc::clone(guard), envelope.clone());
        Err(Box::new(Self { guard, call, message, envelope, shape, limit }))
    }

    /// What goes in its place. May block.
    #[expect(clippy::boxed_local, reason = "it comes in its box, as an error")]
    fn replace(self: Box<Self>) -> Bytes {
        let Self { guard, call, message, envelope, shape, limit } = *self;
        let replaced = guard.replace(&envelope, Some(&call), shape, limit, &mut Body::Memory(&message));
        let message = replaced.unwrap_or(message);
        let mut scanner = Scanner::new();
        let span = match scanner.whole(&message) {
            Verdict::Message(envelope) => envelope.result_span(),
            _ => None,
        };
        let span =
            span.and_then(|span| Some(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?));
        let message = Bytes::from(message);
        match span.filter(|span| span.end <= message.len()) {
            Some(span) => message.slice(span),
            None => result::error("the result was too large, and could not be made smaller"),
        }
    }
}
