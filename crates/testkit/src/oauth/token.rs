//! The token endpoint (RFC 6749, 4.1.3, 4.4.2 and 6; RFC 7636, 4.6; RFC 8707, 2.2) and revocation (RFC 7009).

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::authorize::{resource, scope};
use super::call::{Call, State};
use super::http::Answer;
use super::journal::Grant;
use super::options::ExpiresIn;
use super::vault::{Client, Given};

/// Answers a request for tokens.
pub(super) fn token(call: &mut Call, state: &mut State) -> Answer {
    if call.method != "POST" {
        return call.refuse(405, "invalid_request", "tokens are asked for with POST");
    }
    let client = match call.client(state) {
        Ok(client) => client,
        Err(answer) => return answer,
    };
    let answer = match call.exchange.grant {
        Some(Grant::AuthorizationCode) => by_code(call, state, &client),
        Some(Grant::RefreshToken) => by_refresh_token(call, state, &client),
        Some(Grant::ClientCredentials) => by_credentials(call, state, &client),
        None => call.refuse(400, "unsupported_grant_type", "there is no such grant"),
    };
    answer.with("Cache-Control", "no-store")
}

fn by_code(call: &mut Call, state: &mut State, client: &Client) -> Answer {
    let presented = call.parameter("code").unwrap_or_default().to_owned();
    let Some(code) = state.vault.codes.iter_mut().find(|code| code.text == presented) else {
        return call.refuse(400, "invalid_grant", "there is no such code");
    };
    let (given, challenge, redirect) = (code.given.clone(), code.challenge.clone(), code.redirect.clone());
    if std::mem::replace(&mut code.used, true) {
        if let Some(family) = given.family {
            state.vault.revoke_family(family);
        }
        return call.refuse(400, "invalid_grant", "the code was used before");
    }
    let verifier = call.parameter("code_verifier").unwrap_or_default();
    if challenge_of(verifier) != challenge || !(43..=128).contains(&verifier.len()) {
        return call.refuse(400, "invalid_grant", "the verifier does not fit");
    }
    if given.client != client.id || call.parameter("redirect_uri") != Some(&redirect) {
        return call.refuse(400, "invalid_grant", "the code was given to another client or redirect");
    }
    if resource(call, state).as_ref() != Some(&given.resource) {
        return call.refuse(400, "invalid_target", "the code was given for another resource");
    }
    pair(call, state, given, true)
}

fn by_refresh_token(call: &mut Call, state: &mut State, client: &Client) -> Answer {
    let presented = call.parameter("refresh_token").unwrap_or_default().to_owned();
    let (now, leeway) = (state.vault.now(), state.options.reuse_leeway);
    let rotation = state.options.rotation;
    let Some(token) = state.vault.refresh.iter_mut().find(|token| token.text == presented) else {
        return call.refuse(400, "invalid_grant", "there is no such refresh token");
    };
    let mut given = token.given.clone();
    if given.client != client.id || token.revoked {
        // Whoever comes with a token that was used up and then revoked with its family has used it once more.
        call.exchange.reused = token.used.is_some();
        return call.refuse(
            400,
            "invalid_grant",
            "the refresh token was revoked, or given to another client",
        );
    }
    if rotation && token.used.is_some_and(|used| now >= used + leeway) {
        call.exchange.reused = true;
        if let Some(family) = given.family {
            state.vault.revoke_family(family);
        }
        return call.refuse(400, "invalid_grant", "the refresh token was used before: its family is revoked");
    }
    let asked = call.parameter("scope").map(str::to_owned);
    if let Some(asked) = asked {
        let granted: Vec<&str> = given.scope.split(' ').collect();
        if !asked.split(' ').all(|scope| granted.contains(&scope)) {
            return call.refuse(400, "invalid_scope", "a refresh cannot widen the scope");
        }
        given.scope = asked;
    }
    if resource(call, state).as_ref() != Some(&given.resource) {
        return call.refuse(400, "invalid_target", "the refresh token was given for another resource");
    }
    if let Some(token) = state.vault.refresh.iter_mut().find(|token| token.text == presented) {
        token.used.get_or_insert(now);
    }
    pair(call, state, given, rotation)
}

fn by_credentials(call: &mut Call, state: &mut State, client: &Client) -> Answer {
    if client.secret.is_none() {
        return call.refuse(400, "unauthorized_client", "a client without credentials has none to show");
    }
    let Some(scope) = scope(call, state) else {
        return call.refuse(400, "invalid_scope", "there is no such scope");
    };
    let Some(resource) = resource(call, state) else {
        return call.refuse(400, "invalid_target", "there is no such resource");
    };
    let given = Given { client: client.id.clone(), scope, resource, family: None };
    pair(call, state, given, false)
}

/// An access token, and a refresh token if that is wanted and there are any.
fn pair(call: &mut Call, state: &mut State, given: Given, refresh: bool) -> Answer {
    let life = state.options.access_token_life;
    let (access, label) = state.vault.new_access(given.clone(), life);
    call.exchange.issued.push(label);
    call.exchange.scope = Some(given.scope.clone());
    let mut body = json!({ "access_token": access, "token_type": "Bearer" });
    let mut add = |name: &str, value: Value| {
        if let Some(body) = body.as_object_mut() {
            body.insert(name.to_owned(), value);
        }
    };
    match &state.options.expires_in {
        ExpiresIn::Right => add("expires_in", life.as_secs().into()),
        ExpiresIn::Absent => {}
        ExpiresIn::Says(value) => add("expires_in", value.clone()),
    }
    if state.options.say_scope {
        add("scope", given.scope.clone().into());
    }
    let offline =
        !state.options.offline_access || given.scope.split(' ').any(|scope| scope == "offline_access");
    if refresh && offline && state.options.refresh_tokens {
        let (refresh, label) = state.vault.new_refresh(given);
        call.exchange.issued.push(label);
        add("refresh_token", refresh.into());
    }
    Answer::json(200, &body)
}

/// Gives a token up: a refresh token with its whole family. What is no token is given up already.
pub(super) fn revoke(call: &mut Call, state: &mut State) -> Answer {
    let client = match call.client(state) {
        Ok(client) => client,
        Err(answer) => return answer,
    };
    let Some(presented) = call.parameter("token").map(str::to_owned) else {
        return call.refuse(400, "invalid_request", "no token is named");
    };
    let refresh = state.vault.refresh.iter().find(|token| token.text == presented);
    if let Some(token) = refresh.filter(|token| token.given.client == client.id)
        && let Some(family) = token.given.family
    {
        state.vault.revoke_family(family);
    }
    let mut access = state.vault.access.iter_mut();
    if let Some(token) = access.find(|token| token.text == presented && token.given.client == client.id) {
        token.revoked = true;
    }
    Answer::empty(200)
}

/// The S256 challenge of a verifier (RFC 7636, 4.2).
pub(super) fn challenge_of(verifier: &str) -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}
