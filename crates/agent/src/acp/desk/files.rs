//! Owns the requests for files.

use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::{Refusal, RpcError, Shared, read};
use crate::acp::frame::{INTERNAL, INVALID_PARAMS, NOT_FOUND};
use crate::acp::workspace::Outside;
use crate::policy::Action;

impl Shared {
    pub(super) async fn read_file(
        &self,
        params: &RawJson,
        prompt: &CancellationToken,
    ) -> Result<Value, Refusal> {
        let wish: ReadTextFileRequest = read(params)?;
        let path = self.path(wish.path);
        self.workspace.resolve(&path).map_err(|outside| self.outside("read", &outside))?;
        self.judge("read", Action::Read(path.clone()), prompt).await?;
        let (workspace, at) = (self.workspace.clone(), path.clone());
        let content = on_thread(move || workspace.read(&at, wish.line, wish.limit)).await?;
        let content = content.map_err(|outside| self.outside("read", &outside))?;
        Ok(json!({"content": content}))
    }

    pub(super) async fn write_file(
        &self,
        params: &RawJson,
        prompt: &CancellationToken,
    ) -> Result<Value, Refusal> {
        let wish: WriteTextFileRequest = read(params)?;
        let path = self.path(wish.path);
        self.workspace.resolve(&path).map_err(|outside| self.outside("write", &outside))?;
        self.judge("write", Action::Write(path.clone()), prompt).await?;
        let (workspace, content) = (self.workspace.clone(), wish.content);
        let written = on_thread(move || workspace.write(&path, &content)).await?;
        written.map_err(|outside| self.outside("write", &outside))?;
        Ok(json!({}))
    }

    /// What lies outside is told to the user, too: the agent should not have asked.
    pub(super) fn outside(&self, verb: &str, outside: &Outside) -> Refusal {
        let code = match outside {
            Outside::Missing(_) => NOT_FOUND,
            Outside::Elsewhere { .. } => INVALID_PARAMS,
            Outside::Failed { .. } => INTERNAL,
        };
        let note = matches!(outside, Outside::Elsewhere { .. })
            .then(|| self.teller.say(&format!("it wanted to {verb} outside of its workspace: {outside}")));
        Refusal { error: RpcError::new(code, outside.to_string()), note }
    }
}

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, RpcError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| RpcError::new(INTERNAL, "the file could not be worked on"))
}
