//! The upstream as an HTTP server: connections, the commands on stdin that break it, and what every request meets
//! first. Knows no sessions' contents: `streamable` and `legacy` do.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::sse::Events;
use super::{Server, Transport, legacy, small_thread, streamable};
use crate::conn::{Conn, Head};
use crate::sys;

/// What all connections share.
#[derive(Debug, Default)]
pub(super) struct Http {
    pub(super) sessions: Mutex<HashMap<String, Option<Arc<Events>>>>,
    pub(super) sequence: AtomicU64,
    unauthorized: AtomicBool,
    status: AtomicUsize,
    hang: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Http {
    /// A name for a new session.
    pub(super) fn session_id(&self) -> String {
        format!("bench-{}-{}", std::process::id(), self.sequence.fetch_add(1, Ordering::Relaxed))
    }

    fn command(&self, line: &str) {
        match line {
            "expire" => sys::held(&self.sessions).clear(),
            "unauth" => self.unauthorized.store(true, Ordering::SeqCst),
            "ok" => {
                self.unauthorized.store(false, Ordering::SeqCst);
                self.status.store(0, Ordering::SeqCst);
                self.hang.store(false, Ordering::SeqCst);
            }
            "hang" => self.hang.store(true, Ordering::SeqCst),
            "reset" => {
                for connection in sys::held(&self.connections).drain(..) {
                    connection.shutdown(Shutdown::Both).ok();
                }
            }
            _ => {
                if let Some(status) = line.strip_prefix("status ") {
                    self.status.store(status.parse().unwrap_or(0), Ordering::SeqCst);
                }
            }
        }
        sys::say(&format!("DONE {line}"));
    }

    fn remember(&self, connection: &TcpStream) {
        if let Ok(connection) = connection.try_clone() {
            let mut connections = sys::held(&self.connections);
            if connections.len() > 256 {
                connections.drain(..128);
            }
            connections.push(connection);
        }
    }
}

/// Serves until stdin ends; says its port first.
pub(super) fn serve(server: &Arc<Server>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", server.options.port))?;
    sys::say(&format!("LISTEN {}", listener.local_addr()?.port()));
    let http = Arc::new(Http::default());
    let commands = Arc::clone(&http);
    small_thread(256, move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            commands.command(line.trim());
        }
        sys::quit(0);
    })?;
    for stream in listener.incoming().flatten() {
        http.remember(&stream);
        let (server, http) = (Arc::clone(server), Arc::clone(&http));
        small_thread(256, move || {
            let mut conn = Conn::new(stream);
            while let Ok(Some(head)) = conn.head() {
                if !matches!(request(&server, &http, &mut conn, &head), Ok(true)) {
                    break;
                }
            }
        })?;
    }
    Ok(())
}

/// Writes one whole response.
pub(super) fn reply(
    conn: &mut Conn,
    status: &str,
    extra: &str,
    kind: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{extra}\r\n", body.len());
    let mut all = Vec::with_capacity(head.len() + body.len());
    all.extend_from_slice(head.as_bytes());
    all.extend_from_slice(body);
    conn.stream.write_all(&all)
}

/// Blocks until the peer closes its side.
pub(super) fn wait_for_close(stream: &TcpStream) {
    let mut buf = [0u8; 64];
    stream.set_read_timeout(None).ok();
    let mut stream = stream;
    while matches!(stream.read(&mut buf), Ok(n) if n > 0) {}
}

/// One request of either transport; true when the connection goes on.
fn request(server: &Arc<Server>, http: &Arc<Http>, conn: &mut Conn, head: &Head) -> std::io::Result<bool> {
    let mut words = head.start.split(' ');
    let (verb, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if head.get("expect").is_some_and(|v| v.starts_with("100")) {
        conn.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = conn.body(head)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.trim_end_matches('/');
    if http.hang.load(Ordering::SeqCst) {
        sys::pause(server.options.max_life);
    }
    let legacy = server.options.transport == Transport::Sse;
    if (legacy && path != "/sse" && path != "/message") || (!legacy && path != "/mcp") {
        reply(conn, "404 Not Found", "", "text/plain", b"not found")?;
        return Ok(true);
    }
    if http.unauthorized.load(Ordering::SeqCst) {
        let login = "WWW-Authenticate: Bearer realm=\"bench\"\r\n";
        reply(conn, "401 Unauthorized", login, "application/json", br#"{"error":"invalid_token"}"#)?;
        return Ok(true);
    }
    let status = http.status.load(Ordering::SeqCst);
    if status != 0 {
        reply(conn, &format!("{status} Bench"), "", "text/plain", b"bench status")?;
        return Ok(true);
    }
    if legacy {
        return legacy::request(server, http, conn, (verb, path), query, &body);
    }
    streamable::request(server, http, conn, verb, head, &body)
}
