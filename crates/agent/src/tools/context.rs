//! Owns what tools work with: the folders, what was read, the commands that run, who can be asked. Made once for an
//! agent; each call gets a view of it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::fetch::Web;
use super::files::ReadFiles;
use super::outputs::Outputs;
use super::paths::{Place, Roots};
use super::setup::ToolSetup;
use super::shells::{Listener, Shells};
use super::todos::Todos;
use crate::engine::RunSink;
use crate::person::AskHost;
use crate::policy::Action;

/// Whether a file may be seen at all: the deny rules of the permissions. Search tools pass over what may not.
pub(crate) type Sight = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// What tools keep from call to call, for one agent.
pub struct ToolSession {
    pub(crate) setup: ToolSetup,
    pub(crate) roots: Roots,
    pub(crate) files: ReadFiles,
    pub(crate) shells: Shells,
    pub(crate) todos: Todos,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) web: Web,
    /// Held while a file is changed.
    pub(crate) writing: tokio::sync::Mutex<()>,
    pub(crate) host: Option<Arc<dyn AskHost>>,
    pub(crate) sight: Option<Sight>,
}

impl fmt::Debug for ToolSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSession").field("cwd", &self.setup.cwd).finish_non_exhaustive()
    }
}

impl ToolSession {
    /// Starts nothing.
    pub fn new(setup: ToolSetup, host: Option<Arc<dyn AskHost>>) -> Self {
        let roots = Roots::new(&setup.cwd, &setup.dirs, &setup.temp);
        Self {
            roots,
            files: ReadFiles::default(),
            shells: Shells::default(),
            todos: Todos::default(),
            web: Web::default(),
            outputs: Arc::new(Outputs::new(&setup.temp)),
            writing: tokio::sync::Mutex::default(),
            host,
            sight: None,
            setup,
        }
    }

    /// With a rule for what search tools may see: permissions that deny reading.
    #[must_use]
    pub fn with_sight(mut self, may_read: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        self.sight = Some(Arc::new(may_read));
        self
    }

    /// The list of what is to do, to be kept with the conversation.
    pub fn todos(&self) -> RawJson {
        self.todos.snapshot()
    }

    /// The list of what is to do, as it was kept.
    pub fn restore_todos(&self, kept: &RawJson) {
        self.todos.restore(kept);
    }

    /// What the model has to know of the folders and the sandbox.
    pub fn described(&self) -> String {
        let folders = format!(
            "The working folder is {}. Files may be read and written in {}.",
            self.setup.cwd.display(),
            self.roots.named()
        );
        match self.setup.sandbox.described() {
            Some(sandbox) => format!("{folders} {sandbox}"),
            None => folders,
        }
    }

    /// Ends every command that still runs, and what it started. The second time nothing.
    pub async fn close(&self) {
        self.shells.close().await;
    }
}

/// One call.
#[derive(Clone)]
pub struct ToolContext {
    /// What tools keep.
    pub session: Arc<ToolSession>,
    /// The call's id.
    pub call_id: String,
    /// Where output goes while it comes.
    pub sink: Option<Arc<dyn RunSink>>,
    /// The call is to end.
    pub cancel: CancellationToken,
    /// What was allowed. Outside of its folders a tool does nothing else.
    pub granted: Vec<Action>,
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

impl ToolContext {
    /// A call that nobody listens to and that nothing beyond the folders is allowed to.
    pub fn new(session: Arc<ToolSession>, call_id: impl Into<String>, cancel: CancellationToken) -> Self {
        Self { session, call_id: call_id.into(), sink: None, cancel, granted: Vec::new() }
    }

    /// Whoever is told of output while it comes.
    pub(crate) fn listener(&self) -> Listener {
        self.sink.as_ref().map(|sink| (Arc::clone(sink), self.call_id.clone()))
    }

    /// Where a path of the model's leads.
    pub(crate) fn place(&self, path: &str) -> Result<Place, super::ToolOutput> {
        self.session.roots.place(path).map_err(|message| super::arguments::fault("path", message))
    }

    /// The same for the entry of that name itself, whatever it links to.
    pub(crate) fn granted_entry(&self, path: &str) -> Result<Place, super::ToolOutput> {
        let place =
            self.session.roots.entry(path).map_err(|message| super::arguments::fault("path", message))?;
        self.check(place, true)
    }

    /// The same, for doing it: what lies outside must be what was allowed.
    pub(crate) fn granted(&self, path: &str, write: bool) -> Result<Place, super::ToolOutput> {
        self.check(self.place(path)?, write)
    }

    fn check(&self, place: Place, write: bool) -> Result<Place, super::ToolOutput> {
        let action = if write { place.write() } else { place.read() };
        if place.outside && !self.granted.contains(&action) {
            return Err(super::ToolOutput::error(format!(
                "{} lies outside of the folders of this agent ({}), and it was not allowed to {} it.",
                place.real.display(),
                self.session.roots.named(),
                if write { "write" } else { "read" },
            )));
        }
        Ok(place)
    }
}
