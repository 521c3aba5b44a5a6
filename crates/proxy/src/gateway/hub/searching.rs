//! Owns the two tools that stand for all others when the client is to see few: `toolway_search` and `toolway_call`.

use bytes::Bytes;
use toolway_wire::find::Step;
use toolway_wire::push_string;

use super::listing::Known;
use super::send::Target;
use super::session::Asker;
use super::{Hub, requests::rescan, splice};
use crate::gateway::config::{Expose, GatewayConfig};
use crate::gateway::message::Message;
use crate::gateway::search::{
    CALL_TOOL, CallRequest, SEARCH_TOOL, SearchRequest, call_definition, no_such_tool, search_definition,
    search_result,
};
use crate::gateway::state::ServerState;
use crate::gateway::translate;

/// The servers that the search tool names.
pub(super) fn names(config: &GatewayConfig) -> Vec<&str> {
    config.servers.iter().filter(|entry| entry.plan.is_ok()).map(|entry| entry.name.as_str()).collect()
}

/// What clients see of the two.
pub(super) fn definitions(config: &GatewayConfig) -> [Bytes; 2] {
    [search_definition(&names(config)).into(), call_definition().into()]
}

impl Hub {
    /// A call of one of the two; what is neither comes back.
    pub(super) fn call_search(&mut self, asker: Asker, message: Message) -> Option<(Asker, Message)> {
        let Expose::Search { .. } = self.config.expose else { return Some((asker, message)) };
        match message.envelope.name() {
            Some(SEARCH_TOOL) => self.search(&asker, &message),
            Some(CALL_TOOL) => self.call_found(asker, &message),
            _ => return Some((asker, message)),
        }
        None
    }

    fn states(&self) -> Vec<(String, ServerState)> {
        let named = self.servers.iter().enumerate().filter(|(_, server)| !server.name.is_empty());
        named.map(|(number, server)| (server.name.to_string(), self.state_of(number))).collect()
    }

    fn search(&mut self, asker: &Asker, message: &Message) {
        let arguments = arguments(message);
        let result = match SearchRequest::parse(&arguments) {
            Ok(request) => {
                let states = self.states();
                let states: Vec<(&str, &ServerState)> =
                    states.iter().map(|(name, state)| (name.as_str(), state)).collect();
                let most =
                    usize::try_from(self.config.guard.config().max_response_chars).unwrap_or(usize::MAX);
                // Room for what stands around the text, where its quotes are escaped.
                search_result(self.lists.catalogue(), &request, &states, most / 2)
            }
            Err(reason) => refusal(&reason),
        };
        self.answer_result(asker, &result);
    }

    fn call_found(&mut self, asker: Asker, message: &Message) {
        let request = match CallRequest::parse(&arguments(message)) {
            Ok(request) => request,
            Err(reason) => {
                self.answer_result(&asker, &refusal(&reason));
                return;
            }
        };
        let found = request.resolve(self.lists.catalogue()).map(|route| {
            let (own, json) = (route.definition.own.as_str().into(), route.definition.own_json.clone());
            Known { server: route.server, own, json }
        });
        let Some(Known { server, own, json }) = found else {
            // Says nothing here, but has a server tried again that is not up.
            self.unknown(&request.name, "tool");
            let states = self.states();
            let states: Vec<(&str, &ServerState)> =
                states.iter().map(|(name, state)| (name.as_str(), state)).collect();
            let reason = no_such_tool(self.lists.catalogue(), &request.name, &states);
            self.answer_result(&asker, &refusal(&reason));
            return;
        };
        let params = [Step::Key("params")];
        let Some(bytes) = message.content.bytes() else { return };
        let made = splice::value(bytes, &params).map(|params| {
            translate::set_members(params, &[("name", &json), ("arguments", &request.arguments)])
        });
        let made = made.and_then(|made| splice::with_value(bytes, &params, &made));
        match made.and_then(|bytes| rescan(bytes.into())) {
            Some(message) => self.deliver(Target { server, tool: Some(own), rename: None }, asker, message),
            None => self.answer_result(&asker, &refusal("the call has no parameters")),
        }
    }

    /// A tool's result of ours.
    fn answer_result(&mut self, asker: &Asker, result: &[u8]) {
        let bytes = splice::result(asker.id.raw(), result);
        let modern = asker.modern.is_some();
        let bytes = if modern { translate::result_to_modern(&bytes, "tools/call") } else { bytes };
        self.answer(asker, bytes);
    }
}

fn arguments(message: &Message) -> Bytes {
    let path = [Step::Key("params"), Step::Key("arguments")];
    let found = message
        .content
        .bytes()
        .and_then(|bytes| toolway_wire::find::find(bytes, &path).map(|at| bytes.slice(at)));
    found.unwrap_or_else(|| Bytes::from_static(b"{}"))
}

/// A result that says what was wrong, for the model that called.
fn refusal(reason: &str) -> Vec<u8> {
    let mut out = b"{\"content\":[{\"type\":\"text\",\"text\":".to_vec();
    push_string(reason, &mut out);
    out.extend_from_slice(b"}],\"isError\":true}");
    out
}
