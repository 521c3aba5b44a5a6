//! What the commands that change configuration files share: which file, what is in it, and how faults are told.

mod add;
mod export;
mod import;
mod remove;
mod switch;

use std::io::{self};
use std::path::{Path, PathBuf};

use toolway_config::{
    Audience, Change, Client, ClientFile, Environment, Format, Node, Problem, Scope, Written, edit_file,
    own_project_file, own_user_file, project_root,
};

use crate::args::ScopeArgs;
use crate::border::say;
use crate::compose::servers::machine;
use crate::compose::{self, UsageError};
use crate::exit::{Exit, complain};
use crate::show::safe;

pub(super) use add::run as add;
pub(super) use export::run as export;
pub(super) use import::run as import;
pub(super) use remove::run as remove;
pub(super) use switch::run as switch;

/// Why nothing was changed.
#[derive(Debug)]
enum Refusal {
    Usage(UsageError),
    Problems(Vec<Problem>),
    Output(io::Error),
}

impl From<UsageError> for Refusal {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

impl From<Vec<Problem>> for Refusal {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Problems(problems)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problems(vec![problem])
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The exit, with what is wrong on stderr. Whoever reads our output may close it: that is no failure.
fn told(result: Result<Exit, Refusal>) -> Exit {
    match result {
        Ok(exit) => exit,
        Err(Refusal::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Refusal::Output(error)) => {
            complain(&error, None);
            Exit::Ended
        }
        Err(Refusal::Usage(error)) => {
            complain(&error, error.hint().as_deref());
            Exit::Usage
        }
        Err(Refusal::Problems(problems)) => {
            tell(&problems);
            Exit::Usage
        }
    }
}

/// Problems on stderr, each on a line.
fn tell(problems: &[Problem]) {
    for problem in problems {
        let word = if problem.is_error() { "error" } else { "warning" };
        say(format_args!("{word}: {}", safe(&problem.to_string())));
    }
}

/// The machine and the project.
#[derive(Debug)]
struct Ground {
    env: Environment,
    project: PathBuf,
}

impl Ground {
    fn new() -> Result<Self, UsageError> {
        let env = machine(&compose::Environment::read())?;
        let project = project_root(&env.cwd);
        Ok(Self { env, project })
    }

    /// Toolway's own file.
    fn own(&self, scope: Scope) -> Result<Target, Refusal> {
        let path = match scope {
            Scope::User => own_user_file(&self.env),
            Scope::Project => own_project_file(&self.project),
        };
        Target::read(path, Format::Jsonc, scope)
    }

    /// The file that is written for a client.
    fn of_client(&self, client: &Client, scope: Scope) -> Result<Target, Refusal> {
        let Some(ClientFile { path, format, .. }) = client.file_to_write(&self.env, &self.project, scope)
        else {
            let whose = if scope == Scope::User { "a user" } else { "a project" };
            let error = UsageError::new(client.id, format!("{} has no file of {whose}", client.title));
            return Err(error.with_hint("leave --project out, or name --file").into());
        };
        Target::read(path, format, scope)
    }
}

impl ScopeArgs {
    fn named(self) -> Option<Scope> {
        match (self.user, self.project) {
            (true, _) => Some(Scope::User),
            (_, true) => Some(Scope::Project),
            _ => None,
        }
    }
}

/// The client of an id.
fn client(flag: &str, id: &str) -> Result<&'static Client, UsageError> {
    Client::by_id(id).ok_or_else(|| {
        let ids: Vec<&str> = toolway_config::CLIENTS.iter().map(|client| client.id).collect();
        UsageError::new(flag, format!("there is no client {id:?}"))
            .with_hint(format!("they are {}", ids.join(", ")))
    })
}

/// A file that is to be changed, as it is.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    format: Format,
    audience: Audience,
    bytes: Option<Vec<u8>>,
    root: Option<Node>,
}

impl Target {
    /// Reads it. It may be absent or empty.
    fn read(path: PathBuf, format: Format, scope: Scope) -> Result<Self, Refusal> {
        let audience = if scope == Scope::User { Audience::Owner } else { Audience::Everybody };
        let is_absent = path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if is_absent {
            return Ok(Self { path, format, audience, bytes: None, root: None });
        }
        let bytes = toolway_config::read_bytes(&path)?;
        let is_empty = bytes.trim_ascii().is_empty();
        let root = if is_empty { Ok(None) } else { toolway_config::read(&bytes, format).map(Some) };
        let root = root.map_err(|problems| -> Vec<Problem> {
            problems.into_iter().map(|problem| problem.file(&path)).collect()
        })?;
        Ok(Self { path, format, audience, bytes: Some(bytes), root })
    }

    fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }

    /// Writes it, and tells what is lost.
    fn write(&self, changes: &[Change]) -> Result<Written, Refusal> {
        let written = edit_file(&self.path, self.format, self.bytes.as_deref(), changes, self.audience)?;
        if !written.lost_comments.is_empty() {
            say(format_args!("warning: {}: these comments were lost:", self.path.display()));
            for comment in &written.lost_comments {
                say(format_args!("  {}", safe(comment)));
            }
        }
        Ok(written)
    }

    fn shown(&self) -> String {
        safe(&self.path.to_string_lossy()).into_owned()
    }
}

/// `server` or `servers`.
fn servers(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}

/// A path as it is shown, below the home directory with `~`.
fn short(path: &Path, env: &Environment) -> String {
    let below = path.strip_prefix(&env.home).ok().filter(|_| !env.home.as_os_str().is_empty());
    let shown = below.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display()));
    safe(&shown).into_owned()
}
