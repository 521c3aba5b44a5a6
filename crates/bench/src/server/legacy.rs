//! The upstream over HTTP+SSE of 2024-11-05: one stream, and messages posted beside it.

use std::io::Write;
use std::sync::Arc;

use super::http::{Http, reply, wait_for_close};
use super::sse::{self, Events};
use super::{Emit, Server, small_thread};
use crate::conn::Conn;
use crate::sys;

pub(super) fn request(
    server: &Arc<Server>,
    http: &Arc<Http>,
    conn: &mut Conn,
    (verb, path): (&str, &str),
    query: &str,
    body: &[u8],
) -> std::io::Result<bool> {
    match (verb, path) {
        ("GET", "/sse") => {
            let id = http.session_id();
            conn.stream.write_all(format!("{}\r\n", sse::HEAD).as_bytes())?;
            let events = Arc::new(Events::over(conn)?);
            sys::held(&http.sessions).insert(id.clone(), Some(Arc::clone(&events)));
            events.event("endpoint", None, format!("/message?sessionId={id}").as_bytes());
            let alive = Arc::clone(&events);
            small_thread(64, move || alive.keep_alive())?;
            wait_for_close(&conn.stream);
            events.close();
            sys::held(&http.sessions).remove(&id);
            Ok(false)
        }
        ("POST", "/message") => {
            let id = query.split('&').find_map(|p| p.strip_prefix("sessionId=")).unwrap_or("");
            let events = sys::held(&http.sessions).get(id).cloned().flatten();
            let Some(events) = events else {
                reply(conn, "404 Not Found", "", "text/plain", b"no session")?;
                return Ok(true);
            };
            reply(conn, "202 Accepted", "", "text/plain", b"Accepted")?;
            let emit: Arc<dyn Emit> = events.clone();
            let mut answer = Vec::new();
            server.handle(body, &emit, &mut answer, false);
            if !answer.is_empty() {
                events.emit(&answer);
            }
            Ok(true)
        }
        _ => {
            reply(conn, "405 Method Not Allowed", "", "text/plain", b"")?;
            Ok(true)
        }
    }
}
