//! Owns what a question for permission is about, of the calls that are known.

use toolway_bridge::RawJson;

use super::{Calls, Members, find, overlay, text, whole};
use crate::acp::names::Meant;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::acp) enum OfServer {
    /// Behind the front, where each call is judged when it arrives.
    Front,
    /// The agent calls it where nobody of ours is asked.
    Direct { server: String, tool: String },
}

impl Calls {
    /// The tool of a server whose call a question is about, where it is about one.
    pub(in crate::acp) fn of_server(&self, members: &RawJson) -> Option<OfServer> {
        let members = serde_json::from_slice::<Members>(members.bytes()).ok()?;
        let id = text(&members, "toolCallId").unwrap_or_default();
        let known = self.open.iter().find(|call| call.id == id).and_then(|call| call.tool.clone());
        let Meant { server, tool, .. } = known.or_else(|| find(&members, &self.names))?;
        if self.names.is_direct(&server) {
            return Some(OfServer::Direct { server, tool });
        }
        Some(OfServer::Front)
    }

    /// What is known of a call together with what a question says of it.
    pub(in crate::acp) fn merged(&self, members: &RawJson) -> RawJson {
        let Ok(said) = serde_json::from_slice::<Members>(members.bytes()) else { return members.clone() };
        let id = text(&said, "toolCallId").unwrap_or_default();
        let mut merged =
            self.open.iter().find(|call| call.id == id).map(|call| call.members.clone()).unwrap_or_default();
        let mut said = said;
        if text(&said, "kind").as_deref() == Some("other") && text(&merged, "kind").is_some() {
            // A question about a side of the call, a folder for one: the call is still what it was told as.
            said.remove("kind");
        }
        overlay(&mut merged, said);
        whole(&merged)
    }
}
