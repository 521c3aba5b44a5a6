//! Owns what a session of the bridge is opened with, and that one is opened anew where the settings are others.

use std::path::PathBuf;
use std::sync::Arc;

use toolway_agent::LocalPort;
use toolway_bridge::{Coordinator, HostMode, Session, SessionOptions, Settings, Warning};
use toolway_guard::Guard;

use super::PROFILE;
use super::host::Host;
use crate::compose::{UsageError, session_name};

/// What opens sessions: one at a time.
pub(super) struct Opening {
    pub(super) coordinator: Coordinator<LocalPort>,
    pub(super) host: Arc<Host>,
    /// The user's settings of the bridge.
    pub(super) file: Option<PathBuf>,
    pub(super) is_terminal: bool,
    pub(super) guard: Arc<Guard>,
}

impl Opening {
    /// The settings as they are now, and what is wrong with them.
    pub(super) fn settings(&self) -> (Arc<Settings>, Vec<Warning>) {
        let (settings, warnings) =
            self.file.as_ref().map_or_else(Default::default, |file| Settings::read(file));
        (Arc::new(settings), warnings)
    }

    /// A session with these settings.
    pub(super) fn open(&self, settings: &Arc<Settings>) -> Result<Session, UsageError> {
        let options = SessionOptions {
            settings: Arc::clone(settings),
            host_mode: Some(HostMode::Tui),
            is_terminal: self.is_terminal,
            own_display_tool: true,
            guard: Some(Arc::clone(&self.guard)),
            ..SessionOptions::new(&session_name(), PROFILE)
        };
        let host = Arc::clone(&self.host);
        self.coordinator.open(host as _, options).map_err(|error| UsageError::new("chat", error.to_string()))
    }
}
