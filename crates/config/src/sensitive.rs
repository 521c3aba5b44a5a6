//! Owns the judgement of what may be secret, and how a definition is shown to a person without showing that. Pure.

use toolway_secret::{REDACTED, Redactor};

use crate::definition::{Target, Text};
use crate::dialect::{Dialect, Field};
use crate::template::{self, Piece};

/// Parts of names that say that the value is a secret.
const PARTS: [&str; 13] = [
    "token",
    "tok",
    "key",
    "secret",
    "password",
    "passwd",
    "pass",
    "pw",
    "pwd",
    "auth",
    "credential",
    "cred",
    "pat",
];
/// Names with such parts that are none.
const HARMLESS: [&str; 5] = ["PWD", "OLDPWD", "PATH", "KEYBOARD", "SSH_AUTH_SOCK"];
/// The word before a credential in a header (RFC 9110, 11.4).
const SCHEMES: [&str; 4] = ["bearer ", "basic ", "token ", "digest "];

/// Whether the name of a variable, a header or a flag says that its value is a secret.
pub(crate) fn secret_name(name: &str) -> bool {
    if HARMLESS.contains(&name) {
        return false;
    }
    let mut spaced = String::new();
    let mut lower_before = false;
    for letter in name.chars() {
        if letter.is_uppercase() && lower_before {
            spaced.push('_');
        }
        lower_before = letter.is_lowercase();
        spaced.extend(letter.to_lowercase());
    }
    let words = spaced.split(|c: char| !c.is_ascii_alphanumeric());
    let is_secret = |word: &str| {
        PARTS.iter().any(|part| word == *part || (part.len() > 4 && word.contains(part)))
            || word.ends_with("key")
            || word.ends_with("auth")
            || word == "authorization"
    };
    words.filter(|word| !word.is_empty()).any(is_secret)
}

/// Whether a value looks like a secret: a known shape, or a long mix of letters and digits.
pub(crate) fn secret_value(value: &str) -> bool {
    if matches!(Redactor::known().redact(value), std::borrow::Cow::Owned(_)) {
        return true;
    }
    let mixed = |word: &str| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let letters = word.chars().filter(char::is_ascii_alphabetic).count();
        word.len() >= 20 && digits >= 3 && letters >= 3 && digits + letters + 3 >= word.len()
    };
    value.split(|c: char| !c.is_ascii_alphanumeric() && !"_-+=".contains(c)).any(mixed)
}

/// A definition as people may see it: one line for each field, names of variables in it, and no secrets.
pub(crate) fn shown_fields(target: &Target, dialect: Dialect) -> Vec<(String, String)> {
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
        Field::Args => match literal.split_once('=') {
            Some((flag, value))
                if flag.starts_with('-')
                    && !value.is_empty()
                    && (secret_name(flag) || secret_value(value)) =>
            {
                format!("{flag}={REDACTED}")
            }
            _ if secret_value(literal) => Redacted::of(literal),
            _ => literal.to_owned(),
        },
        Field::Env if secret_value(literal) => REDACTED.to_owned(),
        _ => Redactor::known().redact(literal).into_owned(),
    }
}

/// The known shapes taken out, or all of it where none is known.
struct Redacted;

impl Redacted {
    fn of(literal: &str) -> String {
        match Redactor::known().redact(literal) {
            std::borrow::Cow::Owned(text) => text,
            std::borrow::Cow::Borrowed(text) if text.contains('/') || text.contains('@') => {
                // A package or a path: only the part that looks secret goes.
                let part =
                    |part: &str| if secret_value(part) { REDACTED.to_owned() } else { part.to_owned() };
                text.split('/').map(part).collect::<Vec<_>>().join("/")
            }
            std::borrow::Cow::Borrowed(_) => REDACTED.to_owned(),
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
    fn names_tell_secrets() {
        for name in [
            "TOK",
            "API_KEY",
            "GITHUB_TOKEN",
            "PW",
            "apiKey",
            "X-Api-Key",
            "Authorization",
            "DB_PASSWORD",
            "APIKEY",
            "--token",
        ] {
            assert!(secret_name(name), "{name}");
        }
        for name in ["PATH", "PWD", "HOME", "NODE_ENV", "Accept", "KEYBOARD", "MONKEYS", "COMPAT", "--yes"] {
            assert!(!secret_name(name), "{name}");
        }
    }

    #[test]
    fn values_tell_secrets() {
        assert!(secret_value("AKIAIOSFODNN7EXAMPLE") && secret_value("a8f5f167f44f4964e6c998dee827110c"));
        for plain in [
            "production",
            "@modelcontextprotocol/server-filesystem",
            "/usr/lib/node_modules/x",
            "8080",
            "--max-old-space-size=4096",
        ] {
            assert!(!secret_value(plain), "{plain}");
        }
    }

    #[test]
    fn what_is_shown_has_variables_and_no_secrets() {
        let show = |text: &str, field, name: &str| shown(&Text::new(text), Dialect::Cursor, field, name);
        assert_eq!(show("Bearer ${TOK}", Field::Headers, "Authorization"), "Bearer ${TOK}");
        assert_eq!(show("Bearer abc", Field::Headers, "Authorization"), "Bearer [redacted]");
        assert_eq!(show("hunter2", Field::Env, "PW"), "[redacted]");
        assert_eq!(show("--require ./x.js", Field::Env, "NODE_OPTIONS"), "--require ./x.js");
        assert_eq!(show("${TOK:-hunter2}", Field::Env, "A"), "${TOK:-[redacted]}");
        assert_eq!(show("--api-key=hunter2", Field::Args, ""), "--api-key=[redacted]");
        assert_eq!(show("hunter2", Field::Args, "token"), "[redacted]");
        assert_eq!(show("@scope/server-files@1.2.3", Field::Args, ""), "@scope/server-files@1.2.3");
        assert_eq!(
            shown_url("https://u:p@h/a8f5f167f44f4964e6c998dee827110c/mcp?token=x&a=b"),
            "https://[redacted]@h/[redacted]/mcp?token=[redacted]&a=b"
        );
    }
}
