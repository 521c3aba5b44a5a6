//! Owns one configured server as it came out of all files: who it is, where it stands, whether it may start, and why
//! not.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::definition::Definition;
use crate::dialect::Dialect;
use crate::environment::Environment;
use crate::expand::{Context, Depth, expand};
use crate::expanded::Expanded;
use crate::policy::Policy;
use crate::problem::{Position, Problem};
use crate::sensitive::{shown_fields, variables};
use crate::source::Source;

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file; empty for what was given by a program.
    pub file: PathBuf,
    /// The place in it.
    pub at: Option<Position>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            _ if self.file.as_os_str().is_empty() => f.write_str("given inline"),
            Some(at) => write!(f, "{}:{}", self.file.display(), at.line),
            None => write!(f, "{}", self.file.display()),
        }
    }
}

/// Whether an entry may start. Exactly one holds; of several reasons the first in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has faults: they are among the problems.
    Invalid,
    /// Another definition of the same name wins.
    Shadowed {
        /// Where that is.
        by: Place,
    },
    /// The administrator's policy forbids it.
    Blocked {
        /// Which rule, and in which file.
        policy: String,
    },
    /// Switched off.
    Disabled {
        /// Where.
        by: Place,
    },
    /// It is a client's way to Toolway's gateway, which does not serve itself.
    Itself,
    /// Nobody has approved this definition yet.
    Untrusted {
        /// Why it has to be approved: new, or changed since.
        reason: String,
    },
    /// Variables that it needs are not set, and have no default.
    Unset {
        /// Their names.
        variables: Vec<String>,
    },
    /// A value that only a person can give is missing.
    NeedsInput {
        /// The ids of the inputs.
        inputs: Vec<String>,
    },
    /// It can be started.
    Ready,
}

impl Standing {
    /// The word used in every output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Shadowed { .. } => "shadowed",
            Self::Blocked { .. } => "blocked",
            Self::Disabled { .. } => "disabled",
            Self::Itself => "itself",
            Self::Untrusted { .. } => "untrusted",
            Self::Unset { .. } => "unset",
            Self::NeedsInput { .. } => "needs_input",
            Self::Ready => "ready",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid | Self::Ready => f.write_str(self.name()),
            Self::Shadowed { by } => write!(f, "shadowed by {by}"),
            Self::Blocked { policy } => write!(f, "blocked by {policy}"),
            Self::Disabled { by } => write!(f, "disabled at {by}"),
            Self::Itself => f.write_str("off: it runs toolway serve, which does not serve itself"),
            Self::Untrusted { reason } => write!(f, "untrusted: {reason}"),
            Self::Unset { variables } => write!(f, "not set: {}", variables.join(", ")),
            Self::NeedsInput { inputs } => write!(f, "needs input {}", inputs.join(", ")),
        }
    }
}

/// One configured server, also one that is never started.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name as configured: the identity, case and all.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Where its name stands.
    pub place: Place,
    /// Whose conventions it follows.
    pub dialect: Dialect,
    /// Whether it may start.
    pub standing: Standing,
    /// What it says; `None` where it could not be understood, or where all that is there is a switch.
    pub definition: Option<Definition>,
    /// Each of its fields, dotted (`headers.X-Key`, `args.2`), and where it stands.
    pub provenance: BTreeMap<String, Place>,
    /// Digest of what it means, names of variables and not their values: what an approval is bound to. Empty where the
    /// definition is `None`.
    pub digest: String,
    /// The directory that `${workspaceFolder}` and relative paths stand for.
    pub workspace: PathBuf,
    /// What the administrator allows: asked again with the values it is started with.
    pub(crate) policy: Arc<Policy>,
    /// Where its file of variables is.
    pub(crate) env_file: Option<PathBuf>,
}

impl Entry {
    /// Replaces every placeholder, reads `envFile`, runs the commands that values come from and asks the keyring. Refuses an entry that
    /// may not start; variables and inputs that were missing are looked for again.
    pub fn expand(&self, environment: &Environment) -> Result<Expanded, Vec<Problem>> {
        let refused = |message: String| vec![self.problem(Problem::error(message))];
        let may = matches!(
            self.standing,
            Standing::Ready | Standing::Unset { .. } | Standing::NeedsInput { .. } | Standing::Invalid
        );
        let definition = self.definition.as_ref().filter(|_| may);
        let definition =
            definition.ok_or_else(|| refused(format!("cannot be started: {}", self.standing)))?;
        // Before any command is run, and before the keyring is asked.
        let first = expand(&self.name, definition, self.context(environment, Depth::Files));
        if !first.errors.is_empty() {
            return Err(first.errors);
        }
        let runs = definition.runs_commands() || definition.reads_keyring();
        let whole = || expand(&self.name, definition, self.context(environment, Depth::Commands));
        let outcome = if runs { whole() } else { first };
        if !outcome.errors.is_empty() {
            return Err(outcome.errors);
        }
        match self.policy.forbids(&self.name, &outcome.expanded) {
            Some(policy) => Err(refused(format!("blocked by {policy}"))),
            None => Ok(outcome.expanded),
        }
    }

    /// What people may see of it: each field and its value, without secrets, with the names of variables.
    pub fn shown_fields(&self) -> Vec<(String, String)> {
        self.definition.as_ref().map(shown_fields).unwrap_or_default()
    }

    /// The variables that it needs: field, name, and whether it has a default.
    pub fn variables(&self) -> Vec<(String, String, bool)> {
        self.definition.as_ref().map(variables).unwrap_or_default()
    }

    /// Whether the definition has values that a command prints.
    pub fn runs_commands(&self) -> bool {
        self.definition.as_ref().is_some_and(Definition::runs_commands)
    }

    /// Whether the definition has values of the user's keyring.
    pub fn reads_keyring(&self) -> bool {
        self.definition.as_ref().is_some_and(Definition::reads_keyring)
    }

    pub(crate) fn context<'a>(&'a self, environment: &'a Environment, depth: Depth) -> Context<'a> {
        Context {
            environment,
            workspace: &self.workspace,
            source: &self.source,
            file: &self.place.file,
            depth,
        }
    }

    /// A problem of this entry.
    pub(crate) fn problem(&self, problem: Problem) -> Problem {
        problem.file(&self.place.file).at(self.place.at).server(&self.name)
    }
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStatus {
    /// It was read and understood.
    Read {
        /// How many servers it names.
        servers: usize,
    },
    /// There is none.
    Absent,
    /// The same file stands earlier, under another name.
    Same {
        /// That name.
        of: PathBuf,
    },
    /// It cannot be used; what it said when it last could is used in its place.
    Kept(Problem),
    /// It cannot be used.
    Failed(Problem),
}

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What it is for.
    pub source: Source,
    /// Whose conventions it follows.
    pub dialect: Dialect,
    /// What became of it.
    pub status: FileStatus,
}
