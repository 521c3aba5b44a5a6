//! Owns what becomes of a client's request: answered here, or sent to the server that it is for.

use toolway_guard::READ_BACK_TOOL;
use toolway_wire::find::Step;
use toolway_wire::{Envelope, INVALID_PARAMS, METHOD_NOT_FOUND, UPSTREAM_ERROR};

use super::Hub;
use super::listing::Known;
use super::send::Target;
use super::session::{Asker, ModernFacts};
use super::splice;
use crate::gateway::config::Expose;
use crate::gateway::lists::ListKind;
use crate::gateway::message::{Content, Message};
use crate::gateway::state::ServerState;
use crate::gateway::translate::{self, SUPPORTED};

/// Requests of the legacy generation that the modern one no longer has (2026-07-28, "Changes").
const REMOVED: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// The largest request that is looked into, where it is not in memory.
const LOOKED_INTO: u64 = 64 << 20;

impl Hub {
    /// A request whose id may be used.
    pub(super) fn request(&mut self, mut asker: Asker, message: Message) {
        let message = match in_memory(message) {
            Ok(message) => message,
            Err(reason) => {
                self.fail(&asker, UPSTREAM_ERROR, &reason);
                return;
            }
        };
        let envelope = &message.envelope;
        let method = envelope.method().unwrap_or_default();
        let modern = match method {
            // A revision in its params is one that it offers.
            "initialize" => message.content.bytes().is_some_and(|bytes| translate::is_modern(bytes)),
            "server/discover" | "subscriptions/listen" => true,
            _ => envelope.protocol_version().is_some(),
        };
        if modern && let Err(refusal) = modern_facts(&mut asker, &message) {
            let bytes = refusal.response(asker.id.raw(), &SUPPORTED);
            self.answer(&asker, bytes);
            return;
        }
        if asker.modern.is_some() && REMOVED.contains(&method) {
            self.fail(&asker, METHOD_NOT_FOUND, "method not found: this revision has it no longer");
            return;
        }
        let Some((asker, message)) = self.awaited(asker, message) else { return };
        match message.envelope.method().unwrap_or_default() {
            "tools/call" => self.call(asker, message),
            "initialize" => self.initialize(&asker, &message),
            "server/discover" => self.discover(&asker),
            "ping" => self.empty(&asker),
            "tools/list" => self.list(asker, ListKind::Tools, &message),
            "prompts/list" => self.list(asker, ListKind::Prompts, &message),
            "resources/list" => self.list(asker, ListKind::Resources, &message),
            "resources/templates/list" => self.list(asker, ListKind::Templates, &message),
            "prompts/get" => self.prompt(asker, message),
            "resources/read" => self.read(asker, message),
            "resources/subscribe" => self.subscribe(asker, message),
            "resources/unsubscribe" => self.unsubscribe(&asker, &message),
            "completion/complete" => self.complete(asker, &message),
            "logging/setLevel" => self.set_level(&asker, &message),
            "subscriptions/listen" => self.listen(&asker, &message),
            _ => self.other(asker, message),
        }
    }

    /// An empty result.
    pub(super) fn empty(&mut self, asker: &Asker) {
        let result: &[u8] = if asker.modern.is_some() { b"{\"resultType\":\"complete\"}" } else { b"{}" };
        let bytes = splice::result(asker.id.raw(), result);
        self.answer(asker, bytes);
    }

    fn call(&mut self, asker: Asker, message: Message) {
        if self.follows(&message) {
            self.follow_references(asker, message);
        } else {
            self.call_tool(asker, message);
        }
    }

    /// A call whose arguments are what they are to be.
    pub(super) fn call_tool(&mut self, asker: Asker, message: Message) {
        let Some(name) = message.envelope.name() else {
            self.fail(&asker, INVALID_PARAMS, "invalid params: name, a string, is required");
            return;
        };
        if let Some(Known { server, own, json }) = self.lists.tool(name) {
            let rename = (own.as_ref() != name).then_some(json);
            self.deliver(Target { server, tool: Some(own), rename }, asker, message);
            return;
        }
        if name == READ_BACK_TOOL && self.reads_back() {
            self.read_back(asker, &message);
        } else if let Some((asker, message)) = self.call_search(asker, message) {
            if let (true, Some(own)) = (self.passes_unlisted(), message.envelope.name().map(Into::into)) {
                self.deliver(Target { server: 0, tool: Some(own), rename: None }, asker, message);
                return;
            }
            let (text, down) = self.unknown(message.envelope.name().unwrap_or_default(), "tool");
            self.fail(&asker, if down { UPSTREAM_ERROR } else { INVALID_PARAMS }, &text);
        }
    }

    /// A tool that was not listed goes to the one server all the same: with bare names it is the server that knows what it
    /// has, and the gateway hides none of it.
    fn passes_unlisted(&self) -> bool {
        let [only] = self.servers.as_slice() else { return false };
        let Ok(config) = &only.plan else { return false };
        self.config.bare
            && matches!(self.config.expose, Expose::All)
            && !self.config.pin_tools
            && config.filter.allow.is_none()
            && config.filter.deny.is_empty()
            && self.state_of(0) == ServerState::Connected
            && self.lists.is_whole(0)
    }

    /// Why there is no such tool or prompt; and whether that is because of a server that is not up.
    pub(super) fn unknown(&mut self, name: &str, noun: &str) -> (String, bool) {
        let (text, needed) = self.why_unknown(name, noun);
        if let Some(server) = needed {
            self.try_again(server);
        }
        (text, needed.is_some())
    }

    /// Somebody needs a server that has failed: it may be better since.
    pub(super) fn try_again(&mut self, server: usize) {
        for copy in self.copies(server) {
            let state = self.instances.get(&copy).map(|instance| &instance.state);
            if let Some(ServerState::Failed { .. } | ServerState::NeedsAuth { .. }) = state {
                self.effects.push(super::Effect::Wake(copy));
            }
        }
    }

    fn why_unknown(&self, name: &str, noun: &str) -> (String, Option<usize>) {
        let server = self.servers.iter().enumerate().find(|(_, server)| {
            let prefix = self.lists.prefix(&server.name);
            !prefix.is_empty() && name.starts_with(&prefix)
        });
        if let Some((number, server)) = server {
            let state = self.state_of(number);
            if state != ServerState::Connected {
                let text =
                    format!("the {noun} {name:?} is not available: server {:?} is {state}", server.name);
                return (text, Some(number));
            }
            return (
                format!("unknown {noun}: {name:?}: server {:?} has none of this name", server.name),
                None,
            );
        }
        if let (true, [only]) = (self.config.bare, self.servers.as_slice()) {
            let state = self.state_of(0);
            if state != ServerState::Connected {
                let text = format!("the {noun} {name:?} is not available: server {:?} is {state}", only.name);
                return (text, Some(0));
            }
        }
        (format!("unknown {noun}: {name:?}"), None)
    }

    fn prompt(&mut self, asker: Asker, message: Message) {
        let Some(name) = message.envelope.name() else {
            self.fail(&asker, INVALID_PARAMS, "invalid params: name, a string, is required");
            return;
        };
        if let Some(Known { server, own, json }) = self.lists.prompt(name) {
            let rename = (own.as_ref() != name).then_some(json);
            self.deliver(Target { server, tool: None, rename }, asker, message);
            return;
        }
        let (text, down) = self.unknown(name, "prompt");
        self.fail(&asker, if down { UPSTREAM_ERROR } else { INVALID_PARAMS }, &text);
    }

    fn complete(&mut self, asker: Asker, message: &Message) {
        let Some(bytes) = message.content.bytes() else { return };
        let path = |key| [Step::Key("params"), Step::Key("ref"), Step::Key(key)];
        let kind = splice::text(bytes, &path("type")).unwrap_or_default();
        if kind == "ref/prompt" {
            let name = splice::text(bytes, &path("name")).unwrap_or_default();
            let Some(known) = self.lists.prompt(&name) else {
                let (text, down) = self.unknown(&name, "prompt");
                self.fail(&asker, if down { UPSTREAM_ERROR } else { INVALID_PARAMS }, &text);
                return;
            };
            let changed = splice::with_value(bytes, &path("name"), &known.json);
            self.deliver_changed(known.server, asker, changed);
            return;
        }
        let uri = splice::text(bytes, &path("uri")).unwrap_or_default();
        match self.lists.resource(&uri) {
            Some((server, own)) => {
                let changed = splice::with_value(bytes, &path("uri"), &super::resources::quoted(&own));
                self.deliver_changed(server, asker, changed);
            }
            None => {
                self.fail(&asker, INVALID_PARAMS, &format!("unknown reference for a completion: {uri:?}"));
            }
        }
    }

    /// As [`Hub::deliver`], for a request whose bytes were changed.
    pub(super) fn deliver_changed(&mut self, server: usize, asker: Asker, changed: Option<Vec<u8>>) {
        match changed.and_then(|bytes| rescan(bytes.into())) {
            Some(message) => self.deliver(Target { server, tool: None, rename: None }, asker, message),
            None => self.fail(&asker, INVALID_PARAMS, "invalid params: a member is missing"),
        }
    }

    /// A method that is not known here is for the server, where there is only one.
    fn other(&mut self, asker: Asker, message: Message) {
        let mut candidates = self.servers.iter().enumerate().filter(|(_, server)| server.plan.is_ok());
        if let (Some((server, _)), None) = (candidates.next(), candidates.next()) {
            self.deliver(Target { server, tool: None, rename: None }, asker, message);
            return;
        }
        let method = message.envelope.method().unwrap_or_default();
        let text = format!("method not found: {method:?} cannot be routed to one of several servers");
        self.fail(&asker, METHOD_NOT_FOUND, &text);
    }
}

/// The message with its bytes in memory.
pub(super) fn in_memory(message: Message) -> Result<Message, String> {
    use toolway_guard::Body;
    let Message { content, envelope } = message;
    let body = match content {
        Content::Bytes(_) => return Ok(Message { content, envelope }),
        Content::Held(body) => body,
    };
    let len = body.len();
    match *body {
        Body::File(file) if len <= LOOKED_INTO => {
            let mut whole = vec![0; usize::try_from(len).unwrap_or(0)];
            let mut at = 0;
            while let Some(rest) = whole.get_mut(at..).filter(|rest| !rest.is_empty()) {
                match file.read_at(rest, at as u64) {
                    Ok(0) => return Err(format!("the message of {len} bytes was cut short")),
                    Ok(length) => at += length,
                    Err(error) => {
                        return Err(format!("the message of {len} bytes cannot be read back: {error}"));
                    }
                }
            }
            Ok(Message { content: Content::Bytes(whole.into()), envelope })
        }
        Body::File(_) => {
            Err(format!("the message of {len} bytes is too large for a gateway, which looks into it"))
        }
        Body::Lost { reason, .. } => Err(format!("the message of {len} bytes could not be held: {reason}")),
        Body::TooLarge { .. } => Err(format!("the message of {len} bytes is over --max-message-bytes")),
        Body::Memory(bytes) => Ok(Message { content: Content::Bytes(bytes.into()), envelope }),
    }
}

/// A message that was changed, with what the scanner finds in it now.
pub(super) fn rescan(bytes: bytes::Bytes) -> Option<Message> {
    let envelope: Envelope = match toolway_wire::Scanner::new().whole(&bytes) {
        toolway_wire::Verdict::Message(envelope) => envelope.clone(),
        _ => return None,
    };
    Some(Message { content: Content::Bytes(bytes), envelope })
}

/// What a modern request says of its client.
fn modern_facts(asker: &mut Asker, message: &Message) -> Result<(), translate::Refusal> {
    let Some(bytes) = message.content.bytes() else { return Ok(()) };
    let found = translate::request_meta(bytes);
    translate::check(&found, &SUPPORTED)?;
    let level = found.log_level.as_deref().and_then(translate::log_rank);
    asker.modern = found.client().map(|client| Box::new(ModernFacts { client, level }));
    Ok(())
}
