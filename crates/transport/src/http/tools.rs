//! Which tool parameters are mirrored into headers in the modern era, learnt from `tools/list` results. It must
//! not send anything.
//!
//! Specification 2026-07-28, "Streamable HTTP", "Custom Headers from Tool Parameters".

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use toolway_wire::era::{header, header_safe, header_value};
use toolway_wire::find::{Step, find, string};

/// Schemas nested deeper than this are not searched.
const MAX_DEPTH: usize = 32;

/// The annotated parameters of the tools that are known.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A list has passed, whole or in part.
    known: bool,
    params: HashMap<String, Vec<Param>>,
}

/// One annotated parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Param {
    header: HeaderName,
    /// Names of properties, from `arguments` down.
    path: Vec<String>,
}

impl Tools {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known(&self) -> bool {
        self.lock().known
    }

    /// Asking for the list was tried: it is not asked for again.
    pub(crate) fn set_known(&self) {
        self.lock().known = true;
    }

    /// Learns from the `result` of a `tools/list` answer, or from the whole answer.
    pub(crate) fn learn(&self, message: &[u8]) {
        let tools = find(message, &[Step::Key("result"), Step::Key("tools")])
            .or_else(|| find(message, &[Step::Key("tools")]));
        let Some(raw) = tools.and_then(|at| message.get(at)) else { return };
        let Ok(Value::Array(tools)) = serde_json::from_slice::<Value>(raw) else { return };
        let mut state = self.lock();
        state.known = true;
        for tool in &tools {
            let (Some(name), Some(schema)) =
                (tool.get("name").and_then(Value::as_str), tool.get("inputSchema"))
            else {
                continue;
            };
            let mut found = Vec::new();
            search(schema, &mut Vec::new(), &mut found);
            if valid(&found) {
                let params = found.into_iter().filter_map(|(header, path)| {
                    let name = format!("{}{}", header::PARAM_PREFIX, header.to_ascii_lowercase());
                    HeaderName::try_from(name).ok().map(|header| Param { header, path })
                });
                state.params.insert(name.to_owned(), params.collect());
            } else {
                tracing::warn!(tool = name, "x-mcp-header annotations break the specification: none is sent");
                state.params.remove(name);
            }
        }
    }

    /// The tool has parameters that are mirrored.
    pub(crate) fn mirrors(&self, tool: &str) -> bool {
        self.lock().params.get(tool).is_some_and(|params| !params.is_empty())
    }

    /// Adds the mirrored parameters of `call`, a whole `tools/call` request. Null and absent ones are left out.
    pub(crate) fn mirror(&self, tool: &str, call: &[u8], headers: &mut HeaderMap) {
        let params = self.lock().params.get(tool).cloned().unwrap_or_default();
        for param in params {
            let mut steps = vec![Step::Key("params"), Step::Key("arguments")];
            steps.extend(param.path.iter().map(|name| Step::Key(name)));
            let Some(at) = find(call, &steps) else { continue };
            let raw = call.get(at.clone()).unwrap_or_default();
            let text = match raw.first() {
                Some(b'"') => string(call, at),
                Some(b't' | b'f' | b'-' | b'0'..=b'9') => integer_or_word(raw),
                _ => None,
            };
            let value = text.and_then(|text| HeaderValue::try_from(&*header_safe(&text)).ok());
            if let Some(value) = value {
                headers.insert(param.header, value);
            }
        }
    }
}

/// Why the headers of a `tools/call` do not say what its arguments say, for a server that has this tool (one item of
/// `tools/list`); a fragment that names the header. Annotations that break the specification ask for nothing.
pub fn mirrored_mismatch(tool: &[u8], call: &[u8], headers: &HeaderMap) -> Option<String> {
    memchr::memmem::find(tool, b"x-mcp-header")?;
    let known = Tools::default();
    known.learn(&[b"{\"tools\":[", tool, b"]}"].concat());
    let name = string(tool, find(tool, &[Step::Key("name")])?)?;
    let mut expected = HeaderMap::new();
    known.mirror(&name, call, &mut expected);
    let params = known.lock().params.remove(&name)?;
    params.into_iter().find_map(|Param { header, .. }| {
        let mut given = headers.get_all(&header).iter();
        let decode = |value: &HeaderValue| {
            value.to_str().ok().and_then(header_value).map(std::borrow::Cow::into_owned)
        };
        match (given.next(), given.next(), expected.get(&header)) {
            (None, _, None) => None,
            (None, _, Some(_)) => Some(format!("{header} is missing")),
            (Some(_), Some(_), _) => Some(format!("{header} stands twice")),
            (Some(_), None, None) => Some(format!("{header} is there, and its parameter is not")),
            (Some(given), None, Some(expected)) => match decode(given) {
                None => Some(format!("{header} is not well encoded")),
                Some(text) if Some(&text) == decode(expected).as_ref() || same_number(&text, expected) => {
                    None
                }
                Some(_) => Some(format!("{header} does not match the body")),
            },
        }
    })
}

/// Whole numbers are compared by value: `42.0` is `42`.
fn same_number(given: &str, expected: &HeaderValue) -> bool {
    expected.to_str().is_ok_and(|expected| integer_or_word(given.as_bytes()).as_deref() == Some(expected))
}

/// `true`, `false`, and numbers; whole numbers in decimal notation however they are spelled.
fn integer_or_word(raw: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(raw).ok()?;
    let fraction = text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if fraction && let Ok(number) = text.parse::<f64>() {
        const SAFE: f64 = 9_007_199_254_740_991.0;
        if number.fract() == 0.0 && number.abs() <= SAFE {
            return Some(format!("{number:.0}"));
        }
    }
    Some(text.to_owned())
}

/// All annotations below `schema` with the path to their property.
fn search(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    if path.len() >= MAX_DEPTH {
        return;
    }
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(header) = property.get("x-mcp-header") {
            let primitive = matches!(
                property.get("type").and_then(Value::as_str),
                Some("string" | "integer" | "boolean")
            );
            let header = header.as_str().filter(|_| primitive).unwrap_or_default();
            found.push((header.to_owned(), path.clone()));
        }
        search(property, path, found);
        path.pop();
    }
}

/// Names are tokens, and differ in more than case.
fn valid(found: &[(String, Vec<String>)]) -> bool {
    let mut names: Vec<String> = found.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    let tokens = names.iter().all(|name| HeaderName::try_from(name.as_str()).is_ok());
    names.sort_unstable();
    names.dedup();
    tokens && names.len() == found.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &str, tool: &str, arguments: &str) -> Vec<(String, String)> {
        let tools = Tools::default();
        tools.learn(list.as_bytes());
        assert!(tools.known());
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let mut headers = HeaderMap::new();
        tools.mirror(tool, call.as_bytes(), &mut headers);
        let text = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        let mut all: Vec<_> = headers.iter().map(text).collect();
        all.sort();
        all
    }

    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[
        {"name":"sql","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "count":{"type":"integer","x-mcp-header":"Count"},
            "deep":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry-Run"}}},
            "query":{"type":"string"}}}},
        {"name":"twice","inputSchema":{"properties":{
            "a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}},
        {"name":"number","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"N"}}}},
        {"name":"bad","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}},
        {"name":"plain"}]}}"#;

    #[test]
    fn annotated_parameters_become_headers_at_any_depth() {
        let arguments = r#"{"region":"us-\u0077est1","count":42.0,"deep":{"dry":true},"query":"x"}"#;
        let expected =
            [("mcp-param-count", "42"), ("mcp-param-dry-run", "true"), ("mcp-param-region", "us-west1")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers(LIST, "sql", arguments), expected);
    }

    #[test]
    fn headers_that_say_something_else_than_the_arguments_are_told() {
        let tool = br#"{"name":"sql","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"}}}}"#;
        let call = br#"{"params":{"name":"sql","arguments":{"region":"a","count":42}}}"#;
        for (given, told) in [
            (vec![("mcp-param-region", "a"), ("mcp-param-count", "42")], None),
            (vec![("mcp-param-region", "=?base64?YQ==?="), ("mcp-param-count", "42.0")], None),
            (vec![("mcp-param-region", "a"), ("mcp-param-count", "42"), ("mcp-param-other", "x")], None),
            (vec![("mcp-param-region", "a")], Some("mcp-param-count is missing")),
            (vec![("mcp-param-region", "b"), ("mcp-param-count", "42")], Some("does not match")),
            (vec![("mcp-param-region", "=?base64?!?="), ("mcp-param-count", "42")], Some("not well encoded")),
            (vec![("mcp-param-region", "a"), ("mcp-param-region", "a")], Some("stands twice")),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in &given {
                headers.append(*name, value.parse().unwrap());
            }
            let found = mirrored_mismatch(tool, call, &headers);
            assert_eq!(found.is_some(), told.is_some(), "{given:?}: {found:?}");
            assert!(found.unwrap_or_default().contains(told.unwrap_or_default()), "{given:?}");
        }
        let absent = br#"{"params":{"name":"sql","arguments":{"region":null}}}"#;
        assert_eq!(mirrored_mismatch(tool, absent, &HeaderMap::new()), None);
        assert_eq!(mirrored_mismatch(br#"{"name":"plain","inputSchema":{}}"#, call, &HeaderMap::new()), None);
    }

    #[test]
    fn null_and_absent_parameters_are_left_out_and_odd_ones_encoded() {
        let expected = [("mcp-param-region".to_owned(), "=?base64?4LihIA==?=".to_owned())];
        assert_eq!(headers(LIST, "sql", r#"{"region":"ม ","count":null}"#), expected);
        assert_eq!(headers(LIST, "sql", r#"{"region":["x"],"deep":1}"#), []);
        assert_eq!(headers(LIST, "sql", "[]"), []);
    }

    #[test]
    fn annotations_that_break_the_rules_are_not_used() {
        for tool in ["twice", "number", "bad", "plain", "unknown"] {
            assert_eq!(headers(LIST, tool, r#"{"a":"1","b":"2"}"#), [], "{tool}");
        }
    }
}
