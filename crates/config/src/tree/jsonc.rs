//! Owns the reading of JSON, with or without comments and trailing commas.

use jsonc_parser::ast::{Object, Value as Ast};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Number;

use crate::problem::Problem;

use super::{Key, MAX_DEPTH, Node, Places, Value};

/// What is accepted beyond JSON.
pub(crate) fn options(comments: bool) -> ParseOptions {
    ParseOptions {
        allow_comments: comments,
        allow_trailing_commas: comments,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Reads the text. `comments`: comments and trailing commas are accepted.
pub(super) fn read(text: &str, comments: bool, places: &mut Places<'_>) -> Result<Node, Problem> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options(comments))
        .map_err(|error| problem(&error, places))?;
    let Some(value) = parsed.value else {
        return Err(Problem::error("holds no value").at(places.at(0)).hint("write {} into it"));
    };
    if !comments && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let at = places.at(offset_of(text, error.line(), error.column()));
        return Err(Problem::error(format!("is no JSON: {}", bare(&error))).at(at));
    }
    node(value, 0, places)
}

fn node(value: Ast<'_>, depth: usize, places: &mut Places<'_>) -> Result<Node, Problem> {
    let range = value.range();
    let at = places.at(range.start);
    if depth > MAX_DEPTH {
        return Err(too_deep().at(at));
    }
    let value = match value {
        Ast::NullKeyword(_) => Value::Null,
        Ast::BooleanLit(literal) => Value::Bool(literal.value),
        Ast::StringLit(literal) => Value::String(literal.value.into_owned()),
        Ast::NumberLit(literal) => match literal.value.parse::<Number>() {
            Ok(number) => Value::Number(number),
            Err(_) => return Err(Problem::error("this is no number that can be held").at(at)),
        },
        Ast::Array(array) => {
            let items = array.elements.into_iter().map(|item| node(item, depth + 1, places));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Ast::Object(object) => Value::Object(members(object, depth, places)?),
    };
    Ok(Node { at, end: places.in_file(range.end), value })
}

fn members(object: Object<'_>, depth: usize, places: &mut Places<'_>) -> Result<Vec<(Key, Node)>, Problem> {
    let members = object.properties.into_iter().map(|property| {
        let at = places.at(property.name.range().start);
        let key = Key { name: property.name.into_string(), at };
        Ok((key, node(property.value, depth + 1, places)?))
    });
    members.collect()
}

pub(super) fn too_deep() -> Problem {
    Problem::error(format!("is nested deeper than {MAX_DEPTH} levels"))
}

fn problem(error: &ParseError, places: &mut Places<'_>) -> Problem {
    use ParseErrorKind as Kind;
    let Range { start, .. } = error.range();
    let (message, hint) = match error.kind() {
        Kind::ExpectedComma => ("a comma is missing here".to_owned(), None),
        Kind::UnterminatedObject => ("this { is never closed".to_owned(), Some("add the missing }")),
        Kind::UnterminatedArray => ("this [ is never closed".to_owned(), Some("add the missing ]")),
        Kind::UnterminatedCommentBlock => ("this comment is never closed".to_owned(), Some("add */")),
        Kind::ExpectedColonAfterObjectKey => ("a colon is missing after the name".to_owned(), None),
        Kind::ExpectedObjectValue => ("a value is missing after the colon".to_owned(), None),
        Kind::ExpectedStringObjectProperty => ("a name in quotes is missing here".to_owned(), None),
        Kind::SingleQuotedStringsNotAllowed => {
            ("single quotes are not allowed".to_owned(), Some("use double quotes"))
        }
        Kind::TrailingCommasNotAllowed => {
            ("a comma before a closing bracket is not allowed in this file".to_owned(), Some("remove it"))
        }
        Kind::CommentsNotAllowed => {
            ("comments are not allowed in this file".to_owned(), Some("its client reads strict JSON"))
        }
        Kind::MultipleRootJsonValues => ("there is more behind the end of the value".to_owned(), None),
        Kind::NestingDepthExceeded => return too_deep().at(places.at(start)),
        other => (lower_first(&other.to_string()), None),
    };
    let problem = Problem::error(message).at(places.at(start));
    if let Some(hint) = hint { problem.hint(hint) } else { problem }
}

/// A message that begins like a fragment.
pub(super) fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// The message of `serde_json` without its place.
fn bare(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    text.floor_char_boundary((before + column.saturating_sub(1)).min(text.len()))
}
