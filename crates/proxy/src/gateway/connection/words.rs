//! Owns how our own requests are spelled, in both generations. Sends nothing.

use bytes::Bytes;
use toolway_transport::{Members, Outbound, Payload};
use toolway_wire::era::{Era, ProtocolVersion, meta};
use toolway_wire::{Id, Scanner, Verdict, push_string};

use super::Face;

/// Spells requests, and numbers them: ids are strings, so that they never meet those of the hub.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) era: Era,
    face: std::sync::Arc<Face>,
    next: u64,
}

impl Words {
    pub(super) fn new(face: std::sync::Arc<Face>) -> Self {
        Self { era: Era::Legacy, face, next: 1 }
    }

    /// A request with these members of `params`: name and raw value. `progress`: it asks for progress, under the
    /// request's own id. `None` when a value is not JSON.
    pub(crate) fn request(
        &mut self,
        method: &str,
        params: &[(&str, &str)],
        progress: bool,
    ) -> Option<(Id, Outbound)> {
        let id = format!("\"toolway-{}\"", self.next);
        self.next += 1;
        let mut text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":");
        quote(&mut text, method);
        text.push_str(",\"params\":{");
        let mut separator = "";
        for (name, value) in params {
            text.push_str(separator);
            quote(&mut text, name);
            text.push(':');
            text.push_str(value);
            separator = ",";
        }
        let meta = self.meta(progress.then_some(&id));
        if !meta.is_empty() {
            text.push_str(separator);
            text.push_str("\"_meta\":{");
            text.push_str(&meta);
            text.push('}');
        }
        text.push_str("}}");
        Some((Id::from_json(id.as_bytes())?, outbound(text.into())?))
    }

    pub(super) fn initialize(&mut self) -> Option<(Id, Outbound)> {
        let mut version = String::new();
        quote(&mut version, &ProtocolVersion::V2025_11_25.to_string());
        let (capabilities, info) = (self.face.capabilities.clone(), self.info());
        let params = [("protocolVersion", &*version), ("capabilities", &capabilities), ("clientInfo", &info)];
        self.request("initialize", &params, false)
    }

    /// A cancellation of one of our own requests.
    pub(crate) fn cancel(id: &Id, reason: &str) -> Option<Outbound> {
        let mut text =
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":"
                .to_owned();
        text.push_str(std::str::from_utf8(id.raw()).ok()?);
        text.push_str(",\"reason\":");
        quote(&mut text, reason);
        text.push_str("}}");
        outbound(text.into())
    }

    /// The members of `_meta`.
    fn meta(&self, token: Option<&String>) -> String {
        let mut text = String::new();
        if self.era == Era::Modern {
            text = format!(
                "\"{}\":\"{}\",\"{}\":{},\"{}\":{}",
                meta::PROTOCOL_VERSION,
                ProtocolVersion::V2026_07_28,
                meta::CLIENT_INFO,
                self.info(),
                meta::CLIENT_CAPABILITIES,
                self.face.capabilities,
            );
        }
        if let Some(token) = token {
            text.push_str(if text.is_empty() { "" } else { "," });
            text.push_str("\"progressToken\":");
            text.push_str(token);
        }
        text
    }

    fn info(&self) -> String {
        let mut text = "{\"name\":".to_owned();
        quote(&mut text, &self.face.name);
        text.push_str(",\"version\":");
        quote(&mut text, &self.face.version);
        text.push('}');
        text
    }
}

/// `notifications/initialized`
pub(super) fn initialized() -> Option<Outbound> {
    outbound(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"))
}

/// The answer to a request of the server's, with a raw result.
pub(crate) fn answer(id: &Id, result: &[u8]) -> Option<Outbound> {
    let text = [b"{\"jsonrpc\":\"2.0\",\"id\":", id.raw(), b",\"result\":", result, b"}"].concat();
    outbound(text.into())
}

/// An error as the answer to a request of the server's.
pub(crate) fn refuse(id: &Id, code: i64, message: &str) -> Option<Outbound> {
    outbound(toolway_wire::error_response(id.raw(), code, message, None).into())
}

/// Adds a JSON string.
pub(crate) fn quote(text: &mut String, value: &str) {
    let mut bytes = Vec::with_capacity(value.len() + 2);
    push_string(value, &mut bytes);
    text.push_str(&String::from_utf8_lossy(&bytes));
}

/// A message of ours, looked at as every message is. `None` when it is none.
pub(crate) fn outbound(bytes: Bytes) -> Option<Outbound> {
    let mut scanner = Scanner::new();
    let Verdict::Message(envelope) = scanner.whole(&bytes) else { return None };
    let members = Members::One(envelope.clone());
    Some(Outbound { payload: Payload::Bytes(bytes), members })
}
