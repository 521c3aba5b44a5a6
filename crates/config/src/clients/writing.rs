//! Owns the way from one of Toolway's own entries to a client's. Pure. Texts are already in the client's dialect. What
//! the client has no word for is left out: `export` finds that by reading the result again.

use serde_json::{Map, Value as Json};

use super::codex;
use super::reading::Members;
use super::shape::{Auth, Command, Quirk, Shape, Switch};

/// The entry as the client has it.
pub(super) fn write(name: &str, own: &Members, shape: &Shape) -> Members {
    let mut out = Members::new();
    if shape.quirk == Quirk::Goose && is_server(own) {
        out.insert("name".to_owned(), name.into());
    }
    target(own, &mut out, shape);
    if shape.quirk == Quirk::Codex {
        codex::write(own, &mut out);
    }
    switch(own, &mut out, shape);
    auth(own, &mut out, shape);
    let tools = own.get("tools").and_then(Json::as_object);
    let list = |name: &str| tools.and_then(|tools| tools.get(name)).filter(|list| list.is_array()).cloned();
    if let Some((name, all)) = shape.allow {
        let all = all.filter(|_| is_server(own)).map(|all| Json::from(vec![all]));
        if let Some(list) = list("allow").or(all) {
            out.insert(name.to_owned(), list);
        }
    }
    if let (Some(name), Some(list)) = (shape.deny, list("deny")) {
        out.insert(name.to_owned(), list);
    }
    times(own, &mut out, shape);
    for name in shape.same {
        put(&mut out, name, own.get(*name).cloned());
    }
    out
}

fn is_server(own: &Members) -> bool {
    own.contains_key("command") || own.contains_key("url")
}

fn target(own: &Members, out: &mut Members, shape: &Shape) {
    if let Some(command) = own.get("command") {
        put(out, "type", shape.words.stdio.map(Json::from));
        let args = own.get("args");
        match shape.command {
            Command::List => {
                let args = args.and_then(Json::as_array).cloned().unwrap_or_default();
                let line: Vec<Json> = std::iter::once(command.clone()).chain(args).collect();
                put(out, "command", Some(line.into()));
            }
            Command::Plain | Command::Cmd => {
                let name = if shape.command == Command::Cmd { "cmd" } else { "command" };
                put(out, name, Some(command.clone()));
                // Goose asks for them.
                let none = || (shape.quirk == Quirk::Goose).then(|| Json::Array(Vec::new()));
                put(out, "args", args.cloned().or_else(none));
            }
        }
        put(out, shape.env, own.get("env").cloned());
        if let Some(forward) = shape.forward {
            put(out, forward, own.get("inheritEnv").filter(|names| names.is_array()).cloned());
        }
        put(out, "envFile", own.get("envFile").filter(|_| shape.env_file).cloned());
        put(out, "cwd", own.get("cwd").cloned());
    } else if let Some(url) = own.get("url") {
        let is_sse = own.get("type").and_then(Json::as_str) == Some("sse");
        let (word, name) =
            if is_sse { (shape.words.sse, shape.url.1) } else { (shape.words.http, shape.url.0) };
        // Said where it was said, and where the client asks for it.
        put(out, "type", word.map(Json::from));
        put(out, name, Some(url.clone()));
        if let Some(headers) = own.get("headers") {
            match shape.headers {
                [outer, inner] => {
                    let inner = Map::from_iter([((*inner).to_owned(), headers.clone())]);
                    put(out, outer, Some(inner.into()));
                }
                [name] => put(out, name, Some(headers.clone())),
                _ => {}
            }
        }
    }
}

fn put(out: &mut Members, name: &str, value: Option<Json>) {
    if let Some(value) = value {
        out.insert(name.to_owned(), value);
    }
}

fn switch(own: &Members, out: &mut Members, shape: &Shape) {
    let enabled = own.get("enabled").and_then(Json::as_bool);
    match shape.switch {
        Switch::No | Switch::Lists => {}
        Switch::Disabled => put(out, "disabled", enabled.map(|enabled| (!enabled).into())),
        Switch::Enabled => {
            let by_default = (shape.quirk == Quirk::Goose && is_server(own)).then_some(true);
            put(out, "enabled", enabled.or(by_default).map(Json::from));
        }
    }
}

fn auth(own: &Members, out: &mut Members, shape: &Shape) {
    let Some(auth) = own.get("auth") else { return };
    let named = |name: &str| auth.get(name).cloned();
    let mut oauth = Members::new();
    match shape.auth {
        Auth::No => {}
        Auth::Own => put(out, "auth", Some(auth.clone())),
        Auth::Oauth | Auth::OauthScope => {
            put(&mut oauth, "clientId", named("CLIENT_ID"));
            put(&mut oauth, "clientSecret", named("CLIENT_SECRET"));
            put(&mut oauth, "redirectUri", named("redirectUri"));
            let scopes = auth.get("scopes").and_then(Json::as_array);
            if shape.auth == Auth::Oauth {
                put(&mut oauth, "scopes", scopes.cloned().map(Json::from));
            } else {
                let words =
                    |scopes: &Vec<Json>| scopes.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" ");
                put(&mut oauth, "scope", scopes.map(words).map(Json::from));
            }
            put(out, "oauth", Some(oauth.into()));
        }
    }
}

fn times(own: &Members, out: &mut Members, shape: &Shape) {
    let mut written: Vec<&str> = Vec::new();
    for (theirs, ours, unit) in shape.times {
        let millis = own.get(*ours).and_then(Json::as_u64);
        if let Some(millis) = millis.filter(|_| !written.contains(ours)) {
            written.push(ours);
            // A started unit is a whole one, except where fractions are read.
            let value: Json = match shape.quirk {
                Quirk::Codex if millis % unit != 0 => {
                    let thousandths = millis % 1000;
                    format!("{}.{thousandths:03}", millis / 1000).parse::<f64>().unwrap_or_default().into()
                }
                _ => millis.div_ceil(*unit).into(),
            };
            put(out, theirs, Some(value));
        }
    }
}
