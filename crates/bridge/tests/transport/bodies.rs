//! Bodies that are too large, that lie about their length, that never end, and sockets that are kept open for nothing.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::Instant;

use crate::rig::{Rig, call, text_of};
use crate::wire::{Wire, request};

const MIB: usize = 1 << 20;

fn head(rig: &Rig, more: &str) -> String {
    let (path, port) = (&rig.path, rig.port);
    format!("POST {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n{more}\r\n")
}

#[tokio::test]
async fn trial_23_line_10_a_body_of_100_mb_is_refused() -> Result<()> {
    let rig = Rig::new().await?;
    let piece = vec![b' '; MIB];
    // Announced: the answer is there before the first byte of the body.
    let mut wire = Wire::open(rig.port).await?;
    wire.send(head(&rig, &format!("Content-Length: {}\r\n", 100 * MIB)).as_bytes()).await?;
    let refused = wire.answer().await?;
    assert_eq!(refused.status(), 413);
    assert!(refused.reason()?.contains("16777216"), "{}", refused.reason()?);
    // A client that sends it all before it reads gets to read the answer too; chunked as well.
    for chunked in [false, true] {
        let mut wire = Wire::open(rig.port).await?;
        let framing = if chunked {
            "Transfer-Encoding: chunked\r\n".to_owned()
        } else {
            format!("Content-Length: {}\r\n", 100 * MIB)
        };
        wire.send(head(&rig, &framing).as_bytes()).await?;
        for _ in 0..100 {
            if chunked {
                wire.send(format!("{MIB:x}\r\n").as_bytes()).await?;
            }
            wire.send(&piece).await?;
            if chunked {
                wire.send(b"\r\n").await?;
            }
        }
        if chunked {
            wire.send(b"0\r\n\r\n").await?;
        }
        assert_eq!(wire.answer().await?.status(), 413, "chunked: {chunked}");
    }
    Ok(())
}

#[tokio::test]
async fn a_body_of_the_largest_size_passes_and_one_byte_more_does_not() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut body = call(1, "pi__echo", &json!({"n": 1})).to_string().into_bytes();
    body.resize(16 * MIB, b' ');
    let headers = [("Mcp-Session-Id", session.session.as_str())];
    let answer = rig.ask(&rig.post(&headers, &body)).await?;
    assert_eq!((answer.status(), text_of(&answer.json()?)), (200, r#"{"n":1}"#));
    body.push(b' ');
    assert_eq!(rig.ask(&rig.post(&headers, &body)).await?.status(), 413);
    Ok(())
}

#[tokio::test]
async fn lengths_that_lie_end_their_own_connection_and_nothing_else() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    for framing in [
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 0x10\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length: 3\r\n",
    ] {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(head(&rig, framing).as_bytes()).await?;
        wire.send(ping.as_bytes()).await.ok();
        if let Ok(answer) = wire.answer().await {
            assert!(matches!(answer.status(), 400..=499), "{framing:?}: {}", answer.status());
        }
    }
    // Chunks that break off.
    let mut wire = Wire::open(rig.port).await?;
    wire.send(head(&rig, "Transfer-Encoding: chunked\r\n").as_bytes()).await?;
    wire.send(b"zz\r\n").await?;
    if let Ok(answer) = wire.answer().await {
        assert_eq!(answer.status(), 400);
    }
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(session.ask(&rig, &ping).await?.status(), 200);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_given_up() -> Result<()> {
    let rig = Rig::new().await?;
    for framing in ["Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n"] {
        let begun = Instant::now();
        let mut wire = Wire::open(rig.port).await?;
        wire.send(head(&rig, framing).as_bytes()).await?;
        assert_eq!(wire.answer().await?.status(), 408);
        assert_eq!(begun.elapsed().as_secs(), 30);
        assert!(wire.is_closed().await?);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn half_sent_heads_and_silent_sockets_are_closed_after_ten_seconds() -> Result<()> {
    let rig = Rig::new().await?;
    let foreign = request("POST", "/mcp", &[("Host", "evil.example"), ("Content-Length", "0")], b"");
    for sent in [&b""[..], b"P", b"POST / HTTP/1.1\r\nHost: x\r\nX: ", &foreign] {
        let begun = Instant::now();
        let mut wire = Wire::open(rig.port).await?;
        wire.send(sent).await?;
        assert!(wire.is_closed().await?);
        assert_eq!(begun.elapsed().as_secs(), 10, "{}", String::from_utf8_lossy(sent));
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_in_use_is_kept_for_the_next_request() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    for id in 0..20 {
        wire.send(&session.post(&rig, &call(id, "pi__echo", &json!({"id": id})))).await?;
        assert_eq!(text_of(&wire.answer().await?.json()?), format!("{{\"id\":{id}}}"));
    }
    // Two at once on one connection are answered one after the other.
    let both = [
        session.post(&rig, &call(1, "pi__echo", &json!({}))),
        session.post(&rig, &call(2, "pi__echo", &json!({}))),
    ];
    wire.send(&both.concat()).await?;
    let answers = [wire.answer().await?.json()?["id"].clone(), wire.answer().await?.json()?["id"].clone()];
    assert_eq!(answers, [1, 2]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_called_may_be_silent_for_minutes() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    for _ in 0..3 {
        wire.send(&session.post(&rig, &call(1, "pi__echo", &json!({})))).await?;
        assert_eq!(wire.answer().await?.status(), 200);
        tokio::time::advance(Duration::from_secs(200)).await;
    }
    Ok(())
}

#[tokio::test]
async fn rubbish_on_the_socket_ends_its_own_connection() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let good = session.post(&rig, &call(1, "pi__echo", &json!({"text": "x"})));
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..=random() % 8 {
            let at = usize::try_from(random())? % bytes.len();
            match random() % 3 {
                0 => bytes[at] = u8::try_from(random() % 256)?,
                1 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&bytes).await?;
        // What is answered is answered as HTTP; what is incomplete is left alone, and goes with its connection.
        if let Ok(Ok(head)) = tokio::time::timeout(Duration::from_millis(5), wire.head()).await {
            assert!((200..=431).contains(&head.status), "{}", head.status);
        }
    }
    assert_eq!(rig.ask(&good).await?.status(), 200);
    Ok(())
}
