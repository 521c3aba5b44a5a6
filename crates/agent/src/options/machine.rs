//! Owns what an agent knows of the machine and the user. The one place of this crate that may read the process's
//! environment, and only for who asks for it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use toolway_auth::Opener;
use toolway_config::{Environment, KeyringReader, Platform};
use toolway_secret::Secret;
use toolway_transport::supervisor;

use crate::error::AgentError;
use crate::sign_in::SignIns;

/// The machine and the user: variables, home, directories. Cheap to clone. `Debug` shows no values.
#[derive(Clone)]
pub struct Machine {
    variables: Arc<Vec<(OsString, OsString)>>,
    environment: Arc<Environment>,
    helper: Option<Arc<Path>>,
    /// Made when it is first asked for; one for all clones.
    sign_ins: Arc<OnceLock<Option<SignIns>>>,
    opener: Option<Arc<dyn Opener>>,
}

impl Machine {
    /// This process's own, as it is now.
    ///
    /// # Errors
    /// Where there is no working directory.
    pub fn here() -> Result<Self, AgentError> {
        let cwd = std::env::current_dir().map_err(|error| {
            AgentError::fault("local.cwd", format!("there is no working directory: {error}"))
        })?;
        let helper = if crate::begin::has_begun() { supervisor::own_binary().ok() } else { None };
        Ok(Self::new(std::env::vars_os().collect(), cwd).with_helper(helper))
    }

    /// With these variables, standing in that directory, which is absolute.
    pub fn new(variables: Vec<(OsString, OsString)>, cwd: PathBuf) -> Self {
        let text = |(name, value): &(OsString, OsString)| {
            // What is not UTF-8 cannot be put into a text.
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        let texts = variables.iter().filter_map(text).collect();
        let environment = Environment::new(texts, cwd, Platform::current());
        let machine = Self {
            variables: Arc::new(variables),
            environment: Arc::new(environment),
            helper: None,
            sign_ins: Arc::default(),
            opener: None,
        };
        let asked = machine.clone();
        machine.with_keyring(Arc::new(move |name| asked.kept(name)))
    }

    /// The secret that is kept under that name.
    fn kept(&self, name: &str) -> Result<Secret, String> {
        let none = || format!("there is no secret of this name: toolway auth secret set {name} < FILE");
        let sign_ins = self.sign_ins().ok_or("there is no home directory in which it could be kept")?;
        sign_ins.named().get(name).map_err(|error| error.to_string())?.ok_or_else(none)
    }

    /// The same with other directories of an administrator, for tests and for who keeps them elsewhere.
    #[must_use]
    pub fn with_managed_dirs(mut self, dirs: Vec<PathBuf>) -> Self {
        Arc::make_mut(&mut self.environment).managed_dirs = dirs;
        self
    }

    /// The same with another keyring, where `${keyring:NAME}` in definitions comes from. Without one it is what
    /// `toolway auth secret set` keeps.
    #[must_use]
    pub fn with_keyring(mut self, keyring: KeyringReader) -> Self {
        Arc::make_mut(&mut self.environment).keyring = Some(keyring);
        self
    }

    /// The same with a binary whose `main` begins with [`crate::begin`]: it ends whole trees of processes, whatever
    /// happens to this one, and bounds what queries of saved results may take.
    #[must_use]
    pub fn with_helper(mut self, helper: Option<PathBuf>) -> Self {
        self.helper = helper.map(Arc::from);
        self
    }

    /// The same, where a person is there to sign in: a server that wants a login shows them its address. Without one, such
    /// a server waits until somebody has signed in.
    #[must_use]
    pub fn with_opener(mut self, opener: Arc<dyn Opener>) -> Self {
        self.opener = Some(opener);
        self
    }

    /// Who is shown the address of a login.
    pub(crate) fn opener(&self) -> Option<Arc<dyn Opener>> {
        self.opener.clone()
    }

    /// The signing in to servers, with the store in the state directory; `None` without a home.
    pub fn sign_ins(&self) -> Option<&SignIns> {
        self.sign_ins.get_or_init(|| SignIns::of(self)).as_ref()
    }

    /// The binary that ends whole trees of processes. Without one, children are ended by their process group.
    pub fn helper(&self) -> Option<&Path> {
        self.helper.as_deref()
    }

    /// The same, standing elsewhere.
    #[must_use]
    pub fn at(&self, cwd: &Path) -> Self {
        let mut machine = self.clone();
        Arc::make_mut(&mut machine.environment).cwd = self.cwd().join(cwd);
        machine
    }

    /// As the configuration wants it.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// All variables, also those that are no texts.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// The value of a variable, also one that is no text.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_os_str())
    }

    /// The value of a variable that is a text and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.environment.set_var(name)
    }

    /// The user's home directory; empty where there is none.
    pub fn home(&self) -> &Path {
        &self.environment.home
    }

    /// Where it stands.
    pub fn cwd(&self) -> &Path {
        &self.environment.cwd
    }

    /// Where Toolway keeps what outlives a restart and is no configuration: agents, trust. `$XDG_STATE_HOME/toolway`,
    /// `~/Library/Application Support/toolway/state`, `%LOCALAPPDATA%\toolway\state`. `None` without a home.
    pub fn state_dir(&self) -> Option<PathBuf> {
        match self.environment.platform {
            Platform::Windows => Some(self.path("LOCALAPPDATA")?.join("toolway").join("state")),
            Platform::MacOs => Some(self.path("HOME")?.join("Library/Application Support/toolway/state")),
            Platform::Linux => self.base("XDG_STATE_HOME", ".local/state"),
        }
    }

    /// Where Toolway keeps what can be made again: catalogues, what worked. `None` without a home.
    pub fn cache_dir(&self) -> Option<PathBuf> {
        match self.environment.platform {
            Platform::Windows => Some(self.path("LOCALAPPDATA")?.join("toolway").join("cache")),
            Platform::MacOs => self.base("XDG_CACHE_HOME", "Library/Caches"),
            Platform::Linux => self.base("XDG_CACHE_HOME", ".cache"),
        }
    }

    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = self.path(variable).filter(|path| path.is_absolute());
        Some(set.or_else(|| Some(self.path("HOME")?.join(below_home)))?.join("toolway"))
    }

    fn path(&self, variable: &str) -> Option<PathBuf> {
        self.variable(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("environment", &self.environment).finish_non_exhaustive()
    }
}
