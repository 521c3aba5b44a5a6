//! Owns how the tools of servers are offered to a model, and the way back from what it calls to (server, tool): pairs,
//! never a name that is split. Pure.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use toolway_bridge::RawJson;
use toolway_proxy::gateway::{CALL_TOOL, CallRequest, ToolStatus};

/// A tool as a model is offered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpTool {
    /// The name that the model calls. Never split: see [`McpTool::server`].
    pub exposed: String,
    /// The server's name; empty for a tool of the gateway's own.
    pub server: Arc<str>,
    /// The tool's own name.
    pub tool: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments, an object schema.
    pub input_schema: RawJson,
    /// It says that it only reads.
    pub read_only: bool,
    /// Its calls may be made at once, whatever they do: who has it puts them in order.
    pub side_by_side: bool,
}

/// Everything that can be called, and what of it the model is shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    /// All, in the order of lists.
    all: Vec<McpTool>,
    /// Where each exposed name is among them.
    by_name: HashMap<String, usize>,
    /// What the model is shown.
    shown: Arc<Vec<McpTool>>,
}

/// A call, by what is really called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meant {
    /// The tool's exposed name.
    pub(crate) exposed: String,
    /// Its arguments.
    pub(crate) arguments: Bytes,
}

/// What of a definition a model needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'a> {
    #[serde(default)]
    description: Option<String>,
    #[serde(borrow, default)]
    input_schema: Option<&'a RawValue>,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    #[serde(default)]
    read_only_hint: Option<bool>,
}

impl Offer {
    /// Of what a gateway has.
    pub(crate) fn of(tools: &[ToolStatus]) -> Self {
        let mut servers: BTreeMap<&str, Arc<str>> = BTreeMap::new();
        let mut offer = Self::default();
        let mut shown = Vec::new();
        for tool in tools {
            let server =
                Arc::clone(servers.entry(&tool.server).or_insert_with(|| tool.server.as_str().into()));
            let described = described(tool, server);
            if tool.listed {
                shown.push(described.clone());
            }
            offer.by_name.insert(tool.exposed.clone(), offer.all.len());
            offer.all.push(described);
        }
        offer.shown = Arc::new(shown);
        offer
    }

    /// The same of a server that puts calls in order itself.
    pub(crate) fn side_by_side(mut self) -> Self {
        let shown = Arc::make_mut(&mut self.shown);
        self.all.iter_mut().chain(shown).for_each(|tool| tool.side_by_side = true);
        self
    }

    /// What the model is shown.
    pub(crate) fn shown(&self) -> &Arc<Vec<McpTool>> {
        &self.shown
    }

    /// Every tool, whether it is shown or to be found; those of the gateway have no server.
    pub(crate) fn all(&self) -> &[McpTool] {
        &self.all
    }

    /// The tool that is called so.
    pub(crate) fn tool(&self, exposed: &str) -> Option<&McpTool> {
        self.all.get(*self.by_name.get(exposed)?)
    }

    /// What a call is for, where it is a call of the tool that calls others: read as the gateway reads it.
    pub(crate) fn meant(&self, exposed: &str, arguments: &Bytes) -> Option<Meant> {
        if exposed != CALL_TOOL || self.tool(exposed).is_none_or(|tool| !tool.server.is_empty()) {
            return None;
        }
        let CallRequest { name, server, arguments } = CallRequest::parse(arguments).ok()?;
        let found = match server {
            None => self.tool(&name),
            Some(server) => self
                .all
                .iter()
                .find(|tool| *tool.server == *server && (tool.tool == name || tool.exposed == name)),
        };
        Some(Meant { exposed: found?.exposed.clone(), arguments })
    }
}

fn described(tool: &ToolStatus, server: Arc<str>) -> McpTool {
    let definition = serde_json::from_slice::<Definition<'_>>(&tool.definition).ok();
    let schema = definition.as_ref().and_then(|definition| {
        let raw = definition.input_schema?;
        RawJson::new(tool.definition.slice_ref(raw.get().as_bytes())).ok()
    });
    let read_only =
        definition.as_ref().and_then(|definition| definition.annotations.as_ref()?.read_only_hint);
    McpTool {
        exposed: tool.exposed.clone(),
        server,
        tool: tool.own.clone(),
        description: definition.and_then(|definition| definition.description).unwrap_or_default(),
        input_schema: schema.unwrap_or_else(|| RawJson::of(&serde_json::json!({"type": "object"}))),
        read_only: read_only.unwrap_or(false),
        side_by_side: read_only.unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(exposed: &str, server: &str, own: &str, definition: &str, listed: bool) -> ToolStatus {
        ToolStatus {
            exposed: exposed.to_owned(),
            server: server.to_owned(),
            own: own.to_owned(),
            definition: Bytes::copy_from_slice(definition.as_bytes()),
            listed,
        }
    }

    #[test]
    fn a_definition_keeps_the_bytes_of_its_schema_and_bad_parts_of_it_do_not_spoil_it() {
        let whole = r#"{"name":"a__x","description":"d","inputSchema":{"type":"object","n":1.50},"annotations":{"readOnlyHint":true}}"#;
        let offer = Offer::of(&[
            tool("a__x", "a", "x", whole, true),
            tool("a__y", "a", "y", r#"{"name":"a__y","description":7}"#, true),
            tool("b__z", "b", "z", r#"{"name":"b__z"}"#, false),
            tool("toolway_call", "", "toolway_call", r#"{"name":"toolway_call"}"#, true),
        ]);
        let shown: Vec<&str> = offer.shown().iter().map(|tool| tool.exposed.as_str()).collect();
        assert_eq!(shown, ["a__x", "a__y", "toolway_call"]);
        let first = &offer.shown()[0];
        assert_eq!((first.input_schema.text(), first.read_only), (r#"{"type":"object","n":1.50}"#, true));
        assert_eq!(offer.shown()[1].input_schema.text(), r#"{"type":"object"}"#);
        assert_eq!(offer.all().len(), 4);
        let meant = |name: &str, arguments: &str| {
            let meant = offer.meant(name, &Bytes::copy_from_slice(arguments.as_bytes()))?;
            Some((meant.exposed, String::from_utf8(meant.arguments.to_vec()).unwrap()))
        };
        let z = Some(("b__z".to_owned(), r#"{"k":1.0}"#.to_owned()));
        assert_eq!(meant("toolway_call", r#"{"name":"b__z","arguments":{"k":1.0}}"#), z);
        assert_eq!(meant("toolway_call", r#"{"name":"z","server":"b","arguments":{"k":1.0}}"#), z);
        assert_eq!(meant("toolway_call", r#"{"name":"z","server":"a"}"#), None);
        assert_eq!(meant("a__x", "{}"), None);
    }
}
