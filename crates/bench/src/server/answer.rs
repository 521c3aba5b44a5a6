//! From one message to its answer. Knows no transport: what is not answered at once goes through `Emit`.

use std::sync::Arc;

use super::tools::Call;
use super::{Emit, INIT_TAIL, Server};
use crate::{json, sys};

/// Writes a response with this raw result.
pub(super) fn result(id: &[u8], body: &[u8], out: &mut Vec<u8>) {
    result_head(id, out);
    out.extend_from_slice(body);
    out.push(b'}');
}

/// A response up to the place of its result.
pub(super) fn result_head(id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.extend_from_slice(b",\"result\":");
}

/// Writes a tool's answer of one text block.
pub(super) fn text(id: &[u8], text: &str, out: &mut Vec<u8>) {
    result(id, format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, json::quote(text)).as_bytes(), out);
}

/// Writes an error response, with data that a tree would reorder and respell.
pub(super) fn error(id: &[u8], code: i64, message: &str, out: &mut Vec<u8>) {
    let message = json::quote(message);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    let rest = format!(r#","error":{{"code":{code},"message":{message},"data":{{"z":1.0,"a":null}}}}}}"#);
    out.extend_from_slice(rest.as_bytes());
}

impl Server {
    /// Answers one message. An immediate answer goes to `out` (no newline). Slow tools answer through `emit`, from a
    /// thread of their own unless `inline`.
    pub(super) fn handle(
        self: &Arc<Self>,
        message: &[u8],
        emit: &Arc<dyn Emit>,
        out: &mut Vec<u8>,
        inline: bool,
    ) {
        let (mut id, mut method, mut params) = (None, None, None);
        for (key, value) in json::fields(message) {
            match key {
                b"id" => id = Some(value),
                b"method" => method = Some(value),
                b"params" => params = Some(value),
                _ => {}
            }
        }
        match (method.map(json::unquoted), id) {
            (None, id) => self.response(message, id, out),
            (Some(method), None) => self.notification(method, params),
            (Some(b"tools/call"), Some(id)) => {
                let (mut name, mut args): (&[u8], &[u8]) = (b"", b"{}");
                for (key, value) in json::fields(params.unwrap_or(b"{}")) {
                    match key {
                        b"name" => name = json::unquoted(value),
                        b"arguments" => args = value,
                        _ => {}
                    }
                }
                if name == b"echo" {
                    result_head(id, out);
                    out.extend_from_slice(b"{\"content\":[{\"type\":\"text\",\"text\":");
                    out.extend_from_slice(json::get(args, "text").unwrap_or(b"\"\""));
                    out.extend_from_slice(b"}]}}");
                    return;
                }
                self.count(&format!("tools/call:{}", String::from_utf8_lossy(name)));
                let call = Call { name, id, args, params: params.unwrap_or(b"{}"), message };
                self.tool(&call, emit, out, inline);
            }
            (Some(method), Some(id)) => self.request(method, id, params, message, out),
        }
    }

    /// The client's answer to a request of ours, or something that is no message.
    fn response(&self, message: &[u8], id: Option<&[u8]>, out: &mut Vec<u8>) {
        if let Some(id) = json::string(id) {
            if let Some(waiting) = sys::held(&self.state.waiting).remove(&id) {
                waiting.send(message.to_vec()).ok();
            }
        } else if json::get(message, "result").is_none() && json::get(message, "error").is_none() {
            error(b"null", -32700, "Parse error", out);
        }
    }

    fn notification(&self, method: &[u8], params: Option<&[u8]>) {
        if method == b"notifications/cancelled" {
            let id = params.and_then(|p| json::get(p, "requestId")).unwrap_or(b"?");
            sys::held(&self.state.cancelled).push(String::from_utf8_lossy(id).into_owned());
        }
        self.count(&String::from_utf8_lossy(method));
    }

    fn initialize(&self, id: &[u8], params: Option<&[u8]>, message: &[u8], out: &mut Vec<u8>) {
        if !self.options.init_delay.is_zero() {
            sys::pause(self.options.init_delay);
        }
        *sys::held(&self.state.last_init) = message.to_vec();
        self.count("initialize");
        let wanted = params.and_then(|p| json::string(json::get(p, "protocolVersion"))).unwrap_or_default();
        let version = match wanted.as_str() {
            "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" => wanted.as_str(),
            _ => "2025-06-18",
        };
        result(id, format!(r#"{{"protocolVersion":"{version}",{INIT_TAIL}}}"#).as_bytes(), out);
    }

    fn request(&self, method: &[u8], id: &[u8], params: Option<&[u8]>, message: &[u8], out: &mut Vec<u8>) {
        let body: &[u8] = match method {
            b"initialize" => return self.initialize(id, params, message, out),
            b"ping" | b"logging/setLevel" | b"resources/subscribe" | b"resources/unsubscribe" => b"{}",
            b"tools/list" => {
                self.count("tools/list");
                self.stamp();
                self.tools.as_bytes()
            }
            b"resources/list" => {
                br#"{"resources":[{"uri":"bench://blob/10","name":"blob","mimeType":"text/plain","futureField":1.0}]}"#
            }
            b"resources/templates/list" => br#"{"resourceTemplates":[]}"#,
            b"resources/read" => {
                br#"{"contents":[{"uri":"bench://blob/10","mimeType":"text/plain","text":"0123456789"}]}"#
            }
            b"prompts/list" => br#"{"prompts":[{"name":"p","description":"A prompt."}]}"#,
            b"prompts/get" => br#"{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}"#,
            b"completion/complete" => br#"{"completion":{"values":["a"]}}"#,
            b"x-bench/custom" => {
                self.count("x-bench/custom");
                br#"{"custom":true,"z":1.0}"#
            }
            _ => {
                let method = String::from_utf8_lossy(method);
                self.count(&method);
                return error(id, -32601, &format!("Method not found: {method}"), out);
            }
        };
        result(id, body, out);
    }
}
