//! The upstream's tools: what each one answers, late or never. Knows no transport.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use super::answer::{error, result, result_head, text};
use super::{Emit, Server, Transport, small_thread};
use super::{blob_base64, blob_text, probe_result, text::blob_values};
use crate::{json, sys};

/// One `tools/call`, raw.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) name: &'a [u8],
    pub(super) id: &'a [u8],
    pub(super) args: &'a [u8],
    pub(super) params: &'a [u8],
    pub(super) message: &'a [u8],
}

/// The same, for a thread of its own.
#[derive(Debug)]
struct SlowCall {
    name: Vec<u8>,
    id: Vec<u8>,
    args: Vec<u8>,
    params: Vec<u8>,
}

impl Server {
    pub(super) fn tool(
        self: &Arc<Self>,
        call: &Call<'_>,
        emit: &Arc<dyn Emit>,
        out: &mut Vec<u8>,
        inline: bool,
    ) {
        match call.name {
            b"blob" => blob(call, emit, out),
            b"reflect" => text(call.id, &String::from_utf8_lossy(call.message), out),
            b"size" => text(call.id, &format!("{}", call.message.len()), out),
            b"probe" => probe(call, out),
            b"deep" => {
                let depth = json::get(call.args, "depth").map_or(10, |d| json::count(Some(d)));
                let (open, close) = ("[".repeat(depth), "]".repeat(depth));
                let body = format!(
                    r#"{{"content":[{{"type":"text","text":"deep"}}],"structuredContent":{{"v":{open}{close}}}}}"#
                );
                result(call.id, body.as_bytes(), out);
            }
            b"stats" => text(call.id, &self.stats(), out),
            b"crash" => sys::quit(3),
            b"crash_partial" => {
                emit.emit_torn();
                sys::quit(3)
            }
            b"garbage" => {
                if self.options.transport == Transport::Stdio {
                    let noise =
                        b"this is not json at all\n{\"half\":\nWARN: something printed by a library\n\n";
                    sys::write_all(std::io::stdout(), noise);
                }
                text(call.id, "after garbage", out);
            }
            b"stderr_flood" => {
                let bytes = json::get(call.args, "n").map_or(1 << 20, |n| json::count(Some(n)));
                let line = [&[b'e'; 99][..], b"\n"].concat();
                let mut stderr = std::io::stderr().lock();
                for _ in 0..bytes / 100 {
                    stderr.write_all(&line).ok();
                }
                text(call.id, "flooded", out);
            }
            b"never" => {
                if inline {
                    sys::pause(self.options.max_life);
                }
            }
            _ => self.slow_tool(call, emit, inline),
        }
    }

    fn slow_tool(self: &Arc<Self>, call: &Call<'_>, emit: &Arc<dyn Emit>, inline: bool) {
        let slow = SlowCall {
            name: call.name.to_vec(),
            id: call.id.to_vec(),
            args: call.args.to_vec(),
            params: call.params.to_vec(),
        };
        if inline {
            return self.slow(&slow, emit);
        }
        let (me, emit) = (Arc::clone(self), Arc::clone(emit));
        self.state.slow.fetch_add(1, Ordering::SeqCst);
        let started = small_thread(128, move || {
            me.slow(&slow, &emit);
            me.state.slow.fetch_sub(1, Ordering::SeqCst);
        });
        if started.is_err() {
            sys::quit(4);
        }
    }

    fn stats(&self) -> String {
        let methods: Vec<String> =
            sys::held(&self.state.methods).iter().map(|(k, v)| format!("{}:{v}", json::quote(k))).collect();
        let cancelled: Vec<String> =
            sys::held(&self.state.cancelled).iter().map(|s| json::quote(s)).collect();
        let init = String::from_utf8_lossy(&sys::held(&self.state.last_init)).into_owned();
        format!(
            r#"{{"methods":{{{}}},"cancelled":[{}],"pid":{},"init":{}}}"#,
            methods.join(","),
            cancelled.join(","),
            std::process::id(),
            if init.is_empty() { "null" } else { &init }
        )
    }

    fn slow(&self, call: &SlowCall, emit: &Arc<dyn Emit>) {
        let mut out = Vec::new();
        match call.name.as_slice() {
            b"sleep" => {
                let ms = json::count(json::get(&call.args, "ms")).min(120_000);
                sys::pause(Duration::from_millis(ms as u64));
                text(&call.id, &format!("slept {ms}"), &mut out);
            }
            b"progress" => {
                let n = json::get(&call.args, "n").map_or(1, |n| json::count(Some(n))).min(1_000_000);
                if let Some(token) = json::path(&call.params, &["_meta", "progressToken"]) {
                    let token = String::from_utf8_lossy(token);
                    for i in 1..=n {
                        emit.emit(format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{i},"total":{n},"message":"step {i}","futureField":1.0}}}}"#).as_bytes());
                    }
                }
                text(&call.id, &format!("progressed {n}"), &mut out);
            }
            b"notify" => {
                emit.emit(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"bench","data":{"z":1.0,"a":null}}}"#);
                emit.emit(br#"{"jsonrpc":"2.0","method":"notifications/x-unknown","params":{"k":1.0}}"#);
                text(&call.id, "notified", &mut out);
            }
            b"server_request" => self.ask_client(call, emit, &mut out),
            b"break_sse" => return self.break_stream(call, emit),
            name => {
                let message = format!("Unknown tool: {}", String::from_utf8_lossy(name));
                error(&call.id, -32602, &message, &mut out);
            }
        }
        emit.emit(&out);
    }

    fn ask_client(&self, call: &SlowCall, emit: &Arc<dyn Emit>, out: &mut Vec<u8>) {
        let method = json::string(json::get(&call.args, "method")).unwrap_or_else(|| "ping".into());
        let params = String::from_utf8_lossy(json::get(&call.args, "params").unwrap_or(b"{}"));
        let id = format!("srv-{}", self.state.next.fetch_add(1, Ordering::Relaxed));
        let (send, receive) = sync_channel(1);
        sys::held(&self.state.waiting).insert(id.clone(), send);
        let method = json::quote(&method);
        emit.emit(
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":{method},"params":{params}}}"#).as_bytes(),
        );
        match receive.recv_timeout(Duration::from_secs(4)) {
            Ok(answer) => text(&call.id, &String::from_utf8_lossy(&answer), out),
            Err(_) => text(&call.id, "NO REPLY FROM CLIENT", out),
        }
    }

    fn break_stream(&self, call: &SlowCall, emit: &Arc<dyn Emit>) {
        let notice = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"before the cut"}}"#;
        if json::truthy(json::get(&call.args, "resumable")) {
            let mut answer = Vec::new();
            text(&call.id, "resumed", &mut answer);
            let event_id = format!("ev-{}", self.state.next.fetch_add(1, Ordering::Relaxed));
            sys::held(&self.state.resumable).insert(event_id.clone(), answer);
            emit.emit_with_id(&event_id, notice);
        } else {
            emit.emit(notice);
        }
        emit.cut();
    }
}

fn probe(call: &Call<'_>, out: &mut Vec<u8>) {
    let kind = json::string(json::get(call.args, "kind")).unwrap_or_default();
    match kind.as_str() {
        "toplevel" => {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"x-top\":{\"z\":1.0},\"id\":");
            out.extend_from_slice(call.id);
            out.extend_from_slice(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"t\"}]}}");
        }
        "error" => error(call.id, -32042, "bench error", out),
        kind => result(call.id, probe_result(kind).as_bytes(), out),
    }
}

/// `n` characters as text, structured content, image, or values; `stream` writes them in pieces that cost the
/// upstream nothing.
fn blob(call: &Call<'_>, emit: &Arc<dyn Emit>, out: &mut Vec<u8>) {
    let n = json::count(json::get(call.args, "n"));
    let kind = json::string(json::get(call.args, "kind")).unwrap_or_default();
    let on = |key| json::truthy(json::get(call.args, key));
    let (head, body, tail): (&[u8], _, &[u8]) = if on("image") {
        (
            b"{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"",
            blob_base64(n),
            b"\"}]}}",
        )
    } else if on("structured") {
        let head = b"{\"content\":[{\"type\":\"text\",\"text\":\"see structuredContent\"}],\"structuredContent\":{\"text\":\"";
        (head, blob_text(n, &kind), b"\"}}}")
    } else if kind == "values" {
        let head =
            b"{\"content\":[{\"type\":\"text\",\"text\":\"see values\"}],\"structuredContent\":{\"values\":";
        (head, blob_values(n), b"}}}")
    } else if on("stream") {
        let mut head = Vec::new();
        result_head(call.id, &mut head);
        head.extend_from_slice(b"{\"content\":[{\"type\":\"text\",\"text\":\"");
        return emit.emit_blob(&head, n, b"\"}]}}");
    } else {
        (b"{\"content\":[{\"type\":\"text\",\"text\":\"", blob_text(n, &kind), b"\"}]}}")
    };
    out.reserve(body.len() + 256);
    result_head(call.id, out);
    out.extend_from_slice(head);
    out.extend_from_slice(&body);
    out.extend_from_slice(tail);
}
