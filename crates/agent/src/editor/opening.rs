//! Owns how sessions are opened: what an editor says of folders and servers as options of an agent, all faults of it at
//! once, and the agents that are made of it.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::asker::Asker;
use super::session::EditorSession;
use super::{Outcome, SESSIONS, Shared, fault, kept, lock, no_session, session_id, settings};
use crate::acp::frame::{INTERNAL, INVALID_PARAMS, RpcError};
use crate::agent::Agent;
use crate::id::AgentId;
use crate::inline::{McpServer, McpServers};
use crate::options::{AgentOptions, Place};
use crate::person::Person;

impl Shared {
    /// `session/new`.
    pub(super) fn open(&self, params: &Value) -> Outcome {
        let id = AgentId::local();
        let mut options = self.options(params, id.as_str())?;
        options.agent_id = Some(id.clone());
        self.room(id.as_str())?;
        let agent = Agent::create(options.clone()).map_err(|error| fault(&error))?;
        let session = Arc::new(EditorSession::new(agent, options, true));
        lock(&self.sessions).insert(id.to_string(), Arc::clone(&session));
        let mut opened = settings::told(&session, &self.options);
        if let Some(opened) = opened.as_object_mut() {
            opened.insert("sessionId".to_owned(), json!(id));
        }
        Ok(opened)
    }

    /// `session/load`, which repeats what was said, and `session/resume`, which does not. One that is open is opened
    /// anew.
    pub(super) async fn load(&self, params: &Value, repeats: bool) -> Outcome {
        let text = session_id(params);
        let id: AgentId = text.parse().map_err(|_| no_session(text))?;
        let options = self.options(params, id.as_str())?;
        self.close(id.as_str()).await;
        self.room(id.as_str())?;
        let agent = Agent::resume(&id, options.clone()).await.map_err(|error| fault(&error))?;
        if repeats {
            kept::repeat(&options, &id, &self.outlet).await?;
        }
        let session = Arc::new(EditorSession::new(agent, options, false));
        let other = lock(&self.sessions).insert(id.to_string(), Arc::clone(&session));
        if let Some(other) = other {
            other.cancel();
            other.agent.dispose().await;
        }
        Ok(settings::told(&session, &self.options))
    }

    fn room(&self, id: &str) -> Result<(), RpcError> {
        let sessions = lock(&self.sessions);
        if sessions.len() >= SESSIONS && !sessions.contains_key(id) {
            let text = format!("{SESSIONS} sessions are open: close one first");
            return Err(RpcError::new(INTERNAL, text));
        }
        Ok(())
    }

    /// The options of a session: folders and servers are the editor's, and it is the one who is asked.
    fn options(&self, params: &Value, id: &str) -> Result<AgentOptions, RpcError> {
        let mut faults = Vec::new();
        let cwd = params.get("cwd").and_then(Value::as_str).map(PathBuf::from);
        let cwd = cwd.filter(|cwd| cwd.is_absolute());
        if cwd.is_none() {
            faults.push("cwd: must be an absolute path".to_owned());
        }
        // A folder that is not there would be found out with the first prompt only.
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            faults.push(format!("cwd: {} is no folder", cwd.display()));
        }
        for name in ["additionalDirectories", "mcpServers"] {
            if params.get(name).is_some_and(|given| !given.is_null() && !given.is_array()) {
                faults.push(format!("{name}: must be a list"));
            }
        }
        let mut dirs = Vec::new();
        for (at, dir) in list(params, "additionalDirectories").enumerate() {
            match dir.as_str().map(PathBuf::from).filter(|dir| dir.is_absolute()) {
                Some(dir) => dirs.push(dir),
                None => faults.push(format!("additionalDirectories[{at}]: must be an absolute path")),
            }
        }
        let mut own = McpServers::new();
        for (at, entry) in list(params, "mcpServers").enumerate() {
            match server(entry) {
                Ok((name, _)) if own.get(&name).is_some() => {
                    faults.push(format!("mcpServers[{at}]: there are two servers of the name {name:?}"));
                }
                Ok((name, server)) => own.insert(name, server),
                Err(reason) => faults.push(format!("mcpServers[{at}]: {reason}")),
            }
        }
        if !faults.is_empty() {
            return Err(RpcError::new(INVALID_PARAMS, faults.join("; ")));
        }
        let asker = Arc::new(Asker::new(id, self));
        let mut options = self.options.agent.clone();
        // Of one name the editor's own is meant: it is named last.
        let given = options.mcp_servers.iter().filter(|(name, _)| own.get(name).is_none());
        let given = given.map(|(name, server)| (name.to_owned(), server.clone()));
        let all: McpServers =
            given.chain(own.iter().map(|(name, server)| (name.to_owned(), server.clone()))).collect();
        options.mcp_servers = all;
        if let Place::Local(local) = &mut options.place {
            local.cwd = cwd;
            local.dirs.extend(dirs);
            local.person = Person { approver: Some(asker.clone()), host: Some(asker) };
        }
        Ok(options)
    }
}

fn list<'a>(params: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    params.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// A server as the protocol writes it. The error is the end of a sentence about it.
fn server(entry: &Value) -> Result<(String, McpServer), String> {
    let text = |name: &str| match entry.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(_) => Err(format!("{name} must be a text that is not empty")),
        None => Err(format!("{name} is missing")),
    };
    let pairs = |name: &str| -> Result<Vec<(String, String)>, String> {
        let pair = |pair: &Value| {
            let part = |part: &str| Some(pair.get(part)?.as_str()?.to_owned());
            part("name").zip(part("value")).ok_or_else(|| format!("{name} must be a list of name and value"))
        };
        match entry.get(name) {
            None | Some(Value::Null | Value::Array(_)) => list(entry, name).map(pair).collect(),
            Some(_) => Err(format!("{name} must be a list of name and value")),
        }
    };
    let name = text("name")?;
    match entry.get("type").and_then(Value::as_str) {
        None | Some("stdio") => {
            if entry.get("args").is_some_and(|args| !args.is_null() && !args.is_array()) {
                return Err("args must be a list of texts".to_owned());
            }
            let args = list(entry, "args").map(|arg| arg.as_str().map(str::to_owned));
            let args: Option<Vec<String>> = args.collect();
            let args = args.ok_or("args must be texts")?;
            let server = McpServer::command(text("command")?).args(args);
            let server =
                pairs("env")?.into_iter().fold(server, |server, (name, value)| server.env(name, value));
            Ok((name, server))
        }
        Some(kind @ ("http" | "sse")) => {
            let server = McpServer::url(text("url")?).with("type", json!(kind));
            let headers = pairs("headers")?.into_iter();
            Ok((name, headers.fold(server, |server, (name, value)| server.header(name, value))))
        }
        Some(other) => Err(format!("type {other:?} is none of stdio, http, sse")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_as_the_protocol_writes_them() {
        let read = |entry: Value| {
            server(&entry).map(|(name, server)| (name, Value::Object(server.members().clone())))
        };
        let stdio =
            json!({"name": "a", "command": "/b", "args": ["c"], "env": [{"name": "D", "value": "e"}]});
        let expected = json!({"command": "/b", "args": ["c"], "env": {"D": "e"}});
        assert_eq!(read(stdio), Ok(("a".to_owned(), expected)));
        let http =
            json!({"type": "sse", "name": "a", "url": "http://x", "headers": [{"name": "K", "value": "v"}]});
        let expected = json!({"type": "sse", "url": "http://x", "headers": {"K": "v"}});
        assert_eq!(read(http), Ok(("a".to_owned(), expected)));
        for (entry, reason) in [
            (json!({"command": "x"}), "name is missing"),
            (json!({"name": "a"}), "command is missing"),
            (json!({"name": "a", "command": "x", "args": [1]}), "args must be texts"),
            (json!({"name": "a", "command": "x", "args": "y"}), "args must be a list of texts"),
            (json!({"name": "a", "command": "x", "env": {"A": "b"}}), "env must be a list of name and value"),
            (json!({"name": "a", "type": "http", "url": ""}), "url must be a text that is not empty"),
            (json!({"name": "a", "type": "acp", "id": "x"}), "type \"acp\" is none of stdio, http, sse"),
        ] {
            assert_eq!(read(entry.clone()), Err(reason.to_owned()), "{entry}");
        }
    }
}
