//! Owns what an agent says of itself when it is greeted, and what we say of us. It sends nothing.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AuthMethod, ClientCapabilities, FileSystemCapabilities, Implementation, InitializeRequest,
    InitializeResponse,
};
use toolway_bridge::RawJson;

/// What is told to the agent. Its requests for files and terminals are served; see `desk`.
pub(super) fn greeting() -> InitializeRequest {
    let fs = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(fs).terminal(true))
        .client_info(Implementation::new("toolway", env!("CARGO_PKG_VERSION")).title("Toolway".to_owned()))
}

/// What an agent is and can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "what it can do is independent of each other")]
pub(super) struct About {
    /// Its own name and version, where it tells them.
    pub(super) name: Option<String>,
    /// It can open an earlier session, and repeats what was said in it.
    pub(super) loads: bool,
    /// It can open an earlier session without repeating.
    pub(super) resumes: bool,
    /// It takes servers over HTTP.
    pub(super) takes_http: bool,
    /// It takes pictures.
    pub(super) takes_images: bool,
    /// It takes a system prompt in place of its own.
    pub(super) takes_system_prompt: bool,
    /// The ways to sign in to it: id, name, description.
    pub(super) ways_in: Vec<WayIn>,
}

/// A way to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WayIn {
    pub(super) id: String,
    pub(super) text: String,
}

impl About {
    /// Reads the answer to `initialize`.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence about the agent.
    pub(super) fn read(answer: &RawJson) -> Result<Self, String> {
        let response: InitializeResponse = serde_json::from_slice(answer.bytes())
            .map_err(|error| format!("its answer to initialize cannot be read: {error}"))?;
        if response.protocol_version != ProtocolVersion::V1 {
            return Err(format!(
                "it speaks version {} of the Agent Client Protocol, and Toolway speaks {}: take another version of it",
                response.protocol_version,
                ProtocolVersion::V1,
            ));
        }
        let can = response.agent_capabilities;
        let way = |method: &AuthMethod| {
            let text = match method.description() {
                Some(description) => format!("{}: {description}", method.name()),
                None => method.name().to_owned(),
            };
            WayIn { id: method.id().to_string(), text }
        };
        Ok(Self {
            name: response.agent_info.map(|info| format!("{} {}", info.name, info.version)),
            loads: can.load_session,
            resumes: can.session_capabilities.resume.is_some(),
            takes_http: can.mcp_capabilities.http,
            takes_images: can.prompt_capabilities.image,
            takes_system_prompt: can
                .session_capabilities
                .system_prompt
                .and_then(|system| system.mode)
                .is_some_and(|mode| mode.override_.is_some()),
            ways_in: response.auth_methods.iter().map(way).collect(),
        })
    }

    /// It can go on with an earlier session.
    pub(super) fn remembers(&self) -> bool {
        self.loads || self.resumes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> Result<About, String> {
        About::read(&RawJson::of(value))
    }

    #[test]
    fn capabilities_are_read_and_all_of_them_may_be_missing() {
        assert_eq!(read(&json!({"protocolVersion": 1})), Ok(About::default()));
        let about = read(&json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "opencode", "version": "1.2.3"},
            "agentCapabilities": {
                "loadSession": true, "mcpCapabilities": {"http": true}, "promptCapabilities": {"image": true},
                "sessionCapabilities": {"resume": {}, "somethingNew": {"x": 1}},
            },
            "authMethods": [{"id": "login", "name": "Log in", "description": "in a browser"}],
        }));
        let expected = About {
            name: Some("opencode 1.2.3".to_owned()),
            loads: true,
            resumes: true,
            takes_http: true,
            takes_images: true,
            takes_system_prompt: false,
            ways_in: vec![WayIn { id: "login".to_owned(), text: "Log in: in a browser".to_owned() }],
        };
        assert_eq!(about, Ok(expected));
    }

    #[test]
    fn another_version_is_told_with_both_numbers() {
        let fault = read(&json!({"protocolVersion": 2})).unwrap_err();
        assert!(fault.contains("version 2") && fault.contains("speaks 1"), "{fault}");
        assert!(read(&json!("hello")).unwrap_err().contains("initialize"));
    }

    #[test]
    fn we_offer_files_and_terminals() {
        let greeting = serde_json::to_value(greeting()).unwrap();
        assert_eq!(greeting["protocolVersion"], 1);
        let can = json!({"readTextFile": true, "writeTextFile": true});
        assert_eq!(
            (&greeting["clientCapabilities"]["fs"], &greeting["clientCapabilities"]["terminal"]),
            (&can, &json!(true))
        );
    }
}
