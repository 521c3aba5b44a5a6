//! Owns `subscriptions/listen` and what stands for it in the legacy era: subscribe, unsubscribe, and notifications that
//! name no stream. Specification 2026-07-28, "Subscriptions".

use toolway_wire::era::meta;
use toolway_wire::find::{Step, elements, find, string};
use toolway_wire::request::{ClientFacts, meta_span};
use toolway_wire::{Id, push_string};

use super::edits::Edits;
use super::handshake::object;
use super::to_modern::{request_to_modern, with_meta};

/// What a `subscriptions/listen` asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// `notifications/tools/list_changed`.
    pub tools: bool,
    /// `notifications/prompts/list_changed`.
    pub prompts: bool,
    /// `notifications/resources/list_changed`.
    pub resources: bool,
    /// `notifications/resources/updated` of these.
    pub uris: Vec<String>,
}

impl Filter {
    /// Nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a notification of this method goes to the stream; `uri` is `params.uri`.
    pub fn admits(&self, method: &str, uri: Option<&str>) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools,
            "notifications/prompts/list_changed" => self.prompts,
            "notifications/resources/list_changed" => self.resources,
            "notifications/resources/updated" => {
                uri.is_some_and(|uri| self.uris.iter().any(|wanted| wanted == uri))
            }
            _ => false,
        }
    }

    /// As it stands in a message.
    fn json(&self) -> Vec<u8> {
        let mut uris = vec![b'['];
        for (index, uri) in self.uris.iter().enumerate() {
            if index > 0 {
                uris.push(b',');
            }
            push_string(uri, &mut uris);
        }
        uris.push(b']');
        let mut set: Vec<(&str, &[u8])> = Vec::new();
        for (name, on) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if on {
                set.push((name, b"true"));
            }
        }
        if !self.uris.is_empty() {
            set.push(("resourceSubscriptions", &uris));
        }
        object(&set)
    }
}

/// Reads a `subscriptions/listen`; `None` where `params.notifications` is no object, which is -32602.
pub fn listen_filter(message: &[u8]) -> Option<Filter> {
    let at = |name| find(message, &[Step::Key("params"), Step::Key("notifications"), Step::Key(name)]);
    let whole = find(message, &[Step::Key("params"), Step::Key("notifications")])?;
    if message.get(whole.start) != Some(&b'{') {
        return None;
    }
    let on = |name| at(name).and_then(|at| message.get(at)) == Some(b"true");
    let uris = at("resourceSubscriptions").map(|at| {
        let mut uris: Vec<String> = Vec::new();
        for uri in elements(message, at).filter_map(|at| string(message, at)) {
            if !uris.contains(&uri) {
                uris.push(uri);
            }
        }
        uris
    });
    Some(Filter {
        tools: on("toolsListChanged"),
        prompts: on("promptsListChanged"),
        resources: on("resourcesListChanged"),
        uris: uris.unwrap_or_default(),
    })
}

/// `subscriptions/listen` for a modern server. `id` is raw JSON.
pub fn listen_request(id: &[u8], client: &ClientFacts, filter: &Filter) -> Vec<u8> {
    let params = object(&[("notifications", &filter.json())]);
    let message = object(&[
        ("jsonrpc", b"\"2.0\""),
        ("id", id),
        ("method", b"\"subscriptions/listen\""),
        ("params", &params),
    ]);
    request_to_modern(&message, client, None)
}

/// The first message of a stream: what of the filter is honoured. `id` is that of the listen request, raw.
pub fn acknowledged(id: &[u8], filter: &Filter) -> Vec<u8> {
    let stream = object(&[(meta::SUBSCRIPTION_ID, id)]);
    let params = object(&[("_meta", &stream), ("notifications", &filter.json())]);
    object(&[
        ("jsonrpc", b"\"2.0\""),
        ("method", b"\"notifications/subscriptions/acknowledged\""),
        ("params", &params),
    ])
}

/// The end of a stream that the server ends in good order: the answer to the listen request.
pub fn listen_result(id: &[u8]) -> Vec<u8> {
    let stream = object(&[(meta::SUBSCRIPTION_ID, id)]);
    let result = object(&[("resultType", b"\"complete\""), ("_meta", &stream)]);
    object(&[("jsonrpc", b"\"2.0\""), ("id", id), ("result", &result)])
}

/// `notifications/cancelled` for a request of this id (raw JSON).
pub fn cancelled(id: &[u8], reason: Option<&str>) -> Vec<u8> {
    let mut quoted = Vec::new();
    let mut set: Vec<(&str, &[u8])> = vec![("requestId", id)];
    if let Some(reason) = reason {
        push_string(reason, &mut quoted);
        set.push(("reason", &quoted));
    }
    object(&[("jsonrpc", b"\"2.0\""), ("method", b"\"notifications/cancelled\""), ("params", &object(&set))])
}

/// The stream that a notification belongs to.
pub fn subscription_id(message: &[u8]) -> Option<Id> {
    let path = [Step::Key("params"), Step::Key("_meta"), Step::Key(meta::SUBSCRIPTION_ID)];
    Id::from_json(message.get(find(message, &path)?)?)
}

/// The notification as one of the stream of this listen request (raw id).
pub fn with_subscription_id(message: &[u8], id: &[u8]) -> Vec<u8> {
    with_meta(message, &[(meta::SUBSCRIPTION_ID, id)])
}

/// The notification for a client that knows no streams.
pub fn without_subscription_id(message: &[u8]) -> Vec<u8> {
    let mut edits = Edits::new();
    if let Some(span) = meta_span(message) {
        edits.object(message, span, &[meta::SUBSCRIPTION_ID], &[]);
    }
    edits.apply(message)
}

/// `resources/subscribe` for a legacy server. `id` is raw JSON.
pub fn subscribe(id: &[u8], uri: &str) -> Vec<u8> {
    about_resource(id, b"\"resources/subscribe\"", uri)
}

/// `resources/unsubscribe` for a legacy server. `id` is raw JSON.
pub fn unsubscribe(id: &[u8], uri: &str) -> Vec<u8> {
    about_resource(id, b"\"resources/unsubscribe\"", uri)
}

fn about_resource(id: &[u8], method: &[u8], uri: &str) -> Vec<u8> {
    let mut quoted = Vec::new();
    push_string(uri, &mut quoted);
    let params = object(&[("uri", &quoted)]);
    object(&[("jsonrpc", b"\"2.0\""), ("id", id), ("method", method), ("params", &params)])
}
