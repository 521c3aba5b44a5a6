//! The authorization endpoint: it checks a request and sends the browser back with a code (RFC 6749, 4.1; RFC 7636;
//! RFC 8707; RFC 9207).

use url::Url;

use super::call::{Call, State};
use super::http::Answer;
use super::journal::Outcome;
use super::options::{Approval, Parameter};
use super::vault::{Client, Given};

/// The cookie that the form of the page wants back.
const COOKIE: &str = "visit";

/// Answers a request for a code.
pub(super) fn authorize(call: &mut Call, state: &mut State) -> Answer {
    let client = call.parameter("client_id").and_then(|id| state.vault.clients.get(id)).cloned();
    let Some(client) = client else {
        return call.refuse_page(400, "unauthorized_client", "This client is not known here.");
    };
    let redirect = call.parameter("redirect_uri").unwrap_or_default().to_owned();
    if !may_redirect(&client, &redirect, state.options.exact_ports) {
        return call.refuse_page(400, "invalid_redirect_uri", "This client may not be redirected to there.");
    }
    let right = [
        (call.parameter("response_type") == Some("code"), "unsupported_response_type"),
        (call.parameter("code_challenge").is_some_and(|challenge| challenge.len() == 43), "invalid_request"),
        (call.parameter("code_challenge_method") == Some("S256"), "invalid_request"),
        (call.parameter("state").is_some(), "invalid_request"),
        (resource(call, state).is_some(), "invalid_target"),
        (scope(call, state).is_some(), "invalid_scope"),
    ];
    if let Some((_, code)) = right.into_iter().find(|(right, _)| !right) {
        return send_error(call, state, &redirect, code);
    }
    match state.options.approval.clone() {
        Approval::Auto => send_code(call, state, &redirect),
        Approval::Elsewhere(url) => {
            let url = state.places.filled(&url);
            send_code(call, state, &url)
        }
        Approval::Deny(code) => send_error(call, state, &redirect, &code),
        Approval::Form => {
            let visit = state.vault.random();
            state.pending.push((visit.clone(), call.clone()));
            let consent = state.places.of("consent");
            let form = format!(
                "<h1>Sign in</h1><form method=\"post\" action=\"{consent}\">\
                 <input type=\"hidden\" name=\"step\" value=\"sign &amp; in\">\
                 <input type=\"text\" name=\"login\" required><input type=\"password\" name=\"password\" required>\
                 <button type=\"submit\">Sign in</button></form>"
            );
            Answer::html(200, "Sign in", &form)
                .with("Set-Cookie", &format!("{COOKIE}={visit}; Path=/; HttpOnly"))
        }
    }
}

/// Takes the form of the page.
pub(super) fn consent(call: &mut Call, state: &mut State) -> Answer {
    let cookies = call.header("cookie").unwrap_or_default().to_owned();
    let visit = cookies.split("; ").find_map(|cookie| cookie.strip_prefix(&format!("{COOKIE}=")));
    let pending = state.pending.iter().position(|(known, _)| Some(known.as_str()) == visit);
    let filled = call.parameter("step") == Some("sign & in")
        && call.parameter("login").is_some()
        && call.parameter("password").is_some();
    let Some(pending) = pending.filter(|_| filled && call.method == "POST") else {
        return call.refuse_page(
            400,
            "invalid_form",
            "The form is not as it was sent, or its cookie is missing.",
        );
    };
    let (_, mut asked) = state.pending.remove(pending);
    let redirect = asked.parameter("redirect_uri").unwrap_or_default().to_owned();
    let answer = send_code(&mut asked, state, &redirect);
    call.exchange.client_id = asked.exchange.client_id;
    call.exchange.issued = asked.exchange.issued;
    call.exchange.scope = asked.exchange.scope;
    answer
}

fn send_code(call: &mut Call, state: &mut State, to: &str) -> Answer {
    let given = Given {
        client: call.parameter("client_id").unwrap_or_default().to_owned(),
        scope: state.options.granted_scope.clone().or_else(|| scope(call, state)).unwrap_or_default(),
        resource: resource(call, state).unwrap_or_default(),
        family: Some(state.vault.new_family()),
    };
    call.exchange.scope = Some(given.scope.clone());
    let challenge = call.parameter("code_challenge").unwrap_or_default().to_owned();
    let redirect = call.parameter("redirect_uri").unwrap_or_default().to_owned();
    let code = state.vault.new_code(given, &challenge, &redirect);
    call.exchange.issued.extend(state.vault.label(&code));
    send(call, state, to, &[("code", &code)])
}

fn send_error(call: &mut Call, state: &State, to: &str, code: &str) -> Answer {
    let answer = send(call, state, to, &[("error", code), ("error_description", "it was not to be")]);
    call.exchange.outcome = Outcome::Refused(code.to_owned());
    answer
}

fn send(call: &Call, state: &State, to: &str, parameters: &[(&str, &str)]) -> Answer {
    let Ok(mut url) = Url::parse(to) else {
        return Answer::html(400, "It did not work", "<p>That is no URL.</p>");
    };
    let asked = call.parameter("state").unwrap_or_default().to_owned();
    let issuer = state.places.issuer.clone();
    let elsewhere = state.places.elsewhere.clone();
    {
        let mut query = url.query_pairs_mut();
        query.extend_pairs(parameters);
        match state.options.state {
            Parameter::Right => drop(query.append_pair("state", &asked)),
            Parameter::Wrong => drop(query.append_pair("state", &format!("{asked}x"))),
            Parameter::Absent => {}
        }
        match state.options.iss {
            Parameter::Right => drop(query.append_pair("iss", &issuer)),
            Parameter::Wrong => drop(query.append_pair("iss", &elsewhere)),
            Parameter::Absent => {}
        }
    }
    Answer::redirect(302, url.as_str())
}

/// The resource that is asked for, if it is one that this issuer protects.
pub(super) fn resource(call: &Call, state: &State) -> Option<String> {
    match call.parameter("resource") {
        Some(asked) => (asked == state.places.resource).then(|| asked.to_owned()),
        None => (!state.options.require_resource).then(|| state.places.resource.clone()),
    }
}

/// The scope that is asked for, if there is all of it.
pub(super) fn scope(call: &Call, state: &State) -> Option<String> {
    let Some(asked) = call.parameter("scope") else {
        return Some(state.options.base_scope.clone());
    };
    let known = state.options.scopes();
    asked.split(' ').all(|scope| known.iter().any(|known| known == scope)).then(|| asked.to_owned())
}

/// Whether the redirect is registered: exactly so, or on loopback with another port (RFC 8252, 7.3).
pub(super) fn may_redirect(client: &Client, to: &str, exact_ports: bool) -> bool {
    let same_but_port = |registered: &String| {
        let (Ok(mut registered), Ok(mut to)) = (Url::parse(registered), Url::parse(to)) else {
            return false;
        };
        let loopback = matches!(registered.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
        loopback
            && registered.scheme() == "http"
            && registered.set_port(None).is_ok()
            && to.set_port(None).is_ok()
            && registered == to
    };
    client.redirect_uris.iter().any(|registered| registered == to)
        || (!exact_ports && client.redirect_uris.iter().any(same_but_port))
}
