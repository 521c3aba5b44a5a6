//! Owns what an editor is told first, and what is remembered of what it can do. It sends nothing.

use serde_json::{Value, json};
use toolway_bridge::RawJson;

/// What an editor can do beyond the least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// It shows forms.
    pub(super) asks: bool,
    /// It shows notes that are no part of the conversation.
    pub(super) notices: bool,
}

impl Client {
    /// Reads the parameters of `initialize`. What cannot be read is not there.
    pub(super) fn read(params: &RawJson) -> Self {
        let params = params.tree();
        let has = |place: &str| params.pointer(place).is_some_and(Value::is_object);
        Self {
            asks: has("/clientCapabilities/elicitation/form"),
            notices: has("/clientCapabilities/session/notices"),
        }
    }
}

/// The answer to `initialize`: one version is spoken, whatever was asked for, and nobody has to sign in.
pub(super) fn answer() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "toolway", "title": "Toolway", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "mcpCapabilities": {"http": true, "sse": true},
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "sessionCapabilities": {
                "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
            },
        },
        "authMethods": [],
    })
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::InitializeResponse;

    use super::*;

    #[test]
    fn the_answer_is_one_of_the_protocol() {
        let answer: InitializeResponse = serde_json::from_value(answer()).unwrap();
        assert!(answer.agent_capabilities.load_session && answer.auth_methods.is_empty());
        let can = answer.agent_capabilities.session_capabilities;
        assert!(can.list.is_some() && can.resume.is_some() && can.close.is_some() && can.delete.is_some());
        assert!(can.additional_directories.is_some() && can.system_prompt.is_none());
    }

    #[test]
    fn what_an_editor_can_do_is_read() {
        let read = |value: Value| Client::read(&RawJson::of(&value));
        assert_eq!(read(json!(["x"])), Client::default());
        assert_eq!(
            read(json!({"clientCapabilities": {"elicitation": {"form": {}}, "session": {"notices": null}}})),
            Client { asks: true, notices: false }
        );
    }
}
