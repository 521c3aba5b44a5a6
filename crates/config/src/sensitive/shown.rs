//! Owns how a definition is shown to a person: names of variables in it, and no secrets. Pure.

use std::borrow::Cow;

use toolway_secret::{REDACTED, Redactor};

use crate::definition::{Definition, InheritEnv, Options, Protocol, Share, Target, Text};
use crate::dialect::{Dialect, Field};
use crate::template::{self, Piece};

use super::{secret_name, secret_value};

/// The word before a credential in a header (RFC 9110, 11.4).
const SCHEMES: [&str; 4] = ["bearer ", "basic ", "token ", "digest "];

/// A definition as people may see it: one line for each field, names of variables in it, and no secrets.
pub(crate) fn shown_fields(definition: &Definition) -> Vec<(String, String)> {
    let mut fields = target(&definition.target, definition.dialect);
    options(&definition.options, &mut fields);
    fields
}

/// The variables that each field needs, and whether they have a default.
pub(crate) fn variables(definition: &Definition) -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    let mut look = |field: String, kind: Field, text: &Text| {
        for piece in template::parse(text.raw(), definition.dialect, kind).unwrap_or_default() {
            if let Piece::Variable { name, default } = piece {
                found.push((field.clone(), name, default.is_some()));
            }
        }
    };
    match &definition.target {
        Target::Stdio(target) => {
            look("command".to_owned(), Field::Command, &target.command);
            for (index, arg) in target.args.iter().flatten().enumerate() {
                look(format!("args.{index}"), Field::Args, arg);
            }
            for (name, value) in &target.env {
                look(format!("env.{name}"), Field::Env, value);
            }
            for (name, path) in [("envFile", &target.env_file), ("cwd", &target.cwd)] {
                if let Some(path) = path {
                    look(name.to_owned(), Field::Cwd, path);
                }
            }
        }
        Target::Remote(target) => {
            look("url".to_owned(), Field::Url, &target.url);
            for (name, value) in &target.headers {
                look(format!("headers.{name}"), Field::Headers, value);
            }
            let auth = target.auth.as_ref();
            let id = auth.and_then(|auth| auth.client_id.as_ref());
            let secret = auth.and_then(|auth| auth.client_secret.as_ref());
            for (name, text) in [("auth.CLIENT_ID", id), ("auth.CLIENT_SECRET", secret)] {
                if let Some(text) = text {
                    look(name.to_owned(), Field::Auth, text);
                }
            }
        }
    }
    found
}

fn options(options: &Options, fields: &mut Vec<(String, String)>) {
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.push((name.to_owned(), value));
        }
    };
    let truth = |value: Option<bool>| value.map(|value| value.to_string());
    let millis = |time: Option<std::time::Duration>| time.map(|time| time.as_millis().to_string());
    let list = |list: &[String]| (!list.is_empty()).then(|| list.join(" "));
    let words = |words: &std::collections::BTreeMap<String, String>| {
        let pairs: Vec<String> = words.iter().map(|(from, to)| format!("{from}={to}")).collect();
        list(&pairs)
    };
    add("enabled", truth(options.enabled));
    add("tools.allow", options.tools.allow.as_ref().map(|allow| allow.join(" ")));
    add("tools.deny", list(&options.tools.deny));
    add("tools.rename", words(&options.tools.rename));
    add("tools.describe", words(&options.tools.describe));
    add("startupTimeoutMs", millis(options.startup_timeout));
    add("listTimeoutMs", millis(options.list_timeout));
    add("callIdleTimeoutMs", millis(options.call_idle_timeout));
    add("callMaxMs", millis(options.call_max));
    add("required", truth(options.required));
    add("lazy", truth(options.lazy));
    let share = |share| match share {
        Share::Auto => "auto",
        Share::Always => "always",
        Share::Never => "never",
    };
    add("share", options.share.map(share).map(str::to_owned));
    add("maxResponseChars", options.max_response_chars.map(|count| count.to_string()));
    let roots = options.roots.as_ref();
    add("roots", roots.map(|roots| roots.iter().map(Text::raw).collect::<Vec<_>>().join(" ")));
    let protocol = |protocol| match protocol {
        Protocol::Auto => "auto",
        Protocol::Legacy => "legacy",
        Protocol::Modern => "modern",
    };
    add("protocol", options.protocol.map(protocol).map(str::to_owned));
}

fn target(target: &Target, dialect: Dialect) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut add = |name: String, value: String| fields.push((name, value));
    match target {
        Target::Stdio(target) => {
            add("command".to_owned(), shown(&target.command, dialect, Field::Command, ""));
            let mut flag = String::new();
            for (index, arg) in target.args.iter().flatten().enumerate() {
                let shown = shown(arg, dialect, Field::Args, &flag);
                flag = arg
                    .raw()
                    .strip_prefix('-')
                    .map(|flag| flag.trim_matches('-').to_owned())
                    .unwrap_or_default();
                flag = if flag.contains('=') { String::new() } else { flag };
                add(format!("args.{index}"), shown);
            }
            for (name, value) in &target.env {
                add(format!("env.{name}"), shown(value, dialect, Field::Env, name));
            }
            let paths = [("envFile", &target.env_file), ("cwd", &target.cwd)];
            for (name, value) in paths.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
                add(name.to_owned(), shown(value, dialect, Field::Cwd, ""));
            }
            match &target.inherit_env {
                InheritEnv::Base => {}
                InheritEnv::All => add("inheritEnv".to_owned(), "true".to_owned()),
                InheritEnv::Names(names) => add("inheritEnv".to_owned(), names.join(" ")),
            }
        }
        Target::Remote(target) => {
            add("url".to_owned(), shown_url(&shown(&target.url, dialect, Field::Url, "")));
            for (name, value) in &target.headers {
                add(format!("headers.{name}"), shown(value, dialect, Field::Headers, name));
            }
            if let Some(auth) = &target.auth {
                if let Some(id) = &auth.client_id {
                    add("auth.CLIENT_ID".to_owned(), shown(id, dialect, Field::Auth, ""));
                }
                if let Some(secret) = &auth.client_secret {
                    add("auth.CLIENT_SECRET".to_owned(), shown(secret, dialect, Field::Auth, "secret"));
                }
            }
        }
    }
    fields
}

/// One text as people may see it; `name` is that of its variable, header or flag.
fn shown(text: &Text, dialect: Dialect, field: Field, name: &str) -> String {
    let pieces = template::parse(text.raw(), dialect, field)
        .unwrap_or_else(|_| vec![Piece::Literal(text.raw().to_owned())]);
    let hidden = field == Field::Headers || secret_name(name);
    let piece = |piece: Piece| match piece {
        Piece::Literal(literal) => literal_shown(&literal, field, hidden),
        Piece::Variable { name, default: None } => format!("${{{name}}}"),
        Piece::Variable { name, default: Some(default) } => {
            let secret = hidden || secret_name(&name);
            let default = if secret { REDACTED.to_owned() } else { literal_shown(&default, field, false) };
            format!("${{{name}:-{default}}}")
        }
        Piece::Known(known) => format!("${{{}}}", known.name()),
        Piece::Input(id) => format!("${{input:{id}}}"),
        Piece::Command(command) => format!("${{command:{}}}", Redactor::known().redact(&command)),
        Piece::File(path) => format!("{{file:{path}}}"),
        Piece::Keyring(name) => format!("${{keyring:{name}}}"),
    };
    pieces.into_iter().map(piece).collect()
}

fn literal_shown(literal: &str, field: Field, hidden: bool) -> String {
    if literal.trim().is_empty() {
        return literal.to_owned();
    }
    if hidden {
        let lower = literal.to_ascii_lowercase();
        let scheme = SCHEMES.iter().find(|scheme| lower.starts_with(**scheme));
        return match scheme.and_then(|scheme| literal.split_at_checked(scheme.len())) {
            Some((scheme, "")) => scheme.to_owned(),
            Some((scheme, _)) => format!("{scheme}{REDACTED}"),
            None => REDACTED.to_owned(),
        };
    }
    match field {
        Field::Args => match literal.split_once('=').or_else(|| flag_and_value(literal)) {
            // `--token=X`, `--token X` in one word, and `NAME=X` for a program that sets variables.
            Some((name, value)) if !value.is_empty() && names_secret(name, value) => {
                format!("{name}{}{REDACTED}", if literal.contains('=') { '=' } else { ' ' })
            }
            _ if secret_value(literal) => Redacted::of(literal),
            _ => literal.to_owned(),
        },
        Field::Env if secret_value(literal) => REDACTED.to_owned(),
        _ => Redactor::known().redact(literal).into_owned(),
    }
}

/// A flag and its value in one argument, a blank between them.
fn flag_and_value(literal: &str) -> Option<(&str, &str)> {
    literal.split_once(' ').filter(|(flag, _)| flag.starts_with('-'))
}

/// Whether what stands before the `=` or the blank of an argument says that a secret follows.
fn names_secret(name: &str, value: &str) -> bool {
    let is_flag = name.starts_with('-');
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_flag || is_name) && secret_name(name) || is_flag && secret_value(value)
}

/// The known shapes taken out, or all of it where none is known.
struct Redacted;

impl Redacted {
    fn of(literal: &str) -> String {
        match Redactor::known().redact(literal) {
            Cow::Owned(text) => text,
            Cow::Borrowed(text) if text.contains('/') || text.contains('@') => {
                // A package or a path: only the part that looks secret goes.
                let part =
                    |part: &str| if secret_value(part) { REDACTED.to_owned() } else { part.to_owned() };
                text.split('/').map(part).collect::<Vec<_>>().join("/")
            }
            Cow::Borrowed(_) => REDACTED.to_owned(),
        }
    }
}

/// An address without user, without the values of its query that may be secret, and without parts of its path that are.
fn shown_url(url: &str) -> String {
    let (head, query) = url.split_once('?').map_or((url, None), |(head, query)| (head, Some(query)));
    let head = match head.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').map_or((rest, None), |(a, p)| (a, Some(p)));
            let host = authority
                .rsplit_once('@')
                .map_or(authority.to_owned(), |(_, host)| format!("{REDACTED}@{host}"));
            let part = |part: &str| {
                if !part.contains("${") && secret_value(part) { REDACTED.to_owned() } else { part.to_owned() }
            };
            let path =
                path.map(|path| format!("/{}", path.split('/').map(part).collect::<Vec<_>>().join("/")));
            format!("{scheme}://{host}{}", path.unwrap_or_default())
        }
        None => head.to_owned(),
    };
    let query = query.map(|query| {
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) if !value.starts_with("${") && (secret_name(name) || secret_value(value)) => {
                format!("{name}={REDACTED}")
            }
            _ => pair.to_owned(),
        };
        format!("?{}", query.split('&').map(pair).collect::<Vec<_>>().join("&"))
    });
    head + &query.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_has_variables_and_no_secrets() {
        let show = |text: &str, field, name: &str| shown(&Text::new(text), Dialect::Cursor, field, name);
        assert_eq!(show("Bearer ${TOK}", Field::Headers, "Authorization"), "Bearer ${TOK}");
        assert_eq!(show("Bearer abc", Field::Headers, "Authorization"), "Bearer [redacted]");
        assert_eq!(show("hunter2", Field::Env, "PW"), "[redacted]");
        assert_eq!(show("--require ./x.js", Field::Env, "NODE_OPTIONS"), "--require ./x.js");
        assert_eq!(show("${TOK:-hunter2}", Field::Env, "A"), "${TOK:-[redacted]}");
        assert_eq!(show("--api-key=hunter2", Field::Args, ""), "--api-key=[redacted]");
        assert_eq!(show("--api-key hunter2", Field::Args, ""), "--api-key [redacted]");
        assert_eq!(show("API_KEY=hunter2", Field::Args, "e"), "API_KEY=[redacted]");
        assert_eq!(show("token is what it is", Field::Args, ""), "token is what it is");
        assert_eq!(show("--root=/a b", Field::Args, ""), "--root=/a b");
        assert_eq!(show("hunter2", Field::Args, "token"), "[redacted]");
        assert_eq!(show("@scope/server-files@1.2.3", Field::Args, ""), "@scope/server-files@1.2.3");
        assert_eq!(
            shown_url("https://u:p@h/a8f5f167f44f4964e6c998dee827110c/mcp?token=x&a=b"),
            "https://[redacted]@h/[redacted]/mcp?token=[redacted]&a=b"
        );
    }
}
