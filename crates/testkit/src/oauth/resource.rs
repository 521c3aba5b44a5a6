//! The protected resource: a small MCP server over Streamable HTTP (revision 2025-11-25, answers as JSON), and its
//! challenges (RFC 6750, 3; RFC 9728, 5.1).

use serde_json::{Value, json};

use super::call::{Call, State};
use super::http::Answer;
use super::journal::Outcome;
use super::options::Challenge;
use super::vault::Bad;

/// The newest revision that it speaks, and older ones.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Answers a request of the resource.
pub(super) fn serve(call: &mut Call, state: &mut State) -> Answer {
    let Some(token) = call.bearer().map(str::to_owned) else {
        return challenge(call, state, 401, None);
    };
    let scope = match state.vault.open(&token, &state.places.resource) {
        Ok(token) => token.given.scope.clone(),
        Err(bad) => return challenge(call, state, 401, Some(&Refusal::of(bad))),
    };
    call.exchange.scope = Some(scope.clone());
    let method = call.body.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let tool = call.body.pointer("/params/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if call.method == "POST" {
        call.exchange.rpc = Some(format!("{method} {tool}").trim_end().to_owned());
    }
    let mut needed = vec![state.options.base_scope.clone()];
    if method == "tools/call" {
        needed.extend(state.options.tool_scopes.get(&tool).cloned());
    }
    needed.retain(|scope| !scope.is_empty());
    let granted: Vec<&str> = scope.split(' ').collect();
    let missing: Vec<String> =
        needed.iter().filter(|scope| !granted.contains(&scope.as_str())).cloned().collect();
    if !missing.is_empty() {
        let told = if state.options.challenge_all_scopes { needed } else { missing };
        return challenge(call, state, 403, Some(&Refusal::scope(told.join(" "))));
    }
    match call.method.as_str() {
        "POST" => post(call, state, &method, &tool),
        "DELETE" => {
            let session = call.header("mcp-session-id").unwrap_or_default().to_owned();
            state.sessions.retain(|known| *known != session);
            Answer::empty(200)
        }
        _ => Answer::empty(405).with("Allow", "POST, DELETE"),
    }
}

/// What a challenge says.
struct Refusal {
    code: &'static str,
    description: &'static str,
    scope: Option<String>,
}

impl Refusal {
    fn of(bad: Bad) -> Self {
        let description = match bad {
            Bad::Unknown => "the token is unknown",
            Bad::Expired => "the token has expired",
            Bad::Revoked => "the token was revoked",
            Bad::Audience => "the token is for another resource",
        };
        Self { code: "invalid_token", description, scope: None }
    }

    fn scope(scope: String) -> Self {
        Self {
            code: "insufficient_scope",
            description: "the token does not reach so far",
            scope: Some(scope),
        }
    }
}

fn challenge(call: &mut Call, state: &State, status: u16, refusal: Option<&Refusal>) -> Answer {
    let code = refusal.map_or("unauthorized", |refusal| refusal.code);
    call.exchange.outcome = Outcome::Refused(code.to_owned());
    let mut parts = Vec::new();
    if let Some(refusal) = refusal {
        parts.push(format!("error=\"{}\", error_description=\"{}\"", refusal.code, refusal.description));
    }
    let options = &state.options;
    let scope =
        refusal.and_then(|refusal| refusal.scope.clone()).unwrap_or_else(|| options.base_scope.clone());
    if options.challenge != Challenge::NoScope && !scope.is_empty() {
        parts.push(format!("scope=\"{scope}\""));
    }
    if options.challenge != Challenge::NoMetadata {
        parts.push(format!("resource_metadata=\"{}\"", state.places.told(options)));
    }
    let answer = Answer::json(status, &json!({ "error": code }));
    match &options.challenge {
        Challenge::Absent => answer,
        Challenge::Raw(text) => answer.with("WWW-Authenticate", &state.places.filled(text)),
        _ => answer.with("WWW-Authenticate", format!("Bearer {}", parts.join(", ")).trim_end()),
    }
}

fn post(call: &mut Call, state: &mut State, method: &str, tool: &str) -> Answer {
    let Some(id) = call.body.get("id").cloned() else {
        return Answer::empty(202);
    };
    let session = call.header("mcp-session-id").map(str::to_owned);
    if method != "initialize"
        && let Some(session) = session
        && !state.sessions.contains(&session)
    {
        let error = json!({ "code": -32001, "message": "there is no such session" });
        return Answer::json(404, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
    let result = match method {
        "initialize" => {
            let asked = call.body.pointer("/params/protocolVersion").and_then(Value::as_str);
            let revision = REVISIONS.into_iter().find(|known| Some(*known) == asked).unwrap_or(REVISIONS[0]);
            let session = state.vault.random();
            state.sessions.push(session.clone());
            let result = json!({
                "protocolVersion": revision, "capabilities": { "tools": {} },
                "serverInfo": { "name": "protected", "version": "1" },
            });
            return answered(&id, "result", &result).with("Mcp-Session-Id", &session);
        }
        "ping" => json!({}),
        "tools/list" => tools(),
        "tools/call" => {
            let Some(text) = called(call, tool) else {
                let error = json!({ "code": -32602, "message": format!("unknown tool: {tool}") });
                return answered(&id, "error", &error);
            };
            json!({ "content": [{ "type": "text", "text": text }], "isError": false })
        }
        _ => {
            let error = json!({ "code": -32601, "message": format!("method not found: {method}") });
            return answered(&id, "error", &error);
        }
    };
    answered(&id, "result", &result)
}

fn answered(id: &Value, member: &str, value: &Value) -> Answer {
    Answer::json(200, &json!({ "jsonrpc": "2.0", "id": id, member: value }))
}

fn tools() -> Value {
    let tool = |name: &str, description: &str, properties: Value| {
        let schema = json!({ "type": "object", "properties": properties });
        json!({ "name": name, "description": description, "inputSchema": schema })
    };
    json!({ "tools": [
        tool("echo", "Says what it is told.", json!({ "text": { "type": "string" } })),
        tool("admin", "Needs a scope of its own.", json!({})),
        tool("whoami", "Tells which token it was called with.", json!({})),
    ]})
}

/// What a tool says.
fn called(call: &Call, tool: &str) -> Option<String> {
    match tool {
        "echo" => Some(call.body.pointer("/params/arguments/text")?.as_str()?.to_owned()),
        "admin" => Some("you are an administrator".to_owned()),
        "whoami" => {
            let token = call.exchange.presented.as_deref().unwrap_or_default();
            Some(format!("{token} {}", call.exchange.scope.as_deref().unwrap_or_default()))
        }
        _ => None,
    }
}
