//! Turns over the protocol, with an agent that a test holds by its strings.

mod calls;
mod ends;
mod puppet;

use std::sync::Arc;

use super::*;
use crate::agent_port::{AgentEnd, AgentEvent, AgentFailure, AgentMode, Usage};
use crate::coordinator::Coordinator;
use crate::protocol::agents::Agents;
use crate::run::Waiter;
use puppet::{Port, Puppet};

/// A connection with agents behind it.
struct Stage {
    connection: Connection,
    agents: mpsc::Receiver<Puppet>,
    last: u64,
    requests: u64,
    notes: VecDeque<Value>,
}

impl Stage {
    /// Host tools `todo` and `sem`.
    async fn new() -> Self {
        let (made, agents) = mpsc::channel(4);
        let coordinator: Arc<dyn Agents> = Arc::new(Coordinator::new(Port(made)));
        let config = HostProtocolConfig { profile: Some(Profile::PI), ..config() };
        let connection = Connection::new(config, Some(coordinator));
        let mut stage = Self { connection, agents, last: 0, requests: 0, notes: VecDeque::new() };
        let hello = json!({"protocolVersion": 1, "host": {"name": "h"}});
        assert_eq!(stage.ask("initialize", hello).await["turns"], true);
        stage.declare(&["todo", "sem"]).await;
        stage
    }

    /// What is written next.
    async fn line(&mut self) -> Value {
        loop {
            if let Some(line) = self.connection.next_line() {
                return serde_json::from_slice(&line).unwrap();
            }
            let Connection { inbox, work, turns, .. } = &mut self.connection;
            tokio::select! {
                biased;
                () = inbox.changed() => self.connection.on_arrivals(Instant::now()),
                Some(done) = work.join_next() => self.connection.on_done(done.unwrap()),
                Some(told) = turns.told() => self.connection.turn_told(told),
            }
        }
    }

    /// The result, or the error; notifications that come before it are kept.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        self.connection.on_line(request(self.last, method, &params), Instant::now());
        loop {
            let line = self.line().await;
            if line["id"] == self.last {
                return line.get("result").or(line.get("error")).unwrap().clone();
            }
            self.notes.push_back(line);
        }
    }

    /// The next notification.
    async fn note(&mut self) -> (String, Value) {
        let mut note = match self.notes.pop_front() {
            Some(note) => note,
            None => self.line().await,
        };
        let method = note["method"].as_str().unwrap_or_else(|| panic!("{note}")).to_owned();
        (method, note["params"].take())
    }

    /// What that turn says next.
    async fn event(&mut self, turn: u64) -> Value {
        let (method, mut params) = self.note().await;
        assert_eq!((method.as_str(), &params["turn"]), ("turn/event", &json!(turn)), "{params}");
        params["event"].take()
    }

    /// The end of that turn; what comes before it is left out.
    async fn end(&mut self, turn: u64) -> Value {
        loop {
            let event = self.event(turn).await;
            if event["kind"] == "end" {
                return event;
            }
        }
    }

    async fn declare(&mut self, tools: &[&str]) -> Value {
        let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
        self.ask("tools/declare", json!({ "tools": tools })).await
    }

    async fn start(&mut self, messages: &[Value]) -> u64 {
        self.start_with(messages, json!({})).await
    }

    async fn start_with(&mut self, messages: &[Value], more: Value) -> u64 {
        let mut params = json!({"messages": messages, "model": "large", "cwd": "/project"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("turn/start", params).await["turn"].as_u64().unwrap()
    }

    async fn agent(&mut self) -> Puppet {
        self.agents.recv().await.unwrap()
    }

    fn run(&self) -> Run {
        self.connection.turns.session("main").unwrap().run().unwrap()
    }

    /// The agent calls a tool of the host.
    fn call(&mut self, name: &str) -> Waiter {
        self.requests += 1;
        let origin = Origin { session: 1, request: Id::from_number(self.requests) };
        let arguments = RawJson::new(&br#"{"n":9007199254740993}"#[..]).unwrap();
        match self.run().begin(origin, name, Some(arguments), None) {
            Began::Waiting(waiter) => waiter,
            other => panic!("{other:?}"),
        }
    }

    /// A question whose answer waits for one call of `todo`: the agent, the call's end, the turn, and the call.
    async fn at_work(&mut self) -> (Puppet, Waiter, u64, Value) {
        let turn = self.start(&[user("do it")]).await;
        let mut agent = self.agent().await;
        agent.prompts.recv().await.unwrap();
        let waiter = self.call("pi__todo");
        let end = self.end(turn).await;
        assert_eq!(end["stop"], "toolUse");
        let call = end["content"][0].clone();
        (agent, waiter, turn, call)
    }
}

impl Puppet {
    async fn tell(&self, event: AgentEvent) {
        self.events.send(event).await.unwrap();
    }

    async fn text(&self, text: &str) {
        self.tell(AgentEvent::Text(text.to_owned())).await;
    }

    async fn finish(&self) {
        self.tell(AgentEvent::Ended(AgentEnd::Finished(None))).await;
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The host's log of a call, and of its result.
fn ran(call: &Value, text: &str) -> [Value; 2] {
    let (id, name) = (call["call"].clone(), call["tool"].clone());
    let block = json!({"type": "toolCall", "id": id, "name": name, "arguments": call["arguments"]});
    [
        json!({"role": "assistant", "content": [block]}),
        json!({"role": "toolResult", "toolCallId": id, "toolName": name, "isError": false,
            "content": [{"type": "text", "text": text}]}),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_told_as_it_comes_and_whole_at_its_end() {
    let mut stage = Stage::new().await;
    let more = json!({"system": {"text": "be good"}, "mode": "plan", "settingSources": ["project"]});
    let turn = stage.start_with(&[user("hello")], more).await;
    let mut agent = stage.agent().await;
    let prompt = agent.prompts.recv().await.unwrap();
    assert!(prompt.text.contains("be good") && prompt.text.contains("hello"), "{}", prompt.text);
    let options = &agent.options;
    assert_eq!((prompt.mode, options.model.as_str()), (AgentMode::Plan, "large"));
    assert_eq!(
        (options.cwd.to_str(), &options.setting_sources[..]),
        (Some("/project"), &["project".to_owned()][..])
    );
    agent.tell(AgentEvent::Thinking("hm".to_owned())).await;
    agent.text("good ").await;
    agent.text("day").await;
    agent.tell(AgentEvent::TurnEnded(Usage { input: 7, output: 2, cache_read: 1, cache_write: 0 })).await;
    agent.finish().await;
    assert_eq!(stage.event(turn).await, json!({"kind": "thinking", "text": "hm"}));
    assert_eq!(stage.event(turn).await, json!({"kind": "text", "text": "good "}));
    assert_eq!(stage.event(turn).await, json!({"kind": "text", "text": "day"}));
    let end = json!({
        "kind": "end", "stop": "stop",
        "content": [{"kind": "thinking", "text": "hm"}, {"kind": "text", "text": "good day"}],
        "usage": {"input": 7, "output": 2, "cacheRead": 1, "cacheWrite": 0},
    });
    assert_eq!(stage.event(turn).await, end);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_made_fails_its_turn_alone() {
    let mut stage = Stage::new().await;
    let turn = stage.start_with(&[user("hello")], json!({"model": "none"})).await;
    let end = stage.end(turn).await;
    assert_eq!((&end["stop"], &end["reason"]), (&json!("error"), &json!("no agent: there is no such model")));
    let again = stage.start(&[user("hello")]).await;
    let agent = stage.agent().await;
    agent.finish().await;
    assert_eq!((stage.end(again).await["stop"].clone(), again > turn), (json!("stop"), true));
}

#[tokio::test(start_paused = true)]
async fn the_models_of_the_agent_are_told() {
    let mut stage = Stage::new().await;
    let models = stage.ask("models/list", json!({})).await;
    let expected = json!({"models": [
        {"id": "large", "name": "The large one", "contextTokens": 200_000},
        {"id": "small", "name": "small"},
    ]});
    assert_eq!(models, expected);
}

#[tokio::test(start_paused = true)]
async fn without_an_agent_turns_are_refused_and_nothing_else() {
    let mut desk = Desk::new(&["a"]).await;
    let params = json!({"messages": [], "model": "m", "cwd": "/"});
    for (method, params) in [("turn/start", params), ("models/list", json!({}))] {
        let refused = desk.ask(method, params).await;
        assert_eq!(refused["code"], -32003, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("--agent"), "{refused}");
    }
    assert_eq!(desk.ask("turn/abort", json!({"turn": 1})).await, json!({"aborted": false}));
    assert_eq!(desk.ask("session/tell", json!({"event": "compaction"})).await, json!({}));
    desk.open(json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn sessions_have_agents_and_turns_of_their_own() {
    let mut stage = Stage::new().await;
    stage.ask("session/open", json!({"session": "child"})).await;
    let parent = stage.start(&[user("parent")]).await;
    let mut first = stage.agent().await;
    let child = stage.start_with(&[user("child")], json!({"session": "child"})).await;
    let mut second = stage.agent().await;
    assert!(first.prompts.recv().await.unwrap().text.contains("pi__todo"));
    assert!(!second.prompts.recv().await.unwrap().text.contains("pi__todo"), "it declared no tools");
    assert!(second.options.mcp_servers.is_empty());
    let closed = stage.ask("session/close", json!({"session": "child"})).await;
    assert_eq!(closed, json!({"rejectedCalls": 0}));
    let end = stage.end(child).await;
    assert_eq!(end["stop"], "aborted", "{end}");
    first.finish().await;
    assert_eq!(stage.end(parent).await["stop"], "stop");
}

#[tokio::test(start_paused = true)]
async fn a_notice_for_the_user_reaches_the_host() {
    let mut stage = Stage::new().await;
    let turn = stage.start(&[user("hello")]).await;
    let agent = stage.agent().await;
    agent.finish().await;
    stage.end(turn).await;
    agent.reload_fails();
    stage.ask("session/tell", json!({"event": "agentConfiguration"})).await;
    let (method, notice) = stage.note().await;
    assert_eq!(
        (method.as_str(), &notice["session"], &notice["level"]),
        ("notice", &json!("main"), &json!("warning"))
    );
    assert!(notice["text"].as_str().unwrap().contains("it will not"), "{notice}");
}
