//! Sessions, streams and batches of the legacy generation over HTTP.

use std::time::Duration;

use super::hub::Played;
use super::peer::{Legacy, Peer, call, request};
use crate::gateway::front::HttpFrontConfig;

#[tokio::test]
async fn a_session_lives_from_initialize_to_delete() {
    let mut played = Played::http(HttpFrontConfig::default()).await;
    let port = played.port;
    let legacy = Legacy::new(port, "2025-11-25").await;
    assert_eq!(legacy.session.len(), 32, "192 bits of base64");
    played.saw("opened passing=false").await;
    let mut list =
        legacy.send("POST", &[("MCP-Protocol-Version", "2025-11-25")], &call("1", "tools/list")).await;
    assert_eq!((list.status, list.header("content-type").as_deref()), (200, Some("application/json")));
    assert!(list.body().await.contains("tools/list"));
    for (body, seen) in [
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notifications/initialized"),
        (r#"{"jsonrpc":"2.0","id":"s","result":{}}"#, "Response"),
        (r#"{"jsonrpc":"2.0","id":"s","error":{"code":1,"message":"m"}}"#, "ErrorResponse"),
    ] {
        let mut peer = legacy.post(body).await;
        assert_eq!((peer.status, peer.body().await.as_str()), (202, ""));
        played.saw(seen).await;
    }
    for version in ["1900-01-01", "x", "2027-01-01"] {
        let peer = legacy.send("POST", &[("MCP-Protocol-Version", version)], &call("2", "ping")).await;
        assert_eq!(peer.status, 400, "{version}");
    }
    let none = Peer::send(port, &request("POST", port, &[], &call("1", "tools/list"))).await;
    assert_eq!(none.status, 400);
    let unknown = Legacy { port, session: "guess".to_owned() };
    assert_eq!(unknown.post(&call("1", "tools/list")).await.status, 404);
    assert_eq!(unknown.send("GET", &[], "").await.status, 404);
    assert_eq!(unknown.send("DELETE", &[], "").await.status, 404);
    assert_eq!(legacy.send("DELETE", &[], "").await.status, 204);
    played.saw("closed").await;
    assert_eq!(legacy.post(&call("1", "tools/list")).await.status, 404);
    played.stop().await;
}

#[tokio::test]
async fn a_failed_initialize_opens_no_session() {
    let mut played = Played::http(HttpFrontConfig::default()).await;
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"fail"}}"#;
    let mut peer = Peer::send(played.port, &request("POST", played.port, &[], body)).await;
    assert!(peer.body().await.contains("-32603"));
    assert_eq!(peer.header("mcp-session-id"), None);
    played.saw("closed").await;
    played.stop().await;
}

#[tokio::test]
async fn an_answer_is_a_stream_as_soon_as_anything_precedes_it() {
    let played =
        Played::http(HttpFrontConfig { patience: Duration::from_millis(50), ..HttpFrontConfig::default() })
            .await;
    let legacy = Legacy::new(played.port, "2025-06-18").await;
    let mut peer = legacy.post(&call("1", "progress")).await;
    assert_eq!(peer.header("content-type").as_deref(), Some("text/event-stream"));
    assert_eq!(peer.header("x-accel-buffering").as_deref(), Some("no"));
    let body = peer.body().await;
    let data: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.len(), 3, "{body}");
    assert!(data[0].contains("progress/1") && data[2].contains("\"done\":1"));
    // One that reads no streams gets its answer alone, one that reads nothing else a stream.
    let mut plain = legacy.send("POST", &[("Accept", "application/json")], &call("2", "progress")).await;
    assert_eq!(plain.header("content-type").as_deref(), Some("application/json"));
    assert!(plain.body().await.contains("\"done\":1"));
    let mut only = legacy.send("POST", &[("Accept", "text/event-stream")], &call("3", "tools/list")).await;
    assert!(only.body().await.contains("data: {"));
    // What takes long is a stream, too.
    let slow = legacy.post(&call("4", "never")).await;
    assert_eq!(slow.header("content-type").as_deref(), Some("text/event-stream"));
    // Two requests of one id could not be told apart.
    assert_eq!(legacy.post(&call("4", "tools/list")).await.status, 400);
    let mut file = legacy.post(&call("5", "file")).await;
    assert!(file.header("content-length").is_some_and(|length| length.len() == 6));
    assert!(file.body().await.contains(&"y".repeat(300_000)));
    let mut file = legacy.send("POST", &[("Accept", "text/event-stream")], &call("6", "file")).await;
    let body = file.body().await;
    assert_eq!(body.lines().filter(|line| line.starts_with("data: ")).count(), 1, "one event, in one line");
    assert!(body.contains(&"y".repeat(300_000)));
    played.stop().await;
}

#[tokio::test]
async fn what_belongs_to_no_request_takes_the_get_stream() {
    let config = HttpFrontConfig { keep_alive: Duration::from_millis(30), ..HttpFrontConfig::default() };
    let played = Played::http(config).await;
    let legacy = Legacy::new(played.port, "2025-11-25").await;
    // Sent before there is a stream: it waits for one.
    legacy.post(&call("1", "broadcast")).await.body().await;
    let mut first = legacy.send("GET", &[], "").await;
    assert_eq!(first.status, 200);
    first.until("list_changed").await;
    assert!(first.until(": keep-alive").await.contains(": keep-alive\n\n"));
    let mut second = legacy.send("GET", &[], "").await;
    second.until(": keep-alive").await;
    legacy.post(&call("2", "broadcast")).await.body().await;
    second.until("list_changed").await;
    for _ in 0..20 {
        assert!(!first.piece().await.contains("list_changed"), "each message goes to one stream");
    }
    drop(second);
    let plain = legacy.send("GET", &[("Accept", "application/json")], "").await;
    assert_eq!(plain.status, 406);
    // Without a session there is no such stream.
    let none =
        Peer::send(played.port, &request("GET", played.port, &[("Accept", "text/event-stream")], "")).await;
    assert_eq!((none.status, none.header("allow").as_deref()), (405, Some("POST")));
    // The end of the front ends the streams in good order.
    played.end.cancel();
    first.body().await;
    played.stop().await;
}

#[tokio::test]
async fn a_stream_that_broke_goes_on_where_it_was() {
    let played = Played::http(HttpFrontConfig::default()).await;
    let legacy = Legacy::new(played.port, "2025-11-25").await;
    let mut broken = legacy.post(&call("1", "progress")).await;
    let all = broken.body().await;
    let ids: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids.len(), 4, "an empty first event, and three messages: {all}");
    let mut open = legacy.post(&call("2", "begin")).await;
    let begun = open.until("progress/1").await;
    let id = begun.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(open);
    let mut back = legacy.send("GET", &[("Last-Event-ID", &id)], "").await;
    assert_eq!(back.status, 200);
    back.until("progress/1").await;
    for bad in ["nonsense", "99-1", "1-x"] {
        assert_eq!(legacy.send("GET", &[("Last-Event-ID", bad)], "").await.status, 400, "{bad}");
    }
    // Another session cannot read it.
    let other = Legacy::new(played.port, "2025-11-25").await;
    assert_eq!(other.send("GET", &[("Last-Event-ID", &id)], "").await.status, 400);
    played.stop().await;
}

#[tokio::test]
async fn batches_belong_to_the_revisions_that_have_them() {
    let mut played = Played::http(HttpFrontConfig::default()).await;
    let batch = format!("[{},{},7]", call("1", "a"), call("2", "b"));
    let old = Legacy::new(played.port, "2025-03-26").await;
    let body = old.post(&batch).await.body().await;
    played.saw("batch of 2").await;
    assert!(
        body.contains(r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#),
        "{body}"
    );
    assert!(body.contains("-32600"), "the member that is no message: {body}");
    let notes = r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":9,"result":{}}]"#;
    assert_eq!(old.post(notes).await.status, 202);
    let new = Legacy::new(played.port, "2025-06-18").await;
    assert_eq!(new.post(&batch).await.status, 400);
    played.stop().await;
}

#[tokio::test]
async fn sessions_are_bounded_and_the_idle_ones_make_room() {
    let config = HttpFrontConfig { max_sessions: 2, ..HttpFrontConfig::default() };
    let mut played = Played::http(config).await;
    let first = Legacy::new(played.port, "2025-11-25").await;
    let second = Legacy::new(played.port, "2025-11-25").await;
    let mut stream = first.send("GET", &[], "").await;
    let third = Legacy::new(played.port, "2025-11-25").await;
    played.saw("closed").await;
    assert_eq!(second.post(&call("1", "x")).await.status, 404);
    assert_eq!(first.post(&call("1", "x")).await.status, 200);
    let used = third.send("GET", &[], "").await;
    assert_eq!(used.status, 200);
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let full = Peer::send(played.port, &request("POST", played.port, &[], body)).await;
    assert_eq!((full.status, full.header("retry-after").as_deref()), (503, Some("10")));
    // The end of the gateway ends everything.
    first.post(r#"{"jsonrpc":"2.0","id":3,"method":"die"}"#).await.body().await;
    stream.body().await;
    played.stop().await;
}

#[tokio::test]
async fn a_request_that_was_cancelled_leaves_nothing_open() {
    let config = HttpFrontConfig { patience: Duration::from_millis(1), ..HttpFrontConfig::default() };
    let mut played = Played::http(config).await;
    let legacy = Legacy::new(played.port, "2025-06-18").await;
    let cancel = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    };
    let mut slow = legacy.post(&call("4", "begin")).await;
    slow.until("progress/1").await;
    assert_eq!(legacy.post(&cancel("4")).await.status, 202);
    played.saw("notifications/cancelled").await;
    assert!(!slow.body().await.contains("result"));
    // Its id is free again, and an answer of nobody is owed.
    assert_eq!(legacy.post(&call("4", "tools/list")).await.status, 200);
    assert_eq!(legacy.post(&cancel("\"none\"")).await.status, 202);
    played.stop().await;
}
