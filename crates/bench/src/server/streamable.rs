//! The upstream over Streamable HTTP: POST with a JSON or SSE reply, sessions, the GET stream, resumption, DELETE.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::http::{Http, reply, wait_for_close};
use super::sse::{self, Events};
use super::{Emit, Server, small_thread};
use crate::conn::{Conn, Head};
use crate::{json, sys};

/// Tools whose answers need a stream.
const STREAMED: [&str; 5] = ["progress", "notify", "server_request", "break_sse", "crash_partial"];

/// Keeps what a slow tool answers, for the one reply of the POST.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Emit for Kept {
    fn emit(&self, message: &[u8]) {
        sys::held(&self.0).push(message.to_vec());
    }
}

pub(super) fn request(
    server: &Arc<Server>,
    http: &Arc<Http>,
    conn: &mut Conn,
    verb: &str,
    head: &Head,
    body: &[u8],
) -> std::io::Result<bool> {
    let session = head.get("mcp-session-id");
    match verb {
        "POST" => post(server, http, conn, session, body),
        "GET" => get(server, http, conn, session, head.get("last-event-id")),
        "DELETE" => {
            let events = session.and_then(|id| sys::held(&http.sessions).remove(id)).flatten();
            if let Some(events) = events {
                events.cut();
            }
            reply(conn, "200 OK", "", "text/plain", b"")?;
            Ok(true)
        }
        _ => {
            reply(conn, "405 Method Not Allowed", "", "text/plain", b"")?;
            Ok(true)
        }
    }
}

fn is_known(http: &Http, session: Option<&str>) -> bool {
    session.is_some_and(|id| sys::held(&http.sessions).contains_key(id))
}

fn post(
    server: &Arc<Server>,
    http: &Arc<Http>,
    conn: &mut Conn,
    session: Option<&str>,
    body: &[u8],
) -> std::io::Result<bool> {
    let stateful = !server.options.stateless;
    let mut extra = String::new();
    if stateful && json::is_str(json::get(body, "method"), "initialize") {
        let id = http.session_id();
        extra = format!("Mcp-Session-Id: {id}\r\n");
        sys::held(&http.sessions).insert(id, None);
    } else if stateful && !is_known(http, session) {
        let (status, message) = match session {
            None => ("400 Bad Request", "Missing session"),
            Some(_) => ("404 Not Found", "Session not found"),
        };
        let id = String::from_utf8_lossy(json::get(body, "id").unwrap_or(b"null"));
        let error =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"message":"{message}"}}}}"#);
        reply(conn, status, "", "application/json", error.as_bytes())?;
        return Ok(true);
    }
    let kept = Arc::new(Kept::default());
    let emit: Arc<dyn Emit> = kept.clone();
    if body.trim_ascii().first() == Some(&b'[') {
        let mut answers = Vec::new();
        for member in json::items(body.trim_ascii()) {
            let mut answer = Vec::new();
            server.handle(member, &emit, &mut answer, true);
            if !answer.is_empty() {
                answers.push(answer);
            }
        }
        let all = [b"[", answers.join(&b',').as_slice(), b"]"].concat();
        reply(conn, "200 OK", &extra, "application/json", &all)?;
        return Ok(true);
    }
    let mut answer = Vec::new();
    if json::get(body, "id").is_none() || json::get(body, "method").is_none() {
        server.handle(body, &emit, &mut answer, true);
        reply(conn, "202 Accepted", "", "application/json", b"")?;
        return Ok(true);
    }
    if server.options.reply_sse || needs_stream(body) {
        return streamed(server, conn, &extra, body);
    }
    server.handle(body, &emit, &mut answer, true);
    if answer.is_empty() {
        answer = sys::held(&kept.0).pop().unwrap_or_default();
    }
    reply(conn, "200 OK", &extra, "application/json", &answer)?;
    Ok(true)
}

fn needs_stream(body: &[u8]) -> bool {
    json::is_str(json::get(body, "method"), "tools/call")
        && json::path(body, &["params", "name"])
            .is_some_and(|name| STREAMED.iter().any(|t| json::is_str(Some(name), t)))
}

fn streamed(server: &Arc<Server>, conn: &mut Conn, extra: &str, body: &[u8]) -> std::io::Result<bool> {
    conn.stream.write_all(format!("{}{extra}\r\n", sse::HEAD).as_bytes())?;
    let events = Arc::new(Events::over(conn)?);
    let emit: Arc<dyn Emit> = events.clone();
    let mut answer = Vec::new();
    server.handle(body, &emit, &mut answer, true);
    if !answer.is_empty() {
        events.emit(&answer);
    }
    let cut = events.is_closed();
    events.finish();
    Ok(!cut)
}

fn get(
    server: &Arc<Server>,
    http: &Arc<Http>,
    conn: &mut Conn,
    session: Option<&str>,
    last_event: Option<&str>,
) -> std::io::Result<bool> {
    if server.options.no_get {
        reply(conn, "405 Method Not Allowed", "Allow: POST, DELETE\r\n", "text/plain", b"")?;
        return Ok(true);
    }
    let Some(session) = session.filter(|id| is_known(http, Some(id))) else {
        let status = if session.is_none() { "400 Bad Request" } else { "404 Not Found" };
        reply(conn, status, "", "text/plain", b"")?;
        return Ok(true);
    };
    conn.stream.write_all(format!("{}\r\n", sse::HEAD).as_bytes())?;
    let events = Arc::new(Events::over(conn)?);
    let rest = last_event.and_then(|id| sys::held(&server.state.resumable).remove(id));
    if let Some(rest) = rest {
        events.emit(&rest);
        events.finish();
        return Ok(true);
    }
    if let Some(slot) = sys::held(&http.sessions).get_mut(session) {
        *slot = Some(Arc::clone(&events));
    }
    events.raw(b"7\r\n: open\n\r\n");
    let alive = Arc::clone(&events);
    small_thread(64, move || alive.keep_alive())?;
    wait_for_close(&conn.stream);
    events.close();
    Ok(false)
}
