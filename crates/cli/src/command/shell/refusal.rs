//! Owns why a command cannot do what was asked, and the exit code of each reason. Prints nothing but that.

use toolway_proxy::gateway::{ClientError, OpenError, ServerState, Stage};

use super::arguments::Wrong;
use crate::compose::UsageError;
use crate::exit::{Exit, complain};
use crate::render::quoted;
use crate::show::safe;

/// Why not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What is wrong, without secrets.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// How the program ends.
    pub(crate) exit: Exit,
}

impl Refusal {
    pub(crate) fn usage(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None, exit: Exit::Usage }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says it on stderr. Texts of servers are in it.
    pub(crate) fn tell(&self) -> Exit {
        if !matches!(self.exit, Exit::Signal(_) | Exit::Done) {
            complain(&safe(&self.reason), self.hint.as_deref().map(safe).as_deref());
        }
        self.exit
    }

    /// A server that cannot be asked, in this state.
    pub(crate) fn state(server: &str, state: &ServerState) -> Self {
        let exit = exit_of(state);
        let (reason, hint) = match state {
            ServerState::Failed { stage: Stage::Configure, reason, hint } => {
                (format!("server {server:?} cannot be used: {reason}"), hint.clone())
            }
            ServerState::Failed { stage, reason, hint } => {
                (format!("server {server:?} failed ({}): {reason}", stage.name()), hint.clone())
            }
            ServerState::NeedsAuth { hint } => {
                (format!("server {server:?} wants a login"), Some(hint.clone()))
            }
            ServerState::NeedsInput { inputs } => (
                format!("server {server:?} needs a value that only you can give: {}", inputs.join(", ")),
                Some("put it into a variable, and write ${NAME} in the file".to_owned()),
            ),
            ServerState::Untrusted { hint } => {
                (format!("server {server:?} is not approved"), Some(hint.clone()))
            }
            ServerState::Blocked { policy } => {
                (format!("server {server:?} is forbidden by the policy {policy}"), None)
            }
            ServerState::Disabled { by } => (
                format!("server {server:?} is switched off at {by}"),
                Some(format!("toolway enable {}", quoted(server, cfg!(windows)))),
            ),
            ServerState::Shadowed { by } => {
                (format!("this definition of server {server:?} is not used: that at {by} is"), None)
            }
            ServerState::Starting | ServerState::Connected | ServerState::Missing => {
                (format!("server {server:?} is {}", state.name()), None)
            }
        };
        Self { reason, hint, exit }
    }

    /// A server that could not be opened.
    pub(crate) fn open(server: &str, error: &OpenError) -> Self {
        let mut refusal = Self::state(server, &error.state());
        if error.detail.needs_auth {
            refusal.reason = format!("server {server:?} wants a login: {}", error.reason);
        }
        refusal
    }

    /// A request that has no result.
    pub(crate) fn client(server: &str, error: &ClientError) -> Self {
        let (exit, hint) = match error {
            ClientError::Failed(_) | ClientError::Refused(_) => (Exit::Ended, None),
            ClientError::Unanswered(failure) if failure.needs_auth() => (Exit::NotSignedIn, failure.hint()),
            ClientError::Unanswered(failure) => (Exit::NotStarted, failure.hint()),
            ClientError::Silent { .. } => {
                (Exit::NotStarted, Some("raise --timeout to wait longer".to_owned()))
            }
            ClientError::Lost(_) => (Exit::NotStarted, None),
        };
        Self { reason: format!("server {server:?}: {error}"), hint, exit }
    }

    /// The program was told to end.
    pub(crate) fn signal(signal: i32) -> Self {
        Self {
            reason: "interrupted".to_owned(),
            hint: None,
            exit: Exit::Signal(u8::try_from(signal).unwrap_or(0)),
        }
    }
}

/// The exit code for a server in this state.
pub(crate) fn exit_of(state: &ServerState) -> Exit {
    match state {
        ServerState::Starting | ServerState::Connected => Exit::Done,
        ServerState::Untrusted { .. } => Exit::Untrusted,
        ServerState::NeedsAuth { .. } => Exit::NotSignedIn,
        ServerState::Failed { stage: Stage::Configure, .. }
        | ServerState::NeedsInput { .. }
        | ServerState::Blocked { .. }
        | ServerState::Disabled { .. }
        | ServerState::Shadowed { .. }
        | ServerState::Missing => Exit::Usage,
        ServerState::Failed { .. } => Exit::NotStarted,
    }
}

impl From<UsageError> for Refusal {
    fn from(error: UsageError) -> Self {
        Self { reason: error.to_string(), hint: error.hint(), exit: Exit::Usage }
    }
}

impl From<Wrong> for Refusal {
    fn from(wrong: Wrong) -> Self {
        Self { reason: wrong.reason, hint: wrong.hint, exit: Exit::Usage }
    }
}

impl From<std::io::Error> for Refusal {
    /// Stdout. Whoever reads our output may close it: that is no failure.
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self { reason: String::new(), hint: None, exit: Exit::Done };
        }
        Self { reason: format!("cannot write to stdout: {error}"), hint: None, exit: Exit::Ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_exit_code() {
        let text = String::new;
        let failed = |stage| ServerState::Failed { stage, reason: text(), hint: None };
        let states = [
            (ServerState::Connected, 0),
            (failed(Stage::Configure), 2),
            (ServerState::NeedsInput { inputs: Vec::new() }, 2),
            (ServerState::Blocked { policy: text() }, 2),
            (ServerState::Disabled { by: text() }, 2),
            (ServerState::Untrusted { hint: text() }, 3),
            (failed(Stage::Resolve), 4),
            (failed(Stage::Spawn), 4),
            (failed(Stage::Connect), 4),
            (failed(Stage::Initialize), 4),
            (failed(Stage::List), 4),
            (failed(Stage::Run), 4),
            (ServerState::NeedsAuth { hint: text() }, 5),
        ];
        for (state, code) in states {
            assert_eq!(exit_of(&state).code(), code, "{state:?}");
        }
    }

    #[test]
    fn failed_requests_have_the_exit_code_of_their_cause() {
        let failure = |data: Option<&str>| toolway_transport::Failure {
            code: -32000,
            message: "m".to_owned(),
            data: data.map(str::to_owned),
        };
        for (error, code) in [
            (ClientError::Failed(failure(Some("{\"status\":401}"))), 1),
            (ClientError::Unanswered(failure(None)), 4),
            (ClientError::Unanswered(failure(Some("{\"status\":401}"))), 5),
            (ClientError::Unanswered(failure(Some("{\"status\":500}"))), 4),
            (ClientError::Unanswered(failure(Some("{\"needs_auth\":true,\"hint\":\"run: x\"}"))), 5),
            (ClientError::Unanswered(failure(Some("{\"status\":401,\"needs_auth\":false}"))), 4),
            (ClientError::Silent { method: "tools/call".to_owned(), seconds: 1 }, 4),
            (ClientError::Lost("gone".to_owned()), 4),
            (ClientError::Refused("too large".to_owned()), 1),
        ] {
            assert_eq!(Refusal::client("s", &error).exit.code(), code, "{error:?}");
        }
    }
}
