//! Owns functions of the program itself as tools of a server called `custom-user-tools`.

mod server;

pub(crate) use server::CustomServer;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

type Running = Pin<Box<dyn Future<Output = Result<CustomOutput, String>> + Send>>;

/// What the server of such tools is called.
pub(crate) const CUSTOM_SERVER: &str = "custom-user-tools";

/// A function of the program that the model may call.
#[derive(Clone)]
pub struct CustomTool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The schema of its arguments; `None`: any object.
    pub input_schema: Option<Map<String, Value>>,
    /// The schema of its structured results, where it is declared. It is shown and not enforced.
    pub output_schema: Option<Map<String, Value>>,
    /// Hints as MCP has them, where they are declared: `readOnlyHint`, ...
    pub annotations: Option<Map<String, Value>>,
    run: Arc<dyn Fn(CustomCall) -> Running + Send + Sync>,
}

/// A call of such a function.
#[derive(Debug, Clone)]
pub struct CustomCall {
    /// The arguments, a JSON object, with the bytes that the model gave.
    pub arguments: RawJson,
    /// Nobody waits for it any more.
    pub cancel: CancellationToken,
}

/// What such a function gives.
#[derive(Debug, Clone, PartialEq)]
pub enum CustomOutput {
    /// A text.
    Text(String),
    /// A value: its JSON text, and an object also as `structuredContent`.
    Json(Value),
    /// A whole result: `content`, `isError`, `structuredContent`.
    Result(Map<String, Value>),
}

impl CustomTool {
    /// A function. An error that it gives is one that the model sees.
    pub fn new<F, R>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        F: Fn(CustomCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<CustomOutput, String>> + Send + 'static,
    {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: None,
            output_schema: None,
            annotations: None,
            run: Arc::new(move |call| Box::pin(run(call))),
        }
    }

    /// The schema of its arguments.
    #[must_use]
    pub fn with_schema(mut self, schema: Map<String, Value>) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Calls it.
    fn run(&self, call: CustomCall) -> Running {
        (self.run)(call)
    }
}

impl fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomTool").field("name", &self.name).finish_non_exhaustive()
    }
}
