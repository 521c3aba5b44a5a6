//! A session between a host in this process and an agent that is a real MCP client: over the loopback socket.

mod client;
mod ports;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolway_bridge::{
    AssistantBlock, AssistantMessage, Block, Coordinator, Message, MessageBody, Profile, SessionOptions,
    StopReason, ToolCall,
};

use client::Client;
use ports::{Host, Port, request};

fn calls(message: &AssistantMessage) -> Vec<ToolCall> {
    let call = |block: &AssistantBlock| match block {
        AssistantBlock::ToolCall(call) => Some(call.clone()),
        _ => None,
    };
    message.content.iter().filter_map(call).collect()
}

fn result(call: &ToolCall, text: &str) -> Message {
    Message::new(MessageBody::ToolResult {
        tool_call_id: call.id.to_string(),
        tool_name: call.name.clone(),
        content: vec![Block::Text(text.to_owned())],
        is_error: false,
    })
}

#[tokio::test]
async fn statement_18_over_the_socket_the_call_comes_back_to_the_same_agent_run() -> Result<()> {
    let host = Arc::new(Host::with(&["read", "todo"]));
    let (port, mut agents) = Port::new();
    let coordinator = Coordinator::new(port);
    let mut options = SessionOptions::new("one", Profile::PI);
    let mut settings = toolway_bridge::Settings::default();
    settings.tools.bridge.expose_builtins = true;
    options.settings = Arc::new(settings);
    let session = coordinator.open(host, options)?;
    let abort = CancellationToken::new();
    let mut messages = vec![Message::user("read a.txt")];
    let turn = session.turn(request(&messages, &abort)).await;
    let mut agent = agents.recv().await.context("no agent")?;
    let prompt = agent.prompt().await?;
    assert!(prompt.text.contains("pi__read"), "{}", prompt.text);
    let client = Client::connect(&agent.options).await?;
    assert_eq!(client.tools().await?, ["pi__read", "pi__todo"]);
    let arguments = json!({"path": "a.txt"});
    let call = client.call(1, "pi__read", &arguments);
    let host = async {
        let message = turn.message().await;
        assert_eq!(message.stop, StopReason::ToolUse);
        let read = calls(&message).first().cloned().context("no call")?;
        assert_eq!((read.name.as_str(), read.arguments.text()), ("read", r#"{"path":"a.txt"}"#));
        assert!(read.id.as_str().starts_with(Profile::PI.run_prefix));
        session.admit(&read.id).map_err(anyhow::Error::msg)?;
        messages.push(result(&read, "what a.txt says"));
        Ok::<_, anyhow::Error>(session.turn(request(&messages, &abort)).await)
    };
    let (answered, turn) = tokio::join!(call, host);
    assert_eq!(answered?["result"]["content"][0]["text"], "what a.txt says");
    let turn = turn?;
    agent.finish("It says that.").await?;
    let message = turn.message().await;
    assert_eq!(
        (message.stop, message.content),
        (StopReason::Stop, vec![AssistantBlock::Text("It says that.".to_owned())])
    );
    assert!(agent.prompts.try_recv().is_err(), "sent once");
    assert!(agents.try_recv().is_err(), "created once");
    let facts = session.run().context("no run")?.facts();
    assert_eq!((facts.exposed, facts.connected, facts.listed, facts.called), (2, 1, 1, 1));
    session.shutdown("the end").await;
    Ok(())
}

#[tokio::test]
async fn statement_30_over_the_socket_calls_are_rejected_before_the_server_closes() -> Result<()> {
    let host = Arc::new(Host::with(&["todo"]));
    let (port, mut agents) = Port::new();
    let coordinator = Coordinator::new(port);
    let session = coordinator.open(Arc::clone(&host) as _, SessionOptions::new("one", Profile::HOST))?;
    let abort = CancellationToken::new();
    let turn = session.turn(request(&[Message::user("go")], &abort)).await;
    let mut agent = agents.recv().await.context("no agent")?;
    agent.prompt().await?;
    let client = Client::connect(&agent.options).await?;
    let arguments = json!({});
    let call = client.call(7, "host__todo", &arguments);
    let end = async {
        let message = turn.message().await;
        coordinator.shutdown("interrupted by the user").await;
        calls(&message).first().map(|call| call.id.clone())
    };
    let (answered, id) = tokio::join!(call, end);
    let answered = answered?;
    let told = answered["error"]["message"].as_str().context("no error")?;
    assert!(told.contains("interrupted by the user"), "{told}");
    assert_eq!(host.aborted(), [(id.context("no call")?.to_string(), "interrupted by the user".to_owned())]);
    assert!(Client::connect(&agent.options).await.is_err(), "the port is closed");
    agent.disposed.cancelled().await;
    Ok(())
}

#[tokio::test]
async fn statement_33_over_the_socket_a_childs_end_leaves_the_parents_call_alone() -> Result<()> {
    let host = Arc::new(Host::with(&["todo"]));
    let (port, mut agents) = Port::new();
    let coordinator = Coordinator::new(port);
    let parent = coordinator.open(Arc::clone(&host) as _, SessionOptions::new("parent", Profile::PI))?;
    let abort = CancellationToken::new();
    let mut messages = vec![Message::user("delegate")];
    let turn = parent.turn(request(&messages, &abort)).await;
    let mut agent = agents.recv().await.context("no agent")?;
    agent.prompt().await?;
    let client = Client::connect(&agent.options).await?;
    let arguments = json!({});
    let call = client.call(1, "pi__todo", &arguments);
    let work = async {
        let message = turn.message().await;
        let delegated = calls(&message).first().cloned().context("no call")?;
        let child = coordinator.open(Arc::clone(&host) as _, SessionOptions::new("child", Profile::PI))?;
        let inner = child.turn(request(&[Message::user("sub task")], &CancellationToken::new())).await;
        let mut other = agents.recv().await.context("no agent of the child")?;
        other.prompt().await?;
        let others = Client::connect(&other.options).await?;
        assert_eq!(others.tools().await?, ["pi__todo"]);
        other.finish("sub answer").await?;
        inner.message().await;
        child.shutdown("the child is done").await;
        assert!(Client::connect(&other.options).await.is_err());
        messages.push(result(&delegated, "sub answer"));
        Ok::<_, anyhow::Error>(parent.turn(request(&messages, &abort)).await)
    };
    let (answered, turn) = tokio::join!(call, work);
    assert_eq!(answered?["result"]["content"][0]["text"], "sub answer");
    agent.finish("done").await?;
    assert_eq!(turn?.message().await.stop, StopReason::Stop);
    Ok(())
}

#[tokio::test]
async fn statement_09_without_host_tools_no_server_is_injected() -> Result<()> {
    let host = Arc::new(Host::with(&[]));
    let (port, mut agents) = Port::new();
    let coordinator = Coordinator::new(port);
    let session = coordinator.open(host, SessionOptions::new("one", Profile::PI))?;
    let turn = session.turn(request(&[Message::user("go")], &CancellationToken::new())).await;
    let mut agent = agents.recv().await.context("no agent")?;
    agent.prompt().await?;
    assert!(agent.options.mcp_servers.is_empty());
    agent.finish("by my own tools").await?;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
    Ok(())
}
