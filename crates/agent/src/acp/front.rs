//! Owns the gate before the servers that an agent behind the protocol calls by itself: rules and hooks are asked about
//! each call, whether or not the agent has asked for permission. It knows no gateway.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::open_calls::OpenCalls;
use crate::engine::EngineTurn;
use crate::generation::{FrontCall, FrontGate, Generation, McpTarget};
use crate::hooks::HookFacts;
use crate::policy::{After, Gate, ToolUse, Verdict};

/// Asks on behalf of one run.
pub(super) struct Asked {
    gate: Gate,
    facts: HookFacts,
    servers: Weak<Generation>,
    calls: OpenCalls,
    cancel: CancellationToken,
}

impl Asked {
    pub(super) fn new(
        gate: &Gate,
        turn: &EngineTurn,
        roots: &[std::path::PathBuf],
        calls: &OpenCalls,
    ) -> Self {
        Self {
            gate: gate.clone(),
            facts: HookFacts {
                conversation_id: turn.agent.to_string(),
                generation_id: turn.run.to_string(),
                model: turn.model.id.clone(),
                cwd: turn.cwd.clone(),
                roots: roots.to_vec(),
            },
            // The servers hold whoever asks.
            servers: Arc::downgrade(&turn.servers),
            calls: calls.clone(),
            cancel: turn.cancel.clone(),
        }
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl FrontGate for Asked {
    fn call_id(&self, target: &McpTarget) -> String {
        self.calls.claim(&target.server, &target.tool, &target.arguments)
    }

    fn before(
        &self,
        FrontCall { id, target }: FrontCall,
    ) -> Pin<Box<dyn Future<Output = Result<RawJson, String>> + Send + '_>> {
        Box::pin(async move {
            let Some(servers) = self.servers.upgrade() else {
                return Err("the servers of this run have ended".to_owned());
            };
            let server = servers.server_use(&target.server);
            let no_actions = |_: &RawJson| Vec::new();
            let tool_use = ToolUse {
                call_id: &id,
                tool: &target.tool,
                server: Some(&server),
                input: target.arguments,
                actions: &no_actions,
                facts: &self.facts,
            };
            match self.gate.before(&tool_use, &self.cancel).await {
                Verdict::Go(input) => Ok(input),
                Verdict::Refused(text) => Err(text),
            }
        })
    }

    fn hears(&self) -> bool {
        self.gate.hears()
    }

    fn after(
        &self,
        FrontCall { id, target }: FrontCall,
        result: RawJson,
        duration: Duration,
    ) -> Pin<Box<dyn Future<Output = RawJson> + Send + '_>> {
        Box::pin(async move {
            let Some(servers) = self.servers.upgrade() else { return result };
            let server = servers.server_use(&target.server);
            let no_actions = |_: &RawJson| Vec::new();
            let tool_use = ToolUse {
                call_id: &id,
                tool: &target.tool,
                server: Some(&server),
                input: target.arguments.clone(),
                actions: &no_actions,
                facts: &self.facts,
            };
            let after = self.gate.after(&tool_use, &target.arguments, &result, duration, &self.cancel).await;
            heard(result, after)
        })
    }
}

/// The result as hooks leave it.
fn heard(result: RawJson, after: After) -> RawJson {
    let After { result: other, withheld, context } = after;
    if let Some(text) = withheld {
        return RawJson::of(&json!({"content": [{"type": "text", "text": text}], "isError": true}));
    }
    let result = other.unwrap_or(result);
    if context.is_empty() {
        return result;
    }
    let mut tree = result.tree();
    let blocks = context.into_iter().map(|text| json!({"type": "text", "text": text}));
    match tree.get_mut("content").and_then(Value::as_array_mut) {
        Some(content) => content.extend(blocks),
        None => return result,
    }
    RawJson::of(&tree)
}
