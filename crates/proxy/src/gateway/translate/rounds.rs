//! Owns the question that a server asks in the middle of a call: a request of its own in the legacy era, an answer
//! `input_required` and a second call in the modern one. Specification 2026-07-28, "Multi Round-Trip Requests".

use toolway_wire::find::{Step, elements, find, members, string};
use toolway_wire::push_string;

use super::edits::Edits;
use super::handshake::object;

/// One question of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its key in `inputRequests`.
    pub key: String,
    /// `sampling/createMessage`, `elicitation/create`, `roots/list`, or what else the server wrote.
    pub method: String,
    /// Raw JSON.
    pub params: Option<Vec<u8>>,
}

/// An answer `input_required` of a modern server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequired {
    /// The questions in their order; none: the call may be repeated at once.
    pub asked: Vec<Asked>,
    /// Raw JSON string, never looked into: it goes back byte for byte.
    pub request_state: Option<Vec<u8>>,
}

/// What a second call carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Key and raw result of each answer.
    pub responses: Vec<(String, Vec<u8>)>,
    /// The text of `requestState`.
    pub request_state: Option<String>,
}

/// The client capability that a server's request needs; `None`: none, or no known request.
pub fn capability_for(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

/// Reads an answer whose `resultType` is `input_required`. `None` where it is none, or asks for nothing and carries no
/// state: that is a fault of the server.
pub fn read_input_required(message: &[u8]) -> Option<InputRequired> {
    let at = |name| find(message, &[Step::Key("result"), Step::Key(name)]);
    if string(message, at("resultType")?)? != "input_required" {
        return None;
    }
    let state = at("requestState").and_then(|at| message.get(at)).filter(|raw| raw.starts_with(b"\""));
    let mut asked = Vec::new();
    for member in at("inputRequests").into_iter().flat_map(|at| members(message, at)) {
        let value = message.get(member.value.clone())?;
        let method = string(value, find(value, &[Step::Key("method")])?)?;
        let params = find(value, &[Step::Key("params")]).and_then(|at| value.get(at)).map(<[u8]>::to_vec);
        asked.push(Asked { key: string(message, member.name.clone())?, method, params });
    }
    let nothing = asked.is_empty() && at("inputRequests").is_none() && state.is_none();
    (!nothing).then(|| InputRequired { asked, request_state: state.map(<[u8]>::to_vec) })
}

/// A server's question as a request to a legacy client. `id` is raw JSON.
pub fn server_request(id: &[u8], method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut quoted = Vec::new();
    push_string(method, &mut quoted);
    let mut set: Vec<(&str, &[u8])> = vec![("jsonrpc", b"\"2.0\""), ("id", id), ("method", &quoted)];
    set.extend(params.map(|params| ("params", params)));
    object(&set)
}

/// The second call: the first one (its id is for the caller to change) with the client's answers, each a raw result.
pub fn retry(request: &[u8], responses: &[(&str, &[u8])], request_state: Option<&[u8]>) -> Vec<u8> {
    let answers = object(responses);
    let mut set: Vec<(&str, &[u8])> = Vec::new();
    let mut remove = Vec::new();
    if responses.is_empty() {
        remove.push("inputResponses");
    } else {
        set.push(("inputResponses", &answers));
    }
    match request_state {
        Some(state) => set.push(("requestState", state)),
        None => remove.push("requestState"),
    }
    let mut edits = Edits::new();
    match find(request, &[Step::Key("params")]) {
        Some(params) if request.get(params.start) == Some(&b'{') => {
            edits.object(request, params, &remove, &set);
        }
        _ => {
            if let Some(whole) = find(request, &[]) {
                edits.object(request, whole, &[], &[("params", &object(&set))]);
            }
        }
    }
    edits.apply(request)
}

/// Reads what a modern client's second call carries. `None`: it is a first call.
pub fn read_retry(message: &[u8]) -> Option<Retry> {
    let at = |name| find(message, &[Step::Key("params"), Step::Key(name)]);
    let (answers, state) = (at("inputResponses"), at("requestState"));
    if answers.is_none() && state.is_none() {
        return None;
    }
    let responses = answers
        .into_iter()
        .flat_map(|at| members(message, at))
        .filter_map(|member| {
            Some((string(message, member.name.clone())?, message.get(member.value)?.to_vec()))
        })
        .collect();
    Some(Retry { responses, request_state: state.and_then(|at| string(message, at)) })
}

/// A legacy server's questions as the answer to a modern client's call. `id` is the call's, raw.
pub fn input_required(id: &[u8], asked: &[Asked], request_state: &str) -> Vec<u8> {
    let mut requests: Vec<(&str, Vec<u8>)> = Vec::new();
    for question in asked {
        let mut quoted = Vec::new();
        push_string(&question.method, &mut quoted);
        let mut set: Vec<(&str, &[u8])> = vec![("method", &quoted)];
        set.extend(question.params.as_deref().map(|params| ("params", params)));
        requests.push((&question.key, object(&set)));
    }
    let requests: Vec<(&str, &[u8])> = requests.iter().map(|(key, value)| (*key, value.as_slice())).collect();
    let mut state = Vec::new();
    push_string(request_state, &mut state);
    let result = object(&[
        ("resultType", b"\"input_required\""),
        ("inputRequests", &object(&requests)),
        ("requestState", &state),
    ]);
    result_response(id, &result)
}

/// A response with a raw result: what answers a legacy server's question.
pub fn result_response(id: &[u8], result: &[u8]) -> Vec<u8> {
    object(&[("jsonrpc", b"\"2.0\""), ("id", id), ("result", result)])
}

/// The questions in an error -32042 ("URL elicitation required", 2025-11-25 only) of a legacy server: a modern client
/// is asked them in a round. `None`: it is no such error.
pub fn url_elicitations(message: &[u8]) -> Option<Vec<Asked>> {
    let code = find(message, &[Step::Key("error"), Step::Key("code")])?;
    if message.get(code)? != b"-32042" {
        return None;
    }
    let at = find(message, &[Step::Key("error"), Step::Key("data"), Step::Key("elicitations")])?;
    let asked: Vec<Asked> = elements(message, at)
        .enumerate()
        .filter_map(|(index, at)| {
            Some(Asked {
                key: format!("elicitation-{index}"),
                method: "elicitation/create".to_owned(),
                params: Some(message.get(at)?.to_vec()),
            })
        })
        .collect();
    (!asked.is_empty()).then_some(asked)
}
