//! Owns the reasons why a server cannot be used, with all that a diagnosis wants to know. Decides nothing.

use std::path::PathBuf;

use toolway_transport::Exit;

use super::Carrier;
use crate::gateway::state::{ServerState, Stage};

/// Why a connection could not be made. No secrets in any of its texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", stage.name())]
pub struct OpenError {
    /// How far it came.
    pub stage: Stage,
    /// What happened: a fragment, in lower case.
    pub reason: String,
    /// What to do, in one line.
    pub hint: Option<String>,
    /// All else that is known.
    pub detail: Box<OpenDetail>,
}

/// What is known about an attempt to connect, for a diagnosis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenDetail {
    /// The server wants a login: 401 or 403.
    pub needs_auth: bool,
    /// The file that the command was resolved to.
    pub program: Option<PathBuf>,
    /// Where the command was searched, when it was not found.
    pub searched: Vec<String>,
    /// Where a version manager has it.
    pub found_at: Vec<String>,
    /// How the process ended.
    pub exit: Option<Exit>,
    /// The last lines of its stderr; secrets are masked.
    pub stderr: Option<String>,
    /// HTTP answers, in order.
    pub exchanges: Vec<Exchange>,
    /// The server's JSON-RPC error to the handshake: code and message.
    pub rpc_error: Option<(i64, String)>,
    /// The beginning of the first line on stdout that was no message, and how many there were.
    pub garbage: Option<(String, u64)>,
    /// The start took longer than it may.
    pub timed_out: bool,
}

/// One HTTP answer during the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Which transport was tried.
    pub carrier: Carrier,
    /// `POST`, `GET`, `DELETE`.
    pub method: String,
    /// The address, without its query.
    pub url: String,
    /// The status.
    pub status: u16,
    /// `Content-Type` of the answer.
    pub content_type: Option<String>,
}

impl OpenError {
    pub(crate) fn new(stage: Stage, reason: impl Into<String>) -> Self {
        Self { stage, reason: reason.into(), hint: None, detail: Box::default() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The state of a server that failed so.
    pub fn state(&self) -> ServerState {
        if self.detail.needs_auth {
            let hint = self.hint.clone().unwrap_or_else(|| self.reason.clone());
            return ServerState::NeedsAuth { hint };
        }
        ServerState::Failed { stage: self.stage, reason: self.reason.clone(), hint: self.hint.clone() }
    }
}
