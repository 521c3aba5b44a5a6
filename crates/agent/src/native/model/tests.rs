//! Every protocol with every kind of reply, against the scripted model.

mod faults;
mod replies;
mod requests;
mod services;

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolway_secret::Secret;
use toolway_testkit::{ModelReply, ModelServer};

use super::*;

/// The key of these tests: it is nowhere but in the header.
const KEY: &str = "sk-live-0123456789abcdefghijKLMN";

/// The services whose protocols are spoken.
const OWN: [&str; 3] = ["openai::m", "openai-responses::gpt-5", "anthropic::claude-x"];
const ALL: [&str; 5] =
    ["openai::m", "openai-responses::gpt-5", "anthropic::claude-x", "gemini::gemini-x", "ollama::m"];

fn patience() -> Patience {
    Patience {
        attempts: 3,
        first_delay: Duration::from_millis(4),
        longest_delay: Duration::from_secs(2),
        silence: Duration::from_secs(20),
        reading: Duration::from_secs(20),
    }
}

fn models(server: &ModelServer, patience: Patience) -> RemoteModels {
    let access = ServiceAccess {
        api_key: Some(Secret::new(KEY)),
        base_url: Some(server.root()),
        ..ServiceAccess::default()
    };
    RemoteModels::new(access, patience)
}

fn choice(id: &str, params: &Value) -> ModelChoice {
    let params = params.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    ModelChoice { id: id.to_owned(), params: params.collect() }
}

fn model(server: &ModelServer, id: &str) -> Arc<dyn Model> {
    models(server, patience()).open(&choice(id, &Value::Null)).unwrap()
}

fn scripted(replies: &[Value]) -> ModelServer {
    ModelServer::replies(replies.iter().map(|reply| ModelReply::of(reply).unwrap())).unwrap()
}

/// What a model said, to its answer or its error.
#[derive(Debug, Default)]
struct Said {
    text: String,
    thinking: String,
    deltas: Vec<String>,
    retries: Vec<Duration>,
    end: Option<Result<ModelAnswer, AgentError>>,
}

impl Said {
    fn answer(&self) -> &ModelAnswer {
        match &self.end {
            Some(Ok(answer)) => answer,
            other => panic!("no answer: {other:?}"),
        }
    }

    fn error(&self) -> &AgentError {
        match &self.end {
            Some(Err(error)) => error,
            other => panic!("no error: {other:?}"),
        }
    }
}

async fn ask(model: &Arc<dyn Model>, messages: &[Message]) -> Said {
    ask_with(model, "", messages, &[]).await
}

async fn ask_with(model: &Arc<dyn Model>, system: &str, messages: &[Message], tools: &[ToolSpec]) -> Said {
    let request = ModelRequest { system, messages, tools, max_output: None };
    let mut stream = model.stream(&request, &CancellationToken::new());
    let mut said = Said::default();
    while let Some(event) = stream.next().await {
        assert!(said.end.is_none(), "an event after the end: {event:?}");
        match event {
            Ok(ModelEvent::Text(text)) => said.text.push_str(&text),
            Ok(ModelEvent::Thinking(text)) => said.thinking.push_str(&text),
            Ok(ModelEvent::CallDelta { arguments, .. }) => said.deltas.push(arguments),
            Ok(ModelEvent::Retry { delay, .. }) => said.retries.push(delay),
            Ok(ModelEvent::Done(answer)) => said.end = Some(Ok(answer)),
            Err(error) => said.end = Some(Err(error)),
        }
    }
    assert!(stream.next().await.is_none());
    said
}

fn hello() -> [Message; 1] {
    [Message::user("hello")]
}

fn tool(name: &str, schema: &Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: format!("does {name}"), schema: RawJson::of(schema) }
}
