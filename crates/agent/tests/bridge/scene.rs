//! What an agent does, as a script for a model and as one for a program behind the protocol.

use serde_json::{Value, json};

/// What an agent does at one point.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Say(&'static str),
    /// Calls of the host's tools by their MCP names, all at once.
    Host(Vec<(&'static str, Value)>),
    /// A call of a tool of the configured server `other`.
    Other(&'static str),
    /// A command by its own tool, and what the command prints.
    Shell(&'static str, &'static str),
    /// The text of a file replaced by its own tool.
    Edit(&'static str, &'static str, &'static str),
    /// A command of a program behind the protocol that has no end.
    Unfinished(&'static str),
    /// A command of such a program of whose end it never tells, while it goes on.
    Untold(&'static str),
    /// An edit of such a program of which nothing but the file is told.
    Touch(&'static str),
    /// Such a program answers, and calls a tool of the host's after that.
    Late(&'static str),
    /// It works on and on, and stops for nobody.
    Deaf,
    /// It works on and on, and stops when it is cancelled.
    Hang,
}

pub(crate) fn host(name: &'static str, arguments: Value) -> Step {
    Step::Host(vec![(name, arguments)])
}

/// What an agent does, by a word of the newest message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scene(Vec<(&'static str, Vec<Step>)>);

impl Scene {
    /// A word that no message before has.
    pub(crate) fn on(mut self, word: &'static str, steps: Vec<Step>) -> Self {
        self.0.push((word, steps));
        self
    }

    /// As the script of a model.
    pub(crate) fn model(&self) -> Value {
        let rule = |(word, steps): &(&str, Vec<Step>)| {
            let mut replies: Vec<Value> = Vec::new();
            let mut said = None;
            for step in steps {
                if let Step::Say(text) = step {
                    said = Some(*text);
                    continue;
                }
                let mut reply = match step {
                    Step::Host(calls) => {
                        let call =
                            |(name, arguments): &(&str, Value)| json!({"name": name, "arguments": arguments});
                        json!({"calls": calls.iter().map(call).collect::<Vec<_>>()})
                    }
                    Step::Other(tool) => {
                        json!({"calls": [{"name": format!("other__{tool}"), "arguments": {"of": "other"}}]})
                    }
                    Step::Shell(command, _) => {
                        json!({"calls": [{"name": "shell", "arguments": {"command": command}}]})
                    }
                    Step::Edit(path, old, new) => {
                        replies.push(json!({"calls": [{"name": "read", "arguments": {"path": path}}]}));
                        let arguments = json!({"path": path, "oldText": old, "newText": new});
                        json!({"calls": [{"name": "edit", "arguments": arguments}]})
                    }
                    // What a native agent cannot do.
                    Step::Untold(_) | Step::Touch(_) | Step::Late(_) => continue,
                    Step::Hang | Step::Deaf | Step::Unfinished(_) => {
                        json!({"text": "I think", "stall": "middle"})
                    }
                    Step::Say(_) => json!({}),
                };
                if let (Some(text), Some(reply)) = (said.take(), reply.as_object_mut()) {
                    reply.insert("text".to_owned(), text.into());
                }
                replies.push(reply);
            }
            replies.push(json!({"text": said.unwrap_or("Done.")}));
            json!({"when": {"any": word}, "replies": replies})
        };
        json!({"rules": self.0.iter().rev().map(rule).collect::<Vec<_>>()})
    }

    /// As the script of a program behind the protocol.
    pub(crate) fn agent(&self) -> Value {
        let mut number = 0;
        let prompts: Vec<Value> = self.0.iter().rev().map(|(word, steps)| {
            let mut list = Vec::new();
            for step in steps {
                number += 1;
                let id = format!("own-{number}");
                match step {
                    Step::Say(text) => list.push(json!({"say": text})),
                    Step::Host(calls) => {
                        let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
                            json!({"id": format!("{id}-{index}"), "server": "pi_tools", "tool": name, "arguments": arguments})
                        };
                        list.push(json!({"mcp": calls.iter().enumerate().map(call).collect::<Vec<_>>()}));
                    }
                    Step::Other(tool) => {
                        let tool = format!("other__{tool}");
                        list.push(json!({"mcp": {"id": id, "server": "toolway", "tool": tool, "arguments": {"of": "other"}}}));
                    }
                    Step::Shell(command, output) => {
                        let input = json!({"command": command});
                        let begun = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute", "status": "in_progress", "rawInput": input});
                        let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "rawOutput": {"output": output, "exitCode": 0}});
                        list.extend([json!({"update": begun}), json!({"update": ended})]);
                    }
                    Step::Edit(path, old, new) => {
                        let diff = json!([{"type": "diff", "path": path, "oldText": old, "newText": new}]);
                        let begun = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "edit", "kind": "edit", "status": "in_progress", "rawInput": {"path": path}, "content": diff});
                        let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "content": diff});
                        list.extend([json!({"update": begun}), json!({"update": ended})]);
                    }
                    Step::Unfinished(command) => {
                        let begun = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute", "status": "in_progress", "rawInput": {"command": command}});
                        list.extend([json!({"update": begun}), json!({"await_cancel": true}), json!({"end": "cancelled"})]);
                    }
                    Step::Untold(command) => {
                        let begun = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute", "status": "in_progress", "rawInput": {"command": command}});
                        list.push(json!({"update": begun}));
                    }
                    Step::Touch(path) => {
                        let begun = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "edit", "kind": "edit", "status": "in_progress", "rawInput": {"path": path}, "locations": [{"path": path}]});
                        let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"});
                        list.extend([json!({"update": begun}), json!({"update": ended})]);
                    }
                    Step::Late(tool) => {
                        let call = json!({"id": id, "server": "pi_tools", "tool": tool, "arguments": {}});
                        list.extend([json!({"end": "end_turn"}), json!({"mcp": call})]);
                    }
                    Step::Deaf => list.extend([json!({"say": "I think"}), json!({"hang": true})]),
                    Step::Hang => list.extend([json!({"say": "I think"}), json!({"await_cancel": true}), json!({"end": "cancelled"})]),
                }
            }
            json!({"when": word, "do": list})
        }).collect();
        json!({"prompts": prompts})
    }
}
