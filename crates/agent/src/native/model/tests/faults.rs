//! What goes wrong on the way to a service, and what becomes of it.

use serde_json::json;
use tokio::time::{Instant, timeout};

use super::*;

/// No key and no address is in what people read.
fn told(error: &AgentError) -> String {
    let text = format!("{error} {error:?}");
    assert!(!text.contains(KEY) && !text.contains("http://"), "{text}");
    text
}

#[tokio::test]
async fn too_many_requests_are_sent_again_when_the_service_says() {
    for id in ALL {
        let refusal = json!({ "status": 429, "error": "slow down", "retryAfter": "0.06" });
        let server = scripted(&[refusal.clone(), refusal, json!({ "text": "well" })]);
        let before = Instant::now();
        let said = ask(&model(&server, id), &hello()).await;
        assert_eq!((said.text.as_str(), said.retries.len()), ("well", 2), "{id}");
        assert!(
            said.retries.iter().all(|delay| *delay == Duration::from_millis(60)),
            "{id}: {:?}",
            said.retries
        );
        assert!(before.elapsed() >= Duration::from_millis(120), "{id}");
        assert_eq!(server.requests().len(), 3, "{id}");
    }
}

#[tokio::test]
async fn a_service_that_wants_a_long_rest_gets_no_further_request() {
    for id in OWN {
        let server = scripted(&[json!({ "status": 429, "error": "slow down", "retryAfter": "3600" })]);
        let said = ask(&model(&server, id), &hello()).await;
        let AgentError::RateLimit { message, retry_after } = said.error() else {
            panic!("{:?}", said.error());
        };
        assert!(message.contains("slow down") && message.contains("429"), "{message}");
        assert_eq!((*retry_after, server.requests().len()), (Some(Duration::from_hours(1)), 1), "{id}");
    }
}

#[tokio::test]
async fn failures_of_a_service_are_sent_again_as_often_as_is_set() {
    for id in ALL {
        for status in [500, 502, 503, 529] {
            let server = scripted(&[json!({ "status": status, "error": "overloaded" })]);
            let said = ask(&model(&server, id), &hello()).await;
            let text = told(said.error());
            assert!(
                matches!(said.error(), AgentError::Network { .. }) && text.contains("overloaded"),
                "{id}: {text}"
            );
            assert_eq!((server.requests().len(), said.retries.len()), (3, 2), "{id} {status}");
        }
    }
}

#[tokio::test]
async fn a_refused_key_is_no_reason_to_try_again() {
    for id in ALL {
        for status in [401, 403] {
            let server = scripted(&[
                json!({ "status": status, "error": format!("Incorrect API key provided: {KEY}") }),
            ]);
            let said = ask(&model(&server, id), &hello()).await;
            let text = told(said.error());
            assert!(matches!(said.error(), AgentError::Authentication { .. }), "{id}: {text}");
            assert!(text.contains("Incorrect API key provided: [redacted]"), "{id}: {text}");
            assert_eq!(server.requests().len(), 1, "{id}");
        }
    }
}

#[tokio::test]
async fn a_request_that_is_refused_tells_the_service_s_reason() {
    for id in ALL {
        for status in [400, 404, 422] {
            let server = scripted(&[json!({ "status": status, "error": "max_tokens is too large: 5" })]);
            let said = ask(&model(&server, id), &hello()).await;
            let text = told(said.error());
            assert!(matches!(said.error(), AgentError::Model { .. }), "{id}: {text}");
            assert!(
                text.contains("max_tokens is too large: 5") && text.contains(&status.to_string()),
                "{id}: {text}"
            );
            assert_eq!(server.requests().len(), 1, "{id}");
        }
    }
    let server = scripted(&[json!({ "status": 429, "code": "insufficient_quota", "error": "no money" })]);
    let said = ask(&model(&server, "openai::m"), &hello()).await;
    assert!(matches!(said.error(), AgentError::Model { .. }) && server.requests().len() == 1, "{said:?}");
}

#[tokio::test]
async fn a_stream_that_is_cut_is_an_error_that_says_so() {
    for id in ALL {
        for place in ["middle", "end"] {
            for clean in [false, true] {
                let text = json!({ "text": "a text of many pieces, so that there is a middle", "cut": place, "clean": clean });
                let call = json!({ "calls": [{ "name": "a", "arguments": { "path": "/etc/passwd" }, "pieces": 5 }], "cut": place, "clean": clean });
                for reply in [text, call] {
                    let server = scripted(std::slice::from_ref(&reply));
                    let said = ask(&model(&server, id), &hello()).await;
                    let text = told(said.error());
                    assert!(text.contains("was cut"), "{id} {reply}: {text}");
                    assert!(said.error().is_retryable(), "{id}");
                    let told_something = !said.text.is_empty() || !said.deltas.is_empty();
                    assert_eq!(server.requests().len(), if told_something { 1 } else { 3 }, "{id} {reply}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_was_cut_before_anything_came_is_sent_again() {
    for id in ALL {
        for clean in [false, true] {
            let server = scripted(&[
                json!({ "text": "x", "cut": "start", "clean": clean }),
                json!({ "text": "well" }),
            ]);
            let said = ask(&model(&server, id), &hello()).await;
            assert_eq!((said.text.as_str(), said.retries.len()), ("well", 1), "{id}: {said:?}");
        }
    }
}

#[tokio::test]
async fn a_service_that_fails_in_the_middle_is_an_error() {
    for id in ALL {
        let server = scripted(&[
            json!({ "text": "a text of many pieces, so that there is a middle", "failed": "the machine burns" }),
        ]);
        let said = ask(&model(&server, id), &hello()).await;
        let text = told(said.error());
        // Of Gemini and Ollama the library hides what the service said.
        assert!(text.contains("the machine burns") || !OWN.contains(&id), "{id}: {text}");
        assert!(!said.text.is_empty(), "{id}");
    }
}

#[tokio::test]
async fn an_event_that_is_no_json_is_an_error() {
    for id in ALL {
        let server = scripted(&[
            json!({ "text": "a text of many pieces, so that there is a middle", "malformed": 3 }),
        ]);
        let said = ask(&model(&server, id), &hello()).await;
        assert!(told(said.error()).contains("makes no sense"), "{id}: {:?}", said.error());
    }
}

#[tokio::test]
async fn silence_has_its_time() {
    for id in ALL {
        let server = scripted(&[
            json!({ "text": "a text of many pieces, so that there is a middle", "stall": "middle" }),
        ]);
        let models = models(&server, Patience { silence: Duration::from_millis(120), ..patience() });
        let said = ask(&models.open(&choice(id, &Value::Null)).unwrap(), &hello()).await;
        assert!(told(said.error()).contains("fell silent"), "{id}: {:?}", said.error());
    }
}

#[tokio::test]
async fn a_model_that_never_stops_stops_when_it_is_cancelled() {
    for id in ALL {
        let server = scripted(&[json!({ "text": ["again ", "and again "], "endless": true })]);
        let cancel = CancellationToken::new();
        let messages = hello();
        let request = ModelRequest { system: "", messages: &messages, tools: &[], max_output: None };
        let mut stream = model(&server, id).stream(&request, &cancel);
        let mut pieces = 0;
        while let Some(event) = stream.next().await {
            assert!(matches!(event, Ok(ModelEvent::Text(_))), "{id}: {event:?}");
            pieces += 1;
            if pieces == 20 {
                cancel.cancel();
            }
        }
        assert_eq!(pieces, 20, "{id}");
        assert!(stream.next().await.is_none(), "{id}");
    }
}

#[tokio::test]
async fn a_wait_before_the_next_attempt_ends_when_it_is_cancelled() {
    let server = scripted(&[json!({ "status": 503, "retryAfter": "1.9" })]);
    let cancel = CancellationToken::new();
    let messages = hello();
    let request = ModelRequest { system: "", messages: &messages, tools: &[], max_output: None };
    let mut stream = model(&server, "openai::m").stream(&request, &cancel);
    assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Retry { .. }))));
    cancel.cancel();
    assert!(timeout(Duration::from_secs(1), stream.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn nobody_at_the_address_is_told_with_the_host() {
    for id in ALL {
        let server = scripted(&[]);
        let model = model(&server, id);
        drop(server);
        let said = ask(&model, &hello()).await;
        let text = told(said.error());
        assert!(matches!(said.error(), AgentError::Network { .. }), "{id}: {text}");
        assert!(text.contains("cannot be reached at 127.0.0.1:"), "{id}: {text}");
        assert_eq!(said.retries.len(), 2, "{id}");
    }
}

#[tokio::test]
async fn a_page_that_is_no_stream_is_no_answer() {
    for id in OWN {
        let server = scripted(&[json!({ "status": 302, "headers": { "Location": "/elsewhere" } })]);
        let said = ask(&model(&server, id), &hello()).await;
        assert!(matches!(said.error(), AgentError::Model { .. }), "{id}: {said:?}");
    }
}

/// A service that begins with these frames, then sends a piece again and again, or where that is empty is silent.
async fn unending(frames: &'static str, pause: Duration, piece: Vec<u8>) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 64 * 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(format!("{head}{frames}").as_bytes()).await.unwrap();
        if piece.is_empty() {
            std::future::pending::<()>().await;
        }
        while stream.write_all(&piece).await.is_ok() {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    });
    // It ends with the runtime of the test.
    serving.detach_all();
    format!("http://{address}")
}

/// The beginning of an event.
const BEGUN: &str = "data: {\"x\":\"";

fn at(root: &str, id: &str, patience: Patience) -> Arc<dyn Model> {
    let access = ServiceAccess {
        api_key: Some(Secret::new(KEY)),
        base_url: Some(root.to_owned()),
        ..ServiceAccess::default()
    };
    RemoteModels::new(access, patience).open(&choice(id, &Value::Null)).unwrap()
}

#[tokio::test]
async fn an_event_that_grows_without_an_end_is_given_up() {
    for id in ALL {
        let root = unending(BEGUN, Duration::ZERO, vec![b'a'; 256 * 1024]).await;
        let patience = Patience { reading: Duration::from_millis(200), ..patience() };
        let said = timeout(Duration::from_mins(1), ask(&at(&root, id, patience), &hello())).await.unwrap();
        let text = told(said.error());
        assert!(
            matches!(said.error(), AgentError::Model { .. }) && text.contains("without an end"),
            "{id}: {text}"
        );
        assert!(said.retries.is_empty(), "{id}: it would be the same again");
    }
}

#[tokio::test]
async fn an_event_that_comes_in_drops_is_given_up_in_time() {
    let root = unending(BEGUN, Duration::from_millis(5), vec![b'a']).await;
    let patience = Patience { silence: Duration::from_millis(150), attempts: 1, ..patience() };
    let said =
        timeout(Duration::from_mins(1), ask(&at(&root, "openai::m", patience), &hello())).await.unwrap();
    let text = told(said.error());
    assert!(matches!(said.error(), AgentError::Network { .. }), "{text}");
}

/// The end of an answer is its own word, not that of the connection.
#[tokio::test]
async fn an_answer_that_has_ended_counts_whatever_its_connection_does() {
    const WHOLE: &str = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"well\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":null,\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n",
    );
    let root = unending(WHOLE, Duration::ZERO, Vec::new()).await;
    let patience = Patience { silence: Duration::from_millis(300), ..patience() };
    let said =
        timeout(Duration::from_mins(1), ask(&at(&root, "openai::m", patience), &hello())).await.unwrap();
    assert_eq!((said.answer().text().as_str(), &said.answer().stop), ("well", &ModelStop::End));
    assert_eq!(said.answer().usage.unwrap().input, 3);
    assert!(said.retries.is_empty());
}

/// Counts what the library logs.
#[derive(Default, Clone)]
struct Lines(Arc<std::sync::atomic::AtomicUsize>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("genai")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn the_library_logs_nothing_into_the_program() {
    let lines = Lines::default();
    let listening = tracing::subscriber::set_default(lines.clone());
    for id in ALL {
        let server = scripted(&[json!({ "text": "well", "cut": "end" })]);
        ask(&model(&server, id), &hello()).await.error();
    }
    drop(listening);
    assert_eq!(lines.0.load(std::sync::atomic::Ordering::Relaxed), 0);
}
