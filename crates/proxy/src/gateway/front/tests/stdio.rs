//! One session over two byte streams.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use toolway_transport::{AsyncInput, AsyncOutput};

use super::hub::{Played, SOON};
use super::peer::call;
use crate::gateway::front::{StdioFront, serve_stdio};
use crate::{Ending, Outside};

/// Runs a session over these bytes; what the client got, and how it ended.
async fn session(input: Vec<u8>, drain: Duration, signal: Option<i32>) -> (Vec<String>, Ending) {
    let played = Played::hub();
    let front = StdioFront { guard: played.guard.clone(), saved_as: "s".to_owned(), drain, record: None };
    let (near, far) = UnixStream::pair().unwrap();
    let file = |stream: &UnixStream| File::from(OwnedFd::from(stream.try_clone().unwrap()));
    let (tell, outside) = mpsc::channel(1);
    let (reader, writer) = (AsyncInput::open(file(&near)).unwrap(), AsyncOutput::open(file(&near)).unwrap());
    let mut far_in = far.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        far_in.write_all(&input).unwrap();
        if signal.is_none() {
            far_in.shutdown(std::net::Shutdown::Write).unwrap();
        }
    });
    let mut far_out = far.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        far_out.read_to_string(&mut text).unwrap();
        text
    });
    let mut played = played;
    let gateway = played.gateway.clone();
    let serving = serve_stdio(&gateway, &front, reader, writer, outside);
    let ending = match signal {
        None => timeout(SOON, serving).await.unwrap(),
        Some(signal) => {
            let gateway_saw = async {
                played.saw("never").await;
                tell.send(Outside::Signal(signal)).await.unwrap();
                std::future::pending::<()>().await;
            };
            tokio::select! { ending = serving => ending, () = gateway_saw => unreachable!() }
        }
    };
    near.shutdown(std::net::Shutdown::Both).unwrap();
    writing.join().unwrap();
    let text = reading.join().unwrap();
    (text.lines().map(str::to_owned).collect(), ending)
}

async fn lines(input: impl Into<Vec<u8>>) -> Vec<String> {
    let (lines, ending) = session(input.into(), SOON, None).await;
    assert_eq!(ending, Ending::ClientClosed);
    lines
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_session_goes_on() {
    let input = format!(
        "{{\nnonsense\n\n[]\n{{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}}\n{}\n{}",
        call("1", "tools/list"),
        // The last line has no end.
        call("2", "last"),
    );
    let lines = lines(input).await;
    let codes = ["-32700", "-32700", "-32600", "-32600", "\"id\":1,\"result\"", "\"id\":2,\"result\""];
    assert_eq!(lines.len(), codes.len(), "{lines:?}");
    for (line, code) in lines.iter().zip(codes) {
        assert!(line.contains(code), "{line}");
    }
}

#[tokio::test]
async fn many_messages_in_one_chunk_are_answered_each_once() {
    let input: String = (0..2000).map(|id| call(&id.to_string(), "ping") + "\n").collect();
    let lines = lines(input).await;
    assert_eq!(lines.len(), 2000);
    for (id, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("\"id\":{id},")), "{line}");
    }
}

#[tokio::test]
async fn large_messages_pass_both_ways() {
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"large","params":{{"x":"{}"}}}}"#, "z".repeat(9 << 20));
    let lines = lines(format!("{large}\n{}\n", call("2", "file"))).await;
    assert!(lines[0].contains(&format!("\"bytes\":{}", large.len())), "{}", lines[0]);
    assert!(lines[1].contains(&"y".repeat(300_000)));
}

#[tokio::test]
async fn a_batch_is_answered_by_a_batch_and_its_strangers_alone() {
    let lines = lines(format!("[{},7,{}]\n", call("1", "a"), call("2", "b"))).await;
    assert!(lines[0].contains("-32600") && lines[1].starts_with('['), "{lines:?}");
    assert_eq!(lines.len(), 2);
}

#[tokio::test]
async fn what_is_never_answered_is_awaited_for_the_drain_and_not_when_it_was_cancelled() {
    let (lines, ending) = session(call("7", "never").into_bytes(), Duration::from_millis(30), None).await;
    assert_eq!(ending, Ending::ClientClosed);
    assert!(lines[0].contains("\"id\":7,\"error\"") && lines[0].contains("--drain"), "{lines:?}");
    let cancelled = format!(
        "{}\n{}\n",
        call("7", "never"),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#
    );
    let (lines, _) = session(cancelled.into_bytes(), Duration::from_hours(1), None).await;
    assert!(lines.is_empty(), "{lines:?}");
}

#[tokio::test]
async fn a_signal_answers_what_is_open() {
    let input = format!("{}\n", call("7", "never"));
    let (lines, ending) = session(input.into_bytes(), SOON, Some(15)).await;
    assert_eq!(ending, Ending::Signal(15));
    assert!(lines[0].contains("SIGTERM"), "{lines:?}");
}

#[tokio::test]
async fn the_end_of_the_gateway_ends_the_session() {
    let input = format!("{}\n{}\n", call("7", "never"), call("8", "die"));
    let (lines, ending) = session(input.into_bytes(), SOON, None).await;
    assert_eq!(ending, Ending::UpstreamEnded);
    assert_eq!(lines.len(), 2, "{lines:?}");
}
