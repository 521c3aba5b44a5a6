//! Owns the MCP server that shows functions of the program as tools: one client, in memory. It knows no gateway.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolway_bridge::RawJson;
use toolway_proxy::gateway::Embedded;
use toolway_transport::memory::{self, MemoryEnd};
use toolway_transport::{Inbound, Members, Outbound, Payload, Transport as _};
use toolway_wire::{Envelope, INVALID_PARAMS, METHOD_NOT_FOUND};

use super::{CUSTOM_SERVER, CustomCall, CustomOutput, CustomTool, Running};

/// The largest message that is read: arguments of a call.
const LARGEST: usize = 64 << 20;
/// Calls at the same time.
const AT_ONCE: usize = 256;

/// The functions of one agent, as a server.
#[derive(Debug)]
pub(crate) struct CustomServer {
    tools: Arc<Vec<CustomTool>>,
    tasks: TaskTracker,
}

impl CustomServer {
    /// Its tasks are `tasks`' to wait for; each ends with its connection.
    pub(crate) fn new(tools: Vec<CustomTool>, tasks: TaskTracker) -> Self {
        Self { tools: Arc::new(tools), tasks }
    }
}

impl Embedded for CustomServer {
    fn connect(&self) -> MemoryEnd {
        let (ours, theirs) = memory::pair();
        let serving = Serving {
            tools: Arc::clone(&self.tools),
            end: ours,
            calls: JoinSet::new(),
            open: HashMap::new(),
        };
        self.tasks.spawn(serving.run());
        theirs
    }
}

/// One connection.
struct Serving {
    tools: Arc<Vec<CustomTool>>,
    end: MemoryEnd,
    calls: JoinSet<(String, Value)>,
    /// Calls on their way, by their id as JSON.
    open: HashMap<String, CancellationToken>,
}

/// What of a message is looked at.
#[derive(Deserialize)]
struct Asked<'a> {
    method: Option<String>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

impl Serving {
    async fn run(mut self) {
        let mut message = BytesMut::new();
        loop {
            let inbound = tokio::select! {
                inbound = self.end.receive() => inbound,
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    if let Ok((id, result)) = done && self.open.remove(&id).is_some() {
                        self.answer(&id, "result", &result).await;
                    }
                    continue;
                }
            };
            match inbound {
                Some(Inbound::Data { bytes, .. }) if message.len() + bytes.len() <= LARGEST => {
                    message.extend_from_slice(&bytes);
                }
                Some(Inbound::End { .. }) => {
                    let whole = message.split().freeze();
                    self.heard(&whole).await;
                }
                Some(Inbound::Data { .. } | Inbound::Closed { .. }) | None => break,
                Some(Inbound::Abort { .. }) => message.clear(),
                Some(Inbound::Failed { .. } | Inbound::Ready) => {}
            }
        }
        for cancel in self.open.values() {
            cancel.cancel();
        }
        self.calls.shutdown().await;
    }

    async fn heard(&mut self, message: &Bytes) {
        let Ok(asked) = serde_json::from_slice::<Asked<'_>>(message) else { return };
        let method = asked.method.as_deref().unwrap_or_default();
        let Some(id) = asked.id.map(|id| id.get().to_owned()) else {
            if let ("notifications/cancelled", Some(params)) = (method, asked.params)
                && let Ok(cancelled) = serde_json::from_str::<Cancelled<'_>>(params.get())
                && let Some(cancel) = self.open.remove(cancelled.request_id.get())
            {
                cancel.cancel();
            }
            return;
        };
        match method {
            "initialize" => {
                let result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": CUSTOM_SERVER, "version": env!("CARGO_PKG_VERSION")},
                });
                self.answer(&id, "result", &result).await;
            }
            "ping" => self.answer(&id, "result", &json!({})).await,
            "tools/list" => {
                let tools: Vec<Value> = self.tools.iter().map(definition).collect();
                self.answer(&id, "result", &json!({ "tools": tools })).await;
            }
            "tools/call" => match asked.params.map(|params| serde_json::from_str::<Call<'_>>(params.get())) {
                Some(Ok(call)) => self.call(id, &call, message).await,
                _ => self.refuse(&id, INVALID_PARAMS, "invalid params: a name is required").await,
            },
            _ => self.refuse(&id, METHOD_NOT_FOUND, "method not found").await,
        }
    }

    async fn call(&mut self, id: String, call: &Call<'_>, message: &Bytes) {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name) else {
            let text = format!("unknown tool: {:?}", call.name);
            self.refuse(&id, INVALID_PARAMS, &text).await;
            return;
        };
        if self.open.len() >= AT_ONCE {
            self.answer(&id, "result", &failure("too many calls at the same time")).await;
            return;
        }
        let arguments = call.arguments.map(|raw| message.slice_ref(raw.get().as_bytes()));
        let arguments = arguments.and_then(|bytes| RawJson::new(bytes).ok());
        let cancel = CancellationToken::new();
        let call =
            CustomCall { arguments: arguments.unwrap_or_else(RawJson::empty_object), cancel: cancel.clone() };
        self.open.insert(id.clone(), cancel.clone());
        let tool = tool.clone();
        self.calls.spawn(async move {
            // A function that panics is a tool that failed, and not the end of the others.
            let running = caught(tool.run(call));
            let result = tokio::select! {
                result = running => result,
                // Whoever cancelled has forgotten it: a function that does not listen is dropped.
                () = cancel.cancelled() => Err("cancelled".to_owned()),
            };
            (id, result.map_or_else(|reason| failure(&reason), shaped))
        });
    }

    async fn refuse(&mut self, id: &str, code: i64, message: &str) {
        self.answer(id, "error", &json!({ "code": code, "message": message })).await;
    }

    async fn answer(&mut self, id: &str, member: &str, value: &Value) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#);
        let message =
            Outbound { payload: Payload::Bytes(text.into()), members: Members::One(Envelope::default()) };
        if self.end.room().await
            && let Err(error) = self.end.send(message)
        {
            tracing::debug!(%error, "an answer of a custom tool is lost");
        }
    }
}

/// Runs a function; a panic is an error.
async fn caught(running: Running) -> Result<CustomOutput, String> {
    let mut tasks = JoinSet::new();
    tasks.spawn(running);
    match tasks.join_next().await {
        Some(Ok(result)) => result,
        Some(Err(error)) if error.is_panic() => Err("the tool panicked".to_owned()),
        _ => Err("the tool was ended".to_owned()),
    }
}

fn definition(tool: &CustomTool) -> Value {
    let mut definition = Map::new();
    definition.insert("name".to_owned(), tool.name.clone().into());
    definition.insert("description".to_owned(), tool.description.clone().into());
    let schema = tool.input_schema.clone().map(Value::Object);
    definition.insert("inputSchema".to_owned(), schema.unwrap_or_else(|| json!({"type": "object"})));
    if let Some(schema) = &tool.output_schema {
        definition.insert("outputSchema".to_owned(), Value::Object(schema.clone()));
    }
    if let Some(annotations) = &tool.annotations {
        definition.insert("annotations".to_owned(), Value::Object(annotations.clone()));
    }
    Value::Object(definition)
}

fn failure(reason: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": reason }], "isError": true })
}

/// What a function gave, as a `CallToolResult`.
fn shaped(output: CustomOutput) -> Value {
    match output {
        CustomOutput::Text(text) => json!({ "content": [{ "type": "text", "text": text }] }),
        CustomOutput::Json(value) => {
            let mut result = json!({ "content": [{ "type": "text", "text": value.to_string() }] });
            if let (Value::Object(_), Some(members)) = (&value, result.as_object_mut()) {
                members.insert("structuredContent".to_owned(), value);
            }
            result
        }
        CustomOutput::Result(mut result) => {
            // The protocol wants a list, also where there is nothing to say.
            if !result.get("content").is_some_and(Value::is_array) {
                result.insert("content".to_owned(), json!([]));
            }
            Value::Object(result)
        }
    }
}
