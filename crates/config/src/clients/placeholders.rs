//! Owns the way of placeholders from one dialect to another where they mean the same there, and refuses the others by
//! name. Pure.

use serde_json::Value as Json;

use crate::dialect::{Dialect, Field, Syntax};
use crate::template::{Known, Piece, parse};

use super::reading::Members;

/// The text in another dialect. An error is a fragment that names the placeholder, and never a value.
pub(super) fn translate(text: &str, from: Dialect, to: Dialect, field: Field) -> Result<String, String> {
    if from == to {
        return Ok(text.to_owned());
    }
    let pieces = parse(text, from, field).map_err(|fault| fault.message)?;
    // What Toolway understands may stay as it is in its own files; a client gets what it documents.
    let stays = to == Dialect::Toolway || pieces.iter().all(|piece| matches!(piece, Piece::Literal(_)));
    if stays && parse(text, to, field).as_ref() == Ok(&pieces) {
        return Ok(text.to_owned());
    }
    let parts: Result<Vec<String>, String> = pieces.iter().map(|piece| write(piece, to, field)).collect();
    let translated = parts?.concat();
    // A command stands for the whole value or not at all, and literals may have come together to something else.
    if parse(&translated, to, field).as_ref() == Ok(&pieces) {
        Ok(translated)
    } else {
        Err("it would mean something else there".to_owned())
    }
}

/// Clients that document `${NAME:-default}`, or are known to read it.
const DEFAULTS: [Dialect; 3] = [Dialect::Toolway, Dialect::ClaudeCode, Dialect::Cursor];

/// What a client documents: less than what is understood in its files.
fn documented(dialect: Dialect) -> &'static [Syntax] {
    use Syntax::{
        Bang, BareEnv, BareFile, Braces, CommandColon, EnvColon, Input, KeyringColon, Places, PluginPlaces,
        Secrets,
    };
    match dialect {
        Dialect::Toolway => &[Braces, Places, Input, CommandColon, KeyringColon],
        Dialect::Cursor | Dialect::LmStudio | Dialect::Junie => &[EnvColon, Places],
        Dialect::VsCode => &[EnvColon, Places, Input],
        Dialect::ClaudeCode
        | Dialect::Gemini
        | Dialect::Qwen
        | Dialect::Kiro
        | Dialect::AmazonQ
        | Dialect::Crush => &[Braces],
        Dialect::Windsurf | Dialect::Roo | Dialect::Mcporter => &[EnvColon],
        Dialect::OpenCode => &[BareEnv, BareFile],
        Dialect::Pi => &[Braces, Bang],
        Dialect::Continue => &[Secrets],
        Dialect::AgentPlugin => &[PluginPlaces],
        _ => &[],
    }
}

fn write(piece: &Piece, to: Dialect, field: Field) -> Result<String, String> {
    let has = |syntax| to.expands(field) && documented(to).contains(&syntax);
    let none = |what: String| Err(format!("{what} has no counterpart there"));
    match piece {
        Piece::Literal(text) => {
            literal(text, to, field).ok_or_else(|| "a literal ${ cannot be written there".to_owned())
        }
        Piece::Variable { name, default: Some(default) } => {
            let form = format!("${{{name}:-{default}}}");
            if DEFAULTS.contains(&to) { Ok(form) } else { none(format!("${{{name}:-...}}")) }
        }
        Piece::Variable { name, default: None } => {
            let forms = [
                (Syntax::Braces, format!("${{{name}}}")),
                (Syntax::EnvColon, format!("${{env:{name}}}")),
                (Syntax::BareEnv, format!("{{env:{name}}}")),
                (Syntax::Secrets, format!("${{{{ secrets.{name} }}}}")),
            ];
            let form = forms.into_iter().find(|(syntax, _)| has(*syntax));
            form.map_or_else(|| none(format!("${{{name}}}")), |(_, form)| Ok(form))
        }
        Piece::Known(known) => {
            let word = match known {
                Known::PluginRoot | Known::PluginData => return none(format!("${{{}}}", known.name())),
                place => place.name(),
            };
            if has(Syntax::Places) { Ok(format!("${{{word}}}")) } else { none(format!("${{{word}}}")) }
        }
        Piece::Input(id) if has(Syntax::Input) => Ok(format!("${{input:{id}}}")),
        Piece::Input(id) => none(format!("${{input:{id}}}")),
        Piece::Command(command) if has(Syntax::CommandColon) && !command.contains('}') => {
            Ok(format!("${{command:{command}}}"))
        }
        Piece::Command(command) if has(Syntax::Bang) => Ok(format!("!{command}")),
        Piece::Command(_) => none("the output of a command".to_owned()),
        Piece::Keyring(name) if has(Syntax::KeyringColon) => Ok(format!("${{keyring:{name}}}")),
        Piece::Keyring(name) => none(format!("${{keyring:{name}}}")),
        Piece::File(path) if has(Syntax::BareFile) => Ok(format!("{{file:{path}}}")),
        Piece::File(_) => none("the content of a file".to_owned()),
    }
}

/// A literal in a dialect; `None` where it cannot be written so that it stays one.
pub(super) fn literal(text: &str, to: Dialect, field: Field) -> Option<String> {
    let means_itself = |written: &str| match parse(written, to, field).as_deref() {
        Ok([]) => text.is_empty(),
        Ok([Piece::Literal(read)]) => read == text,
        _ => false,
    };
    if means_itself(text) {
        return Some(text.to_owned());
    }
    // The escape is Toolway's own, and Pi's for a leading exclamation mark; other clients document none.
    let escaped = match to {
        Dialect::Toolway => text.replace("${", "$${"),
        Dialect::Pi if text.starts_with('!') => format!("!{text}"),
        _ => return None,
    };
    means_itself(&escaped).then_some(escaped)
}

/// Does something to every text of an entry that may hold placeholders; `name` is the dotted name of the field.
pub(super) fn each_text<E>(
    own: &mut Members,
    change: &mut impl FnMut(&str, Field, &mut String) -> Result<(), E>,
) -> Result<(), E> {
    for (name, field) in [
        ("command", Field::Command),
        ("args", Field::Args),
        ("env", Field::Env),
        ("envFile", Field::Cwd),
        ("cwd", Field::Cwd),
        ("url", Field::Url),
        ("headers", Field::Headers),
        ("auth", Field::Auth),
    ] {
        match own.get_mut(name) {
            Some(Json::String(text)) => change(name, field, text)?,
            Some(Json::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Json::String(text) = item {
                        change(&format!("{name}.{index}"), field, text)?;
                    }
                }
            }
            Some(Json::Object(members)) => {
                for (key, value) in members.iter_mut() {
                    if let Json::String(text) = value {
                        change(&format!("{name}.{key}"), field, text)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The entry in another dialect. The error names the first field that cannot be said there, and why.
pub(super) fn translate_entry(
    own: &Members,
    from: Dialect,
    to: impl Fn(Field) -> Dialect,
) -> Result<Members, (String, String)> {
    let mut translated = own.clone();
    each_text(&mut translated, &mut |name, field, text| {
        translate(text, from, to(field), field)
            .map(|translated| *text = translated)
            .map_err(|reason| (name.to_owned(), reason))
    })?;
    Ok(translated)
}
