//! Pages of a small server on this machine.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::tools::{ToolSession, ToolSetup};

/// Answers by path.
struct Server {
    port: u16,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut served = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                served.spawn(async move {
                    let mut request = vec![0; 4096];
                    let read = stream.read(&mut request).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&request[..read]).into_owned();
                    let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
                    for piece in answer(&path, port) {
                        if stream.write_all(&piece).await.is_err() {
                            return;
                        }
                    }
                    if path == "/silent" {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { port, _tasks: tasks }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

fn answer(path: &str, port: u16) -> Vec<Vec<u8>> {
    let whole = |status: &str, kind: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        vec![head.into_bytes(), body.to_vec()]
    };
    let to = |to: &str| {
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        vec![head.into_bytes()]
    };
    match path {
        "/page" => whole("200 OK", "text/html; charset=utf-8", b"<title>T</title><h1>Hi</h1><a href=x>y</a>"),
        "/latin" => whole("200 OK", "text/plain; charset=ISO-8859-1", b"caf\xe9"),
        "/json" => whole("200 OK", "application/json", b"{\"a\":1}"),
        "/png" => whole("200 OK", "image/png", b"\x89PNG"),
        "/zip" => whole("200 OK", "application/zip", b"PK\0"),
        "/missing" => whole("404 Not Found", "text/html", b"<p>no such page"),
        "/long" => whole("200 OK", "text/plain", "ü".repeat(40_000).as_bytes()),
        "/there" => to("/page"),
        "/round" => to("/round"),
        "/away" => to(&format!("http://localhost:{port}/page")),
        "/endless" => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n".to_vec();
            std::iter::once(head).chain(std::iter::repeat_n(vec![b'x'; 1 << 20], 12)).collect()
        }
        _ => Vec::new(),
    }
}

fn context(private: bool) -> (tempfile::TempDir, ToolContext) {
    let folder = tempfile::tempdir().unwrap();
    let mut setup = ToolSetup::new(folder.path().to_owned(), folder.path().join("temp"));
    setup.fetch_private = private;
    let session = Arc::new(ToolSession::new(setup, None));
    (folder, ToolContext::new(session, "c", CancellationToken::new()))
}

async fn fetch(context: &ToolContext, args: Value) -> ToolOutput {
    WebFetch.run(context, Arguments::of(args).unwrap()).await
}

#[tokio::test]
async fn pages_are_read_as_what_they_are() {
    let server = Server::start().await;
    let (_folder, context) = context(true);
    let page = async |path: &str| fetch(&context, json!({"url": server.url(path)})).await;
    let output = page("/page").await;
    let expected = format!(
        "{} (text/html, 42 bytes)\nTitle: T\n\n# Hi\n\n[y]({})",
        server.url("/page"),
        server.url("/x")
    );
    assert!(!output.is_error);
    assert_eq!(output.text, expected);
    assert!(page("/there").await.text.contains("# Hi"));
    assert!(page("/latin").await.text.ends_with("café"));
    assert!(page("/json").await.text.ends_with("{\"a\":1}"));
    let raw = fetch(&context, json!({"url": server.url("/page"), "raw": true})).await;
    assert!(raw.text.contains("<h1>Hi</h1>"));
    assert_eq!(page("/png").await.images.first().unwrap().mime_type, "image/png");
    for (path, text) in [
        ("/zip", "is no text"),
        ("/missing", "answered with status 404.\nno such page"),
        ("/round", "leads on more than 5 times"),
    ] {
        let output = page(path).await;
        assert!(output.is_error && output.text.contains(text), "{}", output.text);
    }
}

#[tokio::test]
async fn another_host_is_said_and_not_followed() {
    let server = Server::start().await;
    let (_folder, context) = context(true);
    let output = fetch(&context, json!({"url": server.url("/away")})).await;
    assert!(
        !output.is_error && output.text.contains("is at another host now: http://localhost:"),
        "{}",
        output.text
    );
    assert!(!output.text.contains("# Hi"));
}

#[tokio::test]
async fn size_is_bounded_and_the_whole_is_in_a_file() {
    let server = Server::start().await;
    let (_folder, context) = context(true);
    let output = fetch(&context, json!({"url": server.url("/long")})).await;
    assert!(
        output.text.contains("[the first 30000 of 40000 characters are shown; the whole is in "),
        "{}",
        output.text.len()
    );
    let path = output.text.split("the whole is in ").nth(1).unwrap().split(": `read`").next().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "ü".repeat(40_000));
    let output = fetch(&context, json!({"url": server.url("/endless")})).await;
    assert!(
        output.text.contains("(text/plain, 10485760 bytes)") && output.text.contains("the rest is missing")
    );
}

#[tokio::test]
async fn nothing_on_this_machine_is_read_unless_it_is_allowed() {
    let server = Server::start().await;
    let (_folder, context) = context(false);
    for url in [
        server.url("/page"),
        format!("http://localhost:{}/page", server.port),
        format!("http://[::1]:{}/", server.port),
    ] {
        let output = fetch(&context, json!({"url": url})).await;
        assert!(output.is_error && output.text.contains("which is not allowed"), "{}", output.text);
    }
}

#[tokio::test]
async fn a_cancelled_call_waits_for_nobody() {
    let server = Server::start().await;
    let (_folder, context) = context(true);
    let cancel = context.cancel.clone();
    let (output, ()) = tokio::join!(fetch(&context, json!({"url": server.url("/silent")})), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert!(output.is_error && output.text.contains("cancelled"), "{}", output.text);
}

#[test]
fn addresses_are_checked_and_completed() {
    let read = |url: &str| {
        address(&Arguments::of(json!({"url": url})).unwrap()).map(String::from).map_err(|error| error.text)
    };
    assert_eq!(read(" example.org/a#b ").unwrap(), "https://example.org/a");
    for (url, text) in [
        ("ftp://x/", "must be http or https, not ftp"),
        ("file:///etc/passwd", "must be http or https, not file"),
        ("http://u:p@x/", "must not hold a user"),
        ("http://", "is no address"),
    ] {
        assert!(read(url).unwrap_err().contains(text), "{url}");
    }
}
