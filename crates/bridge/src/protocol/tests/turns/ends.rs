//! How turns end otherwise than by themselves.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_aborted_turn_ends_and_its_agent_is_told_to_stop() {
    let mut stage = Stage::new().await;
    let turn = stage.start(&[user("hello")]).await;
    let mut agent = stage.agent().await;
    agent.prompts.recv().await.unwrap();
    agent.text("so far").await;
    assert_eq!(stage.event(turn).await["kind"], "text");
    assert_eq!(stage.ask("turn/abort", json!({"turn": turn})).await, json!({"aborted": true}));
    let end = stage.end(turn).await;
    assert_eq!((&end["stop"], &end["content"][0]["text"]), (&json!("aborted"), &json!("so far")));
    agent.cancelled.recv().await.unwrap();
    assert_eq!(stage.ask("turn/abort", json!({"turn": turn})).await, json!({"aborted": false}));
    assert_eq!(stage.ask("turn/abort", json!({"turn": 99})).await, json!({"aborted": false}));
}

#[tokio::test(start_paused = true)]
async fn between_two_turns_an_abort_ends_the_calls_of_the_first() {
    let mut stage = Stage::new().await;
    let (mut agent, mut waiter, turn, call) = stage.at_work().await;
    assert_eq!(stage.ask("turn/abort", json!({"turn": turn})).await, json!({"aborted": true}));
    agent.cancelled.recv().await.unwrap();
    assert!(matches!(waiter.next().await, Update::Rejected(_)));
    let (method, params) = stage.note().await;
    assert_eq!((method.as_str(), &params["call"]), ("call/cancelled", &call["call"]));
    assert_eq!(stage.ask("call/admit", json!({"call": call["call"]})).await["admitted"], false);
}

#[tokio::test(start_paused = true)]
async fn what_is_told_before_a_turn_counts_for_it() {
    let mut stage = Stage::new().await;
    let first = stage.start(&[user("hello")]).await;
    let mut agent = stage.agent().await;
    agent.prompts.recv().await.unwrap();
    agent.text("hi").await;
    agent.finish().await;
    stage.end(first).await;
    let said = [user("hello"), json!({"role": "assistant", "content": "hi"}), user("more")];
    // Both in one go, as a host may write them; the first one is not answered.
    let told = json!({"jsonrpc": "2.0", "method": "session/tell", "params": {"event": "treeNavigation"}});
    stage.connection.on_line(HostLine::Whole(told.to_string().into()), Instant::now());
    let turn = stage.start(&said).await;
    let mut other = stage.agent().await;
    assert!(other.prompts.recv().await.unwrap().text.contains("hello"), "everything is sent anew");
    other.finish().await;
    assert_eq!(stage.end(turn).await["stop"], "stop");
    assert!(agent.prompts.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn changed_settings_count_for_the_next_question_and_not_for_one_that_is_being_answered() {
    let mut stage = Stage::new().await;
    let (agent, mut waiter, _, call) = stage.at_work().await;
    let above = json!({"settings": {"tools": {"bridge": {"exclude": ["sem"]}}}});
    stage.ask("settings/declare", above).await;
    let [called, done] = ran(&call, "milk");
    let turn = stage.start(&[user("do it"), called.clone(), done.clone()]).await;
    assert!(matches!(waiter.next().await, Update::Result(_)));
    agent.text("milk").await;
    agent.finish().await;
    assert_eq!(stage.end(turn).await["stop"], "stop");
    let said = [user("do it"), called, done, json!({"role": "assistant", "content": "milk"}), user("more")];
    let turn = stage.start(&said).await;
    let mut other = stage.agent().await;
    let prompt = other.prompts.recv().await.unwrap().text;
    assert!(prompt.contains("pi__todo") && !prompt.contains("pi__sem"), "{prompt}");
    other.finish().await;
    assert_eq!(stage.end(turn).await["stop"], "stop");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_host_shut_down_begins_anew_with_its_next_turn() {
    let mut stage = Stage::new().await;
    let (_agent, mut waiter, _, call) = stage.at_work().await;
    assert_eq!(stage.ask("session/tell", json!({"event": "sessionShutdown"})).await, json!({}));
    assert!(matches!(waiter.next().await, Update::Rejected(_)));
    let (method, params) = stage.note().await;
    assert_eq!((method.as_str(), &params["call"]), ("call/cancelled", &call["call"]));
    let turn = stage.start(&[user("hello")]).await;
    stage.agent().await.finish().await;
    assert_eq!(stage.end(turn).await["stop"], "stop");
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_agent_is_the_reason_of_the_end() {
    let mut stage = Stage::new().await;
    let turn = stage.start(&[user("hello")]).await;
    let mut agent = stage.agent().await;
    agent.prompts.recv().await.unwrap();
    agent.tell(AgentEvent::Ended(AgentEnd::Failed(AgentFailure::new("no money")))).await;
    let end = stage.end(turn).await;
    assert_eq!((&end["stop"], &end["reason"]), (&json!("error"), &json!("no money")));
}

#[tokio::test(start_paused = true)]
async fn turns_that_wait_have_a_bound() {
    let mut stage = Stage::new().await;
    let params = json!({"messages": [user("hello")], "model": "large", "cwd": "/project"});
    for _ in 0..32 {
        assert!(stage.ask("turn/start", params.clone()).await["turn"].is_u64());
    }
    let refused = stage.ask("turn/start", params).await;
    assert_eq!((&refused["code"], &refused["data"]["limit"]), (&json!(-32002), &json!("turns")));
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_connection_open_turns_are_told_that_it_is_over() {
    let (made, mut agents) = mpsc::channel(4);
    let coordinator: Arc<dyn Agents> = Arc::new(Coordinator::new(Port(made)));
    let mut task = Task::of(Connection::new(config(), Some(coordinator)));
    task.hello().await;
    let params = json!({"messages": [user("hello")], "model": "large", "cwd": "/project"});
    task.lines.send(request(2, "turn/start", &params)).await.unwrap();
    assert_eq!(task.next().await["result"], json!({"turn": 1}));
    let mut agent = agents.recv().await.unwrap();
    agent.prompts.recv().await.unwrap();
    task.lines.send(request(3, "shutdown", &json!({}))).await.unwrap();
    let end = task.next().await;
    assert_eq!(
        (&end["method"], &end["params"]["event"]["stop"]),
        (&json!("turn/event"), &json!("aborted")),
        "{end}"
    );
    assert_eq!(task.next().await, json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    assert_eq!(task.next().await["method"], "bridge/closing");
    assert_eq!(task.ended().await, HostEnding::Closed);
    assert!(agent.events.is_closed(), "the agent is let go");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_talks_on_and_on_can_be_stopped() {
    let (made, mut agents) = mpsc::channel(4);
    let coordinator: Arc<dyn Agents> = Arc::new(Coordinator::new(Port(made)));
    let mut task = Task::of(Connection::new(config(), Some(coordinator)));
    task.hello().await;
    let params = json!({"messages": [user("hello")], "model": "large", "cwd": "/project"});
    task.lines.send(request(2, "turn/start", &params)).await.unwrap();
    let agent = agents.recv().await.unwrap();
    let mut talking = tokio::task::JoinSet::new();
    talking.spawn(async move {
        while agent.events.send(AgentEvent::Text("and so on ".repeat(100))).await.is_ok() {}
    });
    for _ in 0..20 {
        task.next().await;
    }
    let lines = task.lines.clone();
    talking.spawn(async move { lines.send(request(3, "turn/abort", &json!({"turn": 1}))).await.unwrap() });
    let mut read = 0;
    loop {
        let line = task.next().await;
        if line["params"]["event"]["kind"] == "end" {
            assert_eq!(line["params"]["event"]["stop"], "aborted");
            break;
        }
        read += 1;
        assert!(read < 1000, "it is not stopped");
    }
}
