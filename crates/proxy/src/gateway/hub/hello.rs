//! Owns what the gateway says of itself: the answers to `initialize` and `server/discover`, at once, whatever the
//! servers do.

use toolway_wire::era::ProtocolVersion;
use toolway_wire::find::Step;
use toolway_wire::push_string;

use super::session::Asker;
use super::{Hub, splice};
use crate::gateway::message::Message;
use crate::gateway::translate::{self, ClientFacts};

/// Characters of one server's instructions that are passed on, and of all together.
const ONE: usize = 4000;
const ALL: usize = 16_000;

/// Servers come and go, so the gateway says that it has everything, and that its lists change.
const LEGACY: &[u8] = br#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}"#;
const MODERN: &[u8] = LEGACY;

impl Hub {
    pub(super) fn initialize(&mut self, asker: &Asker, message: &Message) {
        let bytes = message.content.bytes().cloned().unwrap_or_default();
        let param = |name| splice::value(&bytes, &[Step::Key("params"), Step::Key(name)]);
        let capabilities = param("capabilities").filter(|raw| raw.first() == Some(&b'{')).unwrap_or(b"{}");
        let facts = ClientFacts {
            version: ProtocolVersion::V2026_07_28,
            capabilities: capabilities.to_vec(),
            client_info: param("clientInfo").map(<[u8]>::to_vec),
        };
        let version = translate::negotiate(message.envelope.protocol_version());
        if let Some(session) = self.sessions.get_mut(&asker.session) {
            session.client = Some(facts);
        }
        let instructions = self.instructions();
        let result = translate::initialize_result(version, LEGACY, &server_info(), instructions.as_deref());
        let bytes = splice::result(asker.id.raw(), &result);
        self.answer(asker, bytes);
    }

    pub(super) fn discover(&mut self, asker: &Asker) {
        let instructions = self.instructions();
        let result = translate::discover_result(MODERN, &server_info(), instructions.as_deref());
        let bytes = splice::result(asker.id.raw(), &result);
        self.answer(asker, bytes);
    }

    /// The instructions of the servers that are up, a JSON string.
    fn instructions(&self) -> Option<Vec<u8>> {
        let mut parts: Vec<(usize, String)> = Vec::new();
        for instance in self.instances.values().filter(|instance| !instance.retired) {
            let Some(text) = instance.negotiated.as_ref().and_then(|negotiated| negotiated.instructions())
            else {
                continue;
            };
            let text = text.trim();
            if text.is_empty() || parts.iter().any(|(server, _)| *server == instance.server) {
                continue;
            }
            let mut part: String = text.chars().take(ONE).collect();
            if part.len() < text.len() {
                part.push_str(" [...]");
            }
            let only = self.servers.len() == 1;
            parts.push((instance.server, if only { part } else { format!("# {}\n{part}", instance.name) }));
        }
        if parts.is_empty() {
            return None;
        }
        parts.sort_by_key(|(server, _)| *server);
        let mut text = String::new();
        for (_, part) in parts {
            if text.chars().count() + part.chars().count() > ALL {
                text.push_str("\n\n[the instructions of more servers were left out]");
                break;
            }
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&part);
        }
        let mut quoted = Vec::new();
        push_string(&text, &mut quoted);
        Some(quoted)
    }
}

fn server_info() -> Vec<u8> {
    format!("{{\"name\":\"toolway\",\"title\":\"Toolway\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION"))
        .into_bytes()
}
