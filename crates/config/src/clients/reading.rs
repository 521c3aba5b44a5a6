//! Owns the way from a client's entry to one of Toolway's own: transport, units, filters, switches. Pure. Texts stay as
//! they are, in the client's dialect.

use serde_json::{Map, Value as Json};

use crate::definition::own_members;
use crate::origin::ORIGIN;

use super::codex;
use super::shape::{Auth, Quirk, Shape};

/// An entry: its members by name.
pub(super) type Members = Map<String, Json>;

/// A client's entry, understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The entry as it stands in Toolway's own files.
    pub(super) own: Members,
    /// Members that Toolway has no word for.
    pub(super) unknown: Vec<String>,
}

/// What a `type` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

/// What the reasons begin with that tell no fault: the client's own things among its servers.
pub(super) const NO_SERVER: &str = "is an extension";

/// Reads an entry. An error says why this is no server that Toolway can have: a fragment without values.
pub(super) fn read(name: &str, entry: &Members, shape: &Shape) -> Result<Reading, String> {
    let mut rest = entry.clone();
    let mut own = Members::new();
    let kind = kind(&mut rest, shape)?;
    let is_server = target(&mut rest, &mut own, kind, shape)?;
    if shape.quirk == Quirk::Codex {
        codex::read(&mut rest, &mut own)?;
    }
    // Goose asks for it; elsewhere it says nothing new.
    if rest.get("name").and_then(Json::as_str) == Some(name) {
        rest.shift_remove("name");
    }
    let is_off = shape.quirk == Quirk::Goose && is_server && !rest.contains_key("enabled");
    switch(&mut rest, &mut own, is_off)?;
    let is_extension =
        rest.contains_key("settings") || rest.get("source").is_some_and(|source| source == "extension");
    if !is_server && is_extension {
        return Err(format!("{NO_SERVER} of the client's own, and no MCP server"));
    }
    if !is_server && !own.contains_key("enabled") {
        return Err("has neither command nor url".to_owned());
    }
    auth(&mut rest, &mut own, shape);
    filters(&mut rest, &mut own, shape);
    times(&mut rest, &mut own, shape);
    as_they_are(&mut rest, &mut own, shape);
    Ok(Reading { own, unknown: rest.keys().cloned().collect() })
}

fn kind(rest: &mut Members, shape: &Shape) -> Result<Option<Kind>, String> {
    let name = ["type", "transport", "transportType"].into_iter().find(|name| rest.contains_key(*name));
    let Some(name) = name else { return Ok(None) };
    let word = match rest.shift_remove(name) {
        Some(Json::String(word)) => word,
        Some(Json::Null) | None => return Ok(None),
        Some(_) => return Err(format!("has a {name} that is no text")),
    };
    match word.to_ascii_lowercase().replace(['-', '_', ' '], "").as_str() {
        // OpenCode's word for both transports over HTTP.
        "remote" if shape.words.http == Some("remote") => Ok(None),
        "streamablehttp" | "http" | "remote" => Ok(Some(Kind::Http)),
        "sse" => Ok(Some(Kind::Sse)),
        "stdio" | "local" => Ok(Some(Kind::Stdio)),
        "ws" | "websocket" => Err("speaks WebSocket, which is no transport of MCP".to_owned()),
        _ if shape.quirk == Quirk::Goose => {
            Err(format!("{NO_SERVER} of the type {word:?}, and no MCP server"))
        }
        _ => Err(format!("has the type {word:?}, which is none of stdio, http and sse")),
    }
}

/// Where the server runs. Says whether there was anything about it.
fn target(rest: &mut Members, own: &mut Members, kind: Option<Kind>, shape: &Shape) -> Result<bool, String> {
    let has_command = command(rest, own, shape)?;
    let mut address = None;
    let named = ["httpUrl", "serverUrl", "url", "uri"];
    // MCPorter's word, beside which others may stand.
    let other = if named.iter().any(|name| rest.contains_key(*name)) { None } else { Some("baseUrl") };
    for name in named.into_iter().chain(other) {
        if let Some(value) = take_text(rest, name)? {
            if address.is_some() {
                return Err(format!("has {name} beside another address"));
            }
            address = Some((name, value));
        }
    }
    match (has_command, address) {
        (true, Some(_)) => Err("has both command and url".to_owned()),
        (true, None) if matches!(kind, Some(Kind::Http | Kind::Sse)) => {
            Err("has a command, and the type of an address".to_owned())
        }
        (true, None) => {
            process(rest, own, shape)?;
            Ok(true)
        }
        (false, Some(_)) if kind == Some(Kind::Stdio) => Err("has an address, and the type stdio".to_owned()),
        (false, Some((name, url))) => {
            let kind = match kind {
                None if name == "httpUrl" => Some(Kind::Http),
                None if name == "url" && shape.quirk == Quirk::UrlIsSse => Some(Kind::Sse),
                kind => kind,
            };
            match kind {
                Some(Kind::Http) => own.insert("type".to_owned(), "http".into()),
                Some(Kind::Sse) => own.insert("type".to_owned(), "sse".into()),
                Some(Kind::Stdio) | None => None,
            };
            own.insert("url".to_owned(), url.into());
            headers(rest, own, shape)?;
            Ok(true)
        }
        (false, None) => Ok(false),
    }
}

fn command(rest: &mut Members, own: &mut Members, shape: &Shape) -> Result<bool, String> {
    let name = if rest.contains_key("command") { "command" } else { "cmd" };
    let mut put_args = |args: Vec<Json>| own.insert("args".to_owned(), args.into());
    let command = match rest.shift_remove(name) {
        None | Some(Json::Null) => return Ok(false),
        Some(Json::String(command)) => {
            let args = take_texts(rest, "args")?;
            // Where a command without arguments is started as it stands, it has to be said that there are none.
            let may_split = !shape.splits && command.contains([' ', '\t', '"', '\'', '\\']);
            if args.is_some() || may_split {
                put_args(args.unwrap_or_default());
            }
            command
        }
        Some(Json::Array(mut words)) => {
            if words.is_empty() {
                return Err("has an empty command".to_owned());
            }
            let Json::String(command) = words.remove(0) else {
                return Err("has a command that is no text".to_owned());
            };
            let mut args = texts(&words.into()).ok_or("has a command with a word that is no text")?;
            args.extend(take_texts(rest, "args")?.unwrap_or_default());
            put_args(args);
            command
        }
        // Zed's older shape.
        Some(Json::Object(mut inner)) => {
            let command = take_text(&mut inner, "path")?.ok_or("has a command without its path")?;
            put_args(take_texts(&mut inner, "args")?.unwrap_or_default());
            if let Some(env) = inner.shift_remove("env").filter(Json::is_object) {
                rest.insert("env".to_owned(), env);
            }
            command
        }
        Some(_) => return Err(format!("has a {name} that is no text")),
    };
    // The command goes before its arguments.
    own.shift_insert(0, "command".to_owned(), command.into());
    Ok(true)
}

fn process(rest: &mut Members, own: &mut Members, shape: &Shape) -> Result<(), String> {
    for name in [shape.env, "env", "environment", "envs"] {
        if own.contains_key("env") {
            break;
        }
        if let Some(env) = take_map(rest, name)? {
            own.insert("env".to_owned(), env.into());
        }
    }
    if let Some(file) = take_text(rest, "envFile")? {
        own.insert("envFile".to_owned(), file.into());
    }
    if let Some(forward) = shape.forward {
        let names = take_texts(rest, forward)?.unwrap_or_default();
        if !names.is_empty() {
            own.insert("inheritEnv".to_owned(), names.into());
        }
    }
    if let Some(directory) = take_text(rest, "cwd")? {
        own.insert("cwd".to_owned(), directory.into());
    }
    Ok(())
}

fn headers(rest: &mut Members, own: &mut Members, shape: &Shape) -> Result<(), String> {
    let headers = match shape.headers {
        [outer, inner] => {
            let found = match rest.get_mut(*outer) {
                Some(Json::Object(members)) => take_map(members, inner)?,
                _ => None,
            };
            if rest.get(*outer).and_then(Json::as_object).is_some_and(Map::is_empty) {
                rest.shift_remove(*outer);
            }
            found
        }
        [name] => take_map(rest, name)?,
        _ => None,
    };
    let headers = match headers {
        Some(headers) => Some(headers),
        None => take_map(rest, "headers")?,
    };
    if let Some(headers) = headers {
        own.insert("headers".to_owned(), headers.into());
    }
    Ok(())
}

fn switch(rest: &mut Members, own: &mut Members, is_off: bool) -> Result<(), String> {
    let mut take = |name: &str| match rest.shift_remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Bool(value)) => Ok(Some(value)),
        Some(_) => Err(format!("has an {name} that is neither true nor false")),
    };
    let (on, off) = (take("enabled")?, take("disabled")?);
    let enabled = match (on, off) {
        (Some(on), Some(off)) if on == off => return Err("is enabled and disabled at once".to_owned()),
        (Some(on), _) => Some(on),
        (None, Some(off)) => Some(!off),
        (None, None) => is_off.then_some(false),
    };
    if let Some(enabled) = enabled {
        own.insert("enabled".to_owned(), enabled.into());
    }
    Ok(())
}

fn auth(rest: &mut Members, own: &mut Members, shape: &Shape) {
    let outer = match shape.auth {
        Auth::No => return,
        Auth::Own => {
            if let Some(auth) = rest.shift_remove("auth") {
                own.insert("auth".to_owned(), auth);
            }
            return;
        }
        Auth::Oauth | Auth::OauthScope => "oauth",
    };
    let Some(Json::Object(mut oauth)) = rest.get(outer).cloned() else { return };
    let mut auth = Members::new();
    for (theirs, ours) in
        [("clientId", "CLIENT_ID"), ("clientSecret", "CLIENT_SECRET"), ("redirectUri", "redirectUri")]
    {
        if let Some(Json::String(value)) = oauth.get(theirs).cloned() {
            oauth.shift_remove(theirs);
            auth.insert(ours.to_owned(), value.into());
        }
    }
    let scopes: Option<Vec<Json>> = match oauth.get("scopes").or_else(|| oauth.get("scope")) {
        Some(Json::String(scopes)) => Some(scopes.split_whitespace().map(Json::from).collect()),
        Some(Json::Array(scopes)) => Some(scopes.clone()),
        _ => None,
    };
    // Scopes alone are no client: they stay a note.
    if auth.is_empty() {
        return;
    }
    if let Some(scopes) = scopes {
        oauth.shift_remove("scopes");
        oauth.shift_remove("scope");
        auth.insert("scopes".to_owned(), scopes.into());
    }
    own.insert("auth".to_owned(), auth.into());
    if oauth.is_empty() {
        rest.shift_remove(outer);
    } else {
        rest.insert(outer.to_owned(), oauth.into());
    }
}

fn filters(rest: &mut Members, own: &mut Members, shape: &Shape) {
    let mut tools = Members::new();
    let allows = ["enabled_tools", "includeTools", "available_tools", "enabledTools"];
    for name in shape.allow.map(|(name, _)| name).into_iter().chain(allows) {
        let Some(list) = rest.get(name).and_then(texts) else { continue };
        rest.shift_remove(name);
        let all = shape.allow.and_then(|(_, all)| all);
        let is_all = list.iter().any(|item| item.as_str() == all && all.is_some());
        // Goose's empty list, too, means all of them.
        let is_none_given = list.is_empty() && shape.quirk == Quirk::Goose;
        if !is_all && !is_none_given && !tools.contains_key("allow") {
            tools.insert("allow".to_owned(), list.into());
        }
    }
    for name in shape.deny.into_iter().chain(["disabled_tools", "disabledTools", "excludeTools"]) {
        let Some(list) = rest.get(name).and_then(texts) else { continue };
        rest.shift_remove(name);
        if !list.is_empty() && !tools.contains_key("deny") {
            tools.insert("deny".to_owned(), list.into());
        }
    }
    if !tools.is_empty() {
        own.insert("tools".to_owned(), tools.into());
    }
}

fn times(rest: &mut Members, own: &mut Members, shape: &Shape) {
    for (theirs, ours, unit) in shape.times {
        let millis = rest.get(*theirs).and_then(|value| in_millis(value, *unit));
        if let (Some(millis), false) = (millis, own.contains_key(*ours)) {
            rest.shift_remove(*theirs);
            own.insert((*ours).to_owned(), millis.into());
        }
    }
}

/// Members of Toolway's own form.
fn as_they_are(rest: &mut Members, own: &mut Members, shape: &Shape) {
    let is_own =
        |name: &str| shape.same.contains(&name) || (shape.holds_own && own_members().contains(&name));
    let names: Vec<String> =
        rest.keys().filter(|name| is_own(name) && !own.contains_key(*name)).cloned().collect();
    for name in names.into_iter().filter(|name| name != ORIGIN) {
        if let Some(value) = rest.shift_remove(&name) {
            own.insert(name, value);
        }
    }
}

/// A positive time in whole milliseconds; anything else stays a note.
fn in_millis(value: &Json, unit: u64) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return whole.checked_mul(unit).filter(|millis| *millis > 0);
    }
    // A fraction, exact to the millisecond.
    let text = value.as_f64()?.to_string();
    let (whole, fraction) = text.split_once('.')?;
    let thousandths: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    (unit == 1000 && fraction.len() <= 3).then(|| whole.checked_mul(1000)?.checked_add(thousandths))?
}

fn take_text(rest: &mut Members, name: &str) -> Result<Option<String>, String> {
    match rest.shift_remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("has a {name} that is no text")),
    }
}

fn take_texts(rest: &mut Members, name: &str) -> Result<Option<Vec<Json>>, String> {
    match rest.shift_remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => texts(&value).map(Some).ok_or_else(|| format!("has {name} that are no list of texts")),
    }
}

fn texts(value: &Json) -> Option<Vec<Json>> {
    value.as_array()?.iter().map(scalar).collect()
}

fn take_map(rest: &mut Members, name: &str) -> Result<Option<Members>, String> {
    match rest.shift_remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Object(members)) => {
            let text = |(key, value): (String, Json)| Some((key, scalar(&value)?));
            let read: Option<Members> = members.into_iter().map(text).collect();
            read.map(Some).ok_or_else(|| format!("has a value in {name} that is no text"))
        }
        Some(_) => Err(format!("has {name} that is no object")),
    }
}

/// A text; numbers and truths as they are written.
fn scalar(value: &Json) -> Option<Json> {
    match value {
        Json::String(_) => Some(value.clone()),
        Json::Number(number) => Some(number.to_string().into()),
        Json::Bool(value) => Some(value.to_string().into()),
        _ => None,
    }
}
