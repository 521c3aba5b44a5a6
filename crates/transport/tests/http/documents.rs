//! Plain documents: what is taken, what is refused, and that no secret goes to another origin.

use std::time::Duration;

use toolway_secret::Secret;
use toolway_transport::{HttpConfig, fetch};

use crate::client::config;
use crate::server::Server;

fn asking(server: &Server) -> HttpConfig {
    let mut config = config(server).unwrap();
    config.headers = vec![("Authorization".to_owned(), Secret::new("Bearer s3cr3t-token"))];
    config
}

/// What the fetch gives when the server answers so.
async fn answered(status: &str, headers: &str, body: &str) -> Result<Vec<u8>, String> {
    let mut server = Server::memory();
    let config = asking(&server);
    let serve = async {
        let request = server.next().await;
        assert_eq!((request.method.as_str(), request.body.as_str()), ("GET", ""));
        request.answer(status, headers, body).await;
    };
    tokio::join!(fetch(&config, 100), serve).0
}

#[tokio::test]
async fn a_document_is_taken_whole_or_not_at_all() {
    assert_eq!(answered("200 OK", "", "{\"a\":1}").await, Ok(b"{\"a\":1}".to_vec()));
    let large = answered("200 OK", "", &"x".repeat(101)).await.unwrap_err();
    assert!(large.contains("is larger than 100 bytes"), "{large}");
    let missing = answered("404 Not Found", "", "no such file").await.unwrap_err();
    assert!(missing.contains("HTTP 404") && missing.contains("no such file"), "{missing}");
    let unwilling = answered("401 Unauthorized", "", "").await.unwrap_err();
    assert!(unwilling.contains("401") && !unwilling.contains("s3cr3t"), "{unwilling}");
}

#[tokio::test]
async fn another_origin_gets_no_header_of_ours() {
    let mut server = Server::memory();
    let config = asking(&server);
    let serve = async {
        let first = server.next().await;
        assert!(first.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")));
        first.answer("302 Found", "location: http://other.example/x\r\n", "").await;
        let second = server.next().await;
        assert!(!second.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")));
        second.answer("200 OK", "", "moved").await;
    };
    assert_eq!(tokio::join!(fetch(&config, 100), serve).0, Ok(b"moved".to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let mut server = Server::memory();
    let mut config = asking(&server);
    config.timeout = Duration::from_secs(2);
    let serve = async { server.next().await };
    let (fetched, _request) = tokio::join!(fetch(&config, 100), serve);
    assert!(fetched.unwrap_err().contains("no answer"));
}
