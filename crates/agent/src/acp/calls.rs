//! Owns the tool calls that an agent tells of: what is known of each, put together from its updates, and what of it is
//! told on. No I/O.

mod asked;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use toolway_bridge::{AgentToolEvent, RawJson, ToolActivity};

pub(super) use self::asked::OfServer;
use super::names::{Meant, Names};
use super::open_calls::OpenCalls;
use crate::event::{Delta, EventKind, ToolCallEvent, ToolCallStatus, Truncated};

/// Calls that are open at a time; when there is another the oldest is given up.
const OPEN: usize = 512;
/// The bytes of what is known of open calls; when there are more the oldest are given up.
const BYTES: usize = 64 << 20;
/// Calls that have ended and are remembered, so that what comes late changes nothing.
const ENDED: usize = 512;

/// What is told on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Event(EventKind),
    Delta(Delta),
}

/// The members of an update, byte for byte.
type Members = BTreeMap<String, RawJson>;

#[derive(Debug)]
struct Call {
    id: String,
    members: Members,
    /// How many bytes that are.
    size: usize,
    /// What is meant, where it is a tool of our servers. Titles change once it runs; what it was then stays.
    tool: Option<Meant>,
    name: String,
    announced: bool,
    hinted: bool,
    /// The output that was told so far.
    output: String,
}

/// All calls of a prompt.
#[derive(Debug)]
pub(super) struct Calls {
    names: Names,
    /// Those of them that arrive at the front, for whoever judges them there.
    shared: OpenCalls,
    open: VecDeque<Call>,
    ended: VecDeque<String>,
}

impl Calls {
    pub(super) fn new(names: Names, shared: OpenCalls) -> Self {
        Self { names, shared, open: VecDeque::new(), ended: VecDeque::new() }
    }

    /// Takes a `tool_call` or `tool_call_update`. `terminal` gives what a terminal of ours wrote.
    pub(super) fn update(
        &mut self,
        update: &RawJson,
        terminal: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Told> {
        let mut told = Vec::new();
        let Ok(members) = serde_json::from_slice::<Members>(update.bytes()) else { return told };
        let Some(id) = text(&members, "toolCallId").filter(|id| !id.is_empty()) else { return told };
        if self.ended.contains(&id) {
            return told;
        }
        let at = if let Some(at) = self.open.iter().position(|call| call.id == id) {
            at
        } else {
            if self.open.len() >= OPEN {
                told.extend(self.give_up_oldest());
            }
            self.open.push_back(Call::new(id));
            self.open.len() - 1
        };
        let Some(call) = self.open.get_mut(at) else { return told };
        call.take(members, &self.names);
        if let Some(meant) = &call.tool {
            self.shared.told(&call.id, meant);
        }
        if call.is_over() {
            told.extend(call.announce());
            told.extend(call.end(terminal));
            if let Some(call) = self.open.remove(at) {
                self.remember(call.id);
            }
        } else {
            told.extend(call.progress());
        }
        while self.open.len() > 1 && self.open.iter().map(|call| call.size).sum::<usize>() > BYTES {
            told.extend(self.give_up_oldest());
        }
        told
    }

    fn remember(&mut self, id: String) {
        self.shared.ended(&id);
        if self.ended.len() >= ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(id);
    }

    fn give_up_oldest(&mut self) -> Vec<Told> {
        let Some(mut call) = self.open.pop_front() else { return Vec::new() };
        let told = call.give_up("more calls were open than are watched");
        self.remember(call.id);
        told
    }

    /// The prompt is over: nothing more comes of what is open.
    pub(super) fn finish(&mut self, why: &str) -> Vec<Told> {
        std::mem::take(&mut self.open).iter_mut().flat_map(|call| call.give_up(why)).collect()
    }

    /// The call that shows this terminal.
    pub(super) fn with_terminal(&self, terminal: &str) -> Option<&str> {
        self.open
            .iter()
            .find(|call| call.terminals().iter().any(|id| id == terminal))
            .map(|call| call.id.as_str())
    }
}

impl Call {
    fn new(id: String) -> Self {
        Self {
            id,
            members: Members::new(),
            size: 0,
            tool: None,
            name: String::new(),
            announced: false,
            hinted: false,
            output: String::new(),
        }
    }

    fn take(&mut self, members: Members, names: &Names) {
        overlay(&mut self.members, members);
        self.size = self.members.values().map(|value| value.bytes().len()).sum();
        if !self.announced {
            self.tool = find(&self.members, names).or(self.tool.take());
        }
        if !self.announced
            && let Some(activity) = self.activity()
            && !activity.kind.is_empty()
        {
            self.name = activity.kind;
        }
    }

    fn status(&self) -> String {
        text(&self.members, "status").unwrap_or_default()
    }

    fn is_over(&self) -> bool {
        matches!(self.status().as_str(), "completed" | "failed")
    }

    /// It begins when it runs, or when its arguments are there: more of them than the folder, which some agents tell first.
    fn begins(&self) -> bool {
        let has_arguments = |input: &RawJson| match input.tree() {
            Value::Object(members) => members.keys().any(|name| name != "cwd"),
            Value::Null => false,
            _ => true,
        };
        self.status() == "in_progress" || self.members.get("rawInput").is_some_and(has_arguments)
    }

    fn activity(&self) -> Option<ToolActivity> {
        let mut members = self.members.clone();
        members.insert("sessionUpdate".to_owned(), RawJson::of(&json!("tool_call")));
        match AgentToolEvent::read(&whole(&members))? {
            AgentToolEvent::Started(activity)
            | AgentToolEvent::Partial(activity)
            | AgentToolEvent::Completed(activity) => Some(activity),
            AgentToolEvent::Output { .. } => None,
        }
    }

    fn shown_name(&self) -> String {
        match &self.tool {
            Some(_) => "mcp".to_owned(),
            None => self.name.clone(),
        }
    }

    fn args(&self, activity: &ToolActivity) -> RawJson {
        let Some(Meant { server, tool, arguments: args }) = &self.tool else { return activity.args.clone() };
        let text = format!(
            r#"{{"providerIdentifier":{},"toolName":{},"args":{}}}"#,
            json!(server),
            json!(tool),
            args.text()
        );
        RawJson::new(text).unwrap_or_else(|_| args.clone())
    }

    fn told(&self, status: ToolCallStatus) -> ToolCallEvent {
        let activity = self.activity();
        let args = activity.as_ref().map_or_else(RawJson::empty_object, |activity| self.args(activity));
        let result = match (&self.tool, status) {
            (_, ToolCallStatus::Running) => None,
            (Some(_), _) => Some(self.mcp_result(status == ToolCallStatus::Error)),
            (None, _) => activity.and_then(|activity| activity.result),
        };
        ToolCallEvent {
            call_id: self.id.clone(),
            name: self.shown_name(),
            status,
            args: Some(args),
            result,
            truncated: Truncated::default(),
        }
    }

    fn output_members(&self) -> Option<Members> {
        self.members.get("rawOutput").and_then(|raw| serde_json::from_slice(raw.bytes()).ok())
    }

    fn says_error(&self) -> bool {
        let said = self.output_members().and_then(|mut output| output.remove("isError"));
        said.is_some_and(|raw| raw.text() == "true")
    }

    /// Content blocks as servers give them.
    fn mcp_result(&self, failed: bool) -> RawJson {
        let output = self.output_members();
        let own = output.as_ref().and_then(|output| output.get("content"));
        let content = match own.filter(|content| content.text().starts_with('[')) {
            Some(content) => content.clone(),
            None => RawJson::of(&Value::Array(self.blocks())),
        };
        let is_error = failed || self.says_error();
        let text = format!(r#"{{"content":{},"isError":{is_error}}}"#, content.text());
        RawJson::new(text).unwrap_or(content)
    }

    fn blocks(&self) -> Vec<Value> {
        let list = self.content();
        let blocks: Vec<Value> = list.iter().filter_map(|block| block.get("content").cloned()).collect();
        let output = self.members.get("rawOutput").map(RawJson::tree).unwrap_or_default();
        match output.get("output").or(Some(&output)).and_then(Value::as_str) {
            Some(text) if blocks.is_empty() => vec![json!({"type": "text", "text": text})],
            _ => blocks,
        }
    }

    fn content(&self) -> Vec<Value> {
        match self.members.get("content").map(RawJson::tree) {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        }
    }

    fn terminals(&self) -> Vec<String> {
        let list = self.content();
        list.iter().filter_map(|block| Some(block.get("terminalId")?.as_str()?.to_owned())).collect()
    }

    fn announce(&mut self) -> Vec<Told> {
        if std::mem::replace(&mut self.announced, true) {
            return Vec::new();
        }
        let told = self.told(ToolCallStatus::Running);
        vec![Told::Delta(Delta::ToolCallStarted(told.clone())), Told::Event(EventKind::ToolCall(told))]
    }

    fn progress(&mut self) -> Vec<Told> {
        if !self.begins() && !self.announced {
            if std::mem::replace(&mut self.hinted, true) {
                return Vec::new();
            }
            let (call_id, name) = (self.id.clone(), self.shown_name());
            return vec![Told::Delta(Delta::PartialToolCall { call_id, name, arguments: String::new() })];
        }
        let mut told = self.announce();
        let texts: Vec<String> = self
            .content()
            .iter()
            .filter_map(|block| Some(block.get("content")?.get("text")?.as_str()?.to_owned()))
            .collect();
        let output = texts.join("\n");
        if output.is_empty() || output == self.output {
            return told;
        }
        // Agents tell all of the output again each time.
        let news = output.strip_prefix(self.output.as_str()).unwrap_or(&output).to_owned();
        let call_id = self.id.clone();
        told.push(Told::Delta(match self.name.as_str() {
            "shell" => Delta::ShellOutput { call_id, stream: "stdout", text: news },
            _ => Delta::ToolCallProgress { call_id, message: news },
        }));
        self.output = output;
        told
    }

    fn end(&mut self, terminal: &dyn Fn(&str) -> Option<String>) -> Vec<Told> {
        // What a terminal showed is part of the result, and gone with the terminal.
        let written: Vec<String> = self.terminals().iter().filter_map(|id| terminal(id)).collect();
        if !written.is_empty() && !self.members.contains_key("rawOutput") {
            self.members.insert("rawOutput".to_owned(), RawJson::of(&json!({"output": written.join("\n")})));
        }
        // A result that says it is an error is one, also where the agent is content with having it.
        let is_failed = self.status() == "failed" || self.tool.is_some() && self.says_error();
        self.ended(if is_failed { ToolCallStatus::Error } else { ToolCallStatus::Completed })
    }

    fn ended(&self, status: ToolCallStatus) -> Vec<Told> {
        let told = self.told(status);
        vec![Told::Delta(Delta::ToolCallCompleted(told.clone())), Told::Event(EventKind::ToolCall(told))]
    }

    fn give_up(&mut self, why: &str) -> Vec<Told> {
        self.members.insert("status".to_owned(), RawJson::of(&json!("failed")));
        self.members.insert("rawOutput".to_owned(), RawJson::of(&json!({"error": why})));
        let mut told = self.announce();
        told.push(Told::Delta(Delta::ToolCallUntold { call_id: self.id.clone() }));
        told.extend(self.ended(ToolCallStatus::Error));
        told
    }
}

fn text(members: &Members, name: &str) -> Option<String> {
    members.get(name).and_then(|raw| serde_json::from_slice(raw.bytes()).ok())
}

/// `null` leaves what was known.
fn overlay(known: &mut Members, said: Members) {
    known.extend(said.into_iter().filter(|(_, value)| value.text() != "null"));
}

fn whole(members: &Members) -> RawJson {
    serde_json::to_vec(members)
        .ok()
        .and_then(|bytes| RawJson::new(bytes).ok())
        .unwrap_or_else(RawJson::empty_object)
}

fn find(members: &Members, names: &Names) -> Option<Meant> {
    let kind = text(members, "kind").unwrap_or_default();
    // What runs a command or touches a file is none of ours, however it is called: a command's line may begin with any
    // name, and rules must be asked about it.
    if matches!(kind.as_str(), "execute" | "read" | "edit" | "delete" | "move") {
        return None;
    }
    let coarse = matches!(kind.as_str(), "" | "other");
    let mut said: Vec<String> = text(members, "title").into_iter().collect();
    let meta = members.get("_meta").map(RawJson::tree).unwrap_or_default();
    let below = meta.as_object().into_iter().flat_map(|meta| meta.values());
    said.extend(
        [&meta]
            .into_iter()
            .chain(below)
            .filter_map(|value| Some(value.get("toolName")?.as_str()?.to_owned())),
    );
    let input = members.get("rawInput").filter(|input| input.is_object()).cloned();
    let input = input.unwrap_or_else(RawJson::empty_object);
    said.iter().find_map(|said| names.find(said, coarse, &input))
}

#[cfg(test)]
mod tests;
