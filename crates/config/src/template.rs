//! Owns the placeholders inside one text: taken apart by the rules of a dialect, in one pass. Replaces nothing.

use crate::dialect::{Dialect, Field, Syntax};

#[cfg(test)]
mod tests;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As it stands.
    Literal(String),
    /// A variable, and what stands for it where it is unset or empty.
    Variable { name: String, default: Option<String> },
    /// A place everybody has.
    Known(Known),
    /// A value that a person gives.
    Input(String),
    /// What a command prints.
    Command(String),
    /// What a file holds.
    File(String),
    /// A secret of the user's keyring, by its name.
    Keyring(String),
}

/// A place everybody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    UserHome,
    WorkspaceFolder,
    WorkspaceFolderBasename,
    PathSeparator,
    PluginRoot,
    PluginData,
}

impl Known {
    fn of(name: &str, dialect: Dialect) -> Option<Self> {
        let place = match name {
            "userHome" => Self::UserHome,
            "workspaceFolder" => Self::WorkspaceFolder,
            "workspaceFolderBasename" => Self::WorkspaceFolderBasename,
            "pathSeparator" | "/" => Self::PathSeparator,
            "CURSOR_PLUGIN_ROOT" | "CLAUDE_PLUGIN_ROOT" | "PLUGIN_ROOT" => Self::PluginRoot,
            "PLUGIN_DATA" => Self::PluginData,
            _ => return None,
        };
        let syntax = match place {
            Self::PluginRoot | Self::PluginData => Syntax::PluginPlaces,
            _ => Syntax::Places,
        };
        dialect.has(syntax).then_some(place)
    }

    /// The one word by which it goes into a digest.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::UserHome => "userHome",
            Self::WorkspaceFolder => "workspaceFolder",
            Self::WorkspaceFolderBasename => "workspaceFolderBasename",
            Self::PathSeparator => "pathSeparator",
            Self::PluginRoot => "pluginRoot",
            Self::PluginData => "pluginData",
        }
    }
}

/// Why a text cannot be taken apart. Never holds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// The parts of a text in that field of a definition in that dialect. Neighbouring literals are one.
pub(crate) fn parse(text: &str, dialect: Dialect, field: Field) -> Result<Vec<Piece>, Malformed> {
    if !dialect.expands(field) {
        return Ok(joined(vec![Piece::Literal(text.to_owned())]));
    }
    let mut text = text;
    if dialect.has(Syntax::Bang) && matches!(field, Field::Env | Field::Headers | Field::Auth) {
        match text.strip_prefix('!') {
            Some(rest) if rest.starts_with('!') => text = rest,
            Some(command) => return Ok(vec![Piece::Command(command.trim().to_owned())]),
            None => {}
        }
        let literal_bang = text.starts_with('!');
        if literal_bang {
            return Ok(joined(vec![Piece::Literal(text.to_owned())]));
        }
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['$', '{']) {
        let (before, at) = rest.split_at(start);
        pieces.push(Piece::Literal(before.to_owned()));
        let (piece, length) = placeholder(at, dialect)?;
        pieces.push(piece);
        rest = at.get(length..).unwrap_or_default();
    }
    pieces.push(Piece::Literal(rest.to_owned()));
    Ok(joined(pieces))
}

/// What stands at the beginning of `text`, which is `$` or `{`, and its length.
fn placeholder(text: &str, dialect: Dialect) -> Result<(Piece, usize), Malformed> {
    let literal = |length: usize| {
        let length = length.min(text.len());
        (Piece::Literal(text.get(..length).unwrap_or_default().to_owned()), length)
    };
    if text.starts_with("$${") {
        return Ok((Piece::Literal("${".to_owned()), 3));
    }
    if text.starts_with("${{") && dialect.has(Syntax::Secrets) {
        return secrets(text);
    }
    let has_braces = [Syntax::EnvColon, Syntax::Braces, Syntax::Places, Syntax::PluginPlaces]
        .into_iter()
        .any(|syntax| dialect.has(syntax));
    if let Some(inner) = text.strip_prefix("${").filter(|_| has_braces) {
        let Some((inner, _)) = inner.split_once('}') else {
            return Err(malformed("a ${ without its }"));
        };
        return Ok((in_braces(inner, dialect)?, inner.len() + 3));
    }
    if let Some(inner) = text.strip_prefix("{env:").filter(|_| dialect.has(Syntax::BareEnv))
        && let Some((name, _)) = inner.split_once('}').filter(|(name, _)| is_name(name))
    {
        return Ok((Piece::Variable { name: name.to_owned(), default: None }, name.len() + 6));
    }
    if let Some(inner) = text.strip_prefix("{file:").filter(|_| dialect.has(Syntax::BareFile))
        && let Some((path, _)) = inner.split_once('}').filter(|(path, _)| !path.is_empty())
    {
        return Ok((Piece::File(path.trim().to_owned()), path.len() + 7));
    }
    for (prefix, syntax) in [("$env:", Syntax::DollarEnv), ("$", Syntax::Dollar)] {
        let name = text.strip_prefix(prefix).filter(|_| dialect.has(syntax)).map(plain_name);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let piece = Piece::Variable { name: name.to_owned(), default: None };
            return Ok((piece, prefix.len() + name.len()));
        }
    }
    Ok(literal(1))
}

/// What stands between `${` and `}`.
fn in_braces(inner: &str, dialect: Dialect) -> Result<Piece, Malformed> {
    if let Some(known) = Known::of(inner, dialect) {
        return Ok(Piece::Known(known));
    }
    let not_ours = |what: &str| Malformed {
        message: format!("${{{}:...}} {what}", inner.split(':').next().unwrap_or_default()),
        hint: "write the value, or take it from a variable".to_owned(),
    };
    if let Some((kind, rest)) = inner.split_once(':').filter(|(_, rest)| !rest.starts_with('-')) {
        return match kind {
            "env" if dialect.has(Syntax::EnvColon) => variable(rest, inner),
            "input" if dialect.has(Syntax::Input) => Ok(Piece::Input(rest.to_owned())),
            "command" if dialect.has(Syntax::CommandColon) => Ok(Piece::Command(rest.trim().to_owned())),
            "keyring" if dialect.has(Syntax::KeyringColon) => match rest.trim() {
                "" => Err(malformed("a ${keyring:} without a name")),
                name => Ok(Piece::Keyring(name.to_owned())),
            },
            "keyring" => Err(not_ours("is known in Toolway's own files alone")),
            "command" | "config" | "extensionInstallFolder" => {
                Err(not_ours("asks the editor, and there is none here"))
            }
            _ => Err(unknown(inner)),
        };
    }
    if dialect.has(Syntax::Braces) { variable(inner, inner) } else { Err(unknown(inner)) }
}

/// `NAME` or `NAME:-default`.
fn variable(text: &str, inner: &str) -> Result<Piece, Malformed> {
    let (name, default) = match text.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (text, None),
    };
    if !is_name(name) {
        return Err(unknown(inner));
    }
    Ok(Piece::Variable { name: name.to_owned(), default })
}

/// `${{ secrets.NAME }}`.
fn secrets(text: &str) -> Result<(Piece, usize), Malformed> {
    let end = text.find("}}").ok_or_else(|| malformed("a ${{ without its }}"))?;
    let inner = text.get(3..end).unwrap_or_default().trim();
    let name = inner.strip_prefix("secrets.").filter(|name| is_name(name)).ok_or_else(|| unknown(inner))?;
    Ok((Piece::Variable { name: name.to_owned(), default: None }, end + 2))
}

/// Names as Windows has them too: `ProgramFiles(x86)`.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '(' | ')' | '.' | '-');
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-') && name.chars().all(fits)
}

/// The name at the beginning of a text, as a shell reads it.
fn plain_name(text: &str) -> &str {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return "";
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn malformed(message: &str) -> Malformed {
    Malformed { message: message.to_owned(), hint: "write $${ for a literal ${".to_owned() }
}

/// The text may be anything, so only what looks like a name is told.
fn unknown(inner: &str) -> Malformed {
    let shown: String = inner.chars().take(40).collect();
    let plain = shown.chars().all(|c| c.is_ascii_alphanumeric() || "_:./-".contains(c));
    let shown = if plain { format!("${{{shown}}}") } else { "${...}".to_owned() };
    malformed(&format!("the placeholder {shown} is not understood"))
}

fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (out.last_mut(), piece) {
            (_, Piece::Literal(text)) if text.is_empty() => {}
            (Some(Piece::Literal(before)), Piece::Literal(text)) => before.push_str(&text),
            (_, piece) => out.push(piece),
        }
    }
    out
}
