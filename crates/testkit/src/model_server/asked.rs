//! Reads out of a request what rules look at, whatever its protocol.

use serde_json::Value;

/// What a request says.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// The instructions.
    pub(super) system: String,
    /// Texts of the user since the model last spoke.
    pub(super) user: Vec<String>,
    /// Results of tools since the model last spoke.
    pub(super) results: Vec<String>,
    /// Names of the tools that are offered.
    pub(super) tools: Vec<String>,
    /// Every text of the request.
    pub(super) all: String,
}

impl Asked {
    pub(super) fn of(body: &Value) -> Self {
        let mut asked = Self { all: body.to_string(), ..Self::default() };
        for name in ["system", "instructions", "systemInstruction", "system_instruction"] {
            asked.system.push_str(&texts(body.get(name).unwrap_or(&Value::Null)));
        }
        let list = ["messages", "input", "contents"].iter().find_map(|name| body.get(*name));
        match list {
            Some(Value::String(text)) => asked.user.push(text.clone()),
            Some(Value::Array(messages)) => messages.iter().for_each(|message| asked.message(message)),
            _ => {}
        }
        for tool in body.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let declared = tool.get("functionDeclarations").and_then(Value::as_array);
            let one = std::slice::from_ref(tool);
            for tool in declared.map_or(one, Vec::as_slice) {
                let name = tool.pointer("/function/name").or_else(|| tool.get("name"));
                asked.tools.extend(name.and_then(Value::as_str).map(str::to_owned));
            }
        }
        asked
    }

    pub(super) fn last(&self) -> String {
        [self.user.as_slice(), &self.results].concat().join("\n")
    }

    fn message(&mut self, message: &Value) {
        let word = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        let content = message.get("content").or_else(|| message.get("parts")).unwrap_or(&Value::Null);
        match (word("role"), word("type")) {
            ("system" | "developer", _) => self.system.push_str(&texts(content)),
            ("assistant" | "model", _) | (_, "function_call" | "reasoning") => {
                self.user.clear();
                self.results.clear();
            }
            ("tool", _) => self.results.push(texts(content)),
            (_, "function_call_output") => {
                self.results.push(texts(message.get("output").unwrap_or(&Value::Null)));
            }
            _ => self.user_content(content),
        }
    }

    /// In some protocols the user's message holds results of tools.
    fn user_content(&mut self, content: &Value) {
        let Value::Array(parts) = content else {
            self.user.push(texts(content));
            return;
        };
        for part in parts {
            if part.get("type").and_then(Value::as_str) == Some("tool_result") {
                self.results.push(texts(part.get("content").unwrap_or(&Value::Null)));
            } else if let Some(response) = part.get("functionResponse") {
                self.results.push(response.to_string());
            } else if let Some(text) = part.get("text").and_then(Value::as_str) {
                self.user.push(text.to_owned());
            }
        }
    }
}

/// The texts of a content, which is a text or a list of parts.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => part.get("text").or_else(|| part.get("parts")).map(texts).unwrap_or_default(),
        _ => String::new(),
    }
}
