//! Owns the exit codes. They are documented in the README and tested.

use std::process::ExitCode;

use toolway_proxy::Ending;

use crate::border::say;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: what was asked was done; for a relay: the client closed.
    Done,
    /// 1: the upstream ended by itself, or something was not found, or a tool said that it failed.
    Ended,
    /// 2: the arguments, the environment, or a configuration are not right.
    Usage,
    /// 3: nobody has approved what is to be started.
    Untrusted,
    /// 4: the upstream could not be started or reached.
    NotStarted,
    /// 5: the server wants a login.
    NotSignedIn,
    /// 128 and the number of the signal that ended the program.
    Signal(u8),
}

impl Exit {
    /// The code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Ended => 1,
            Self::Usage => 2,
            Self::Untrusted => 3,
            Self::NotStarted => 4,
            Self::NotSignedIn => 5,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Ending> for Exit {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::ClientClosed => Self::Done,
            Ending::UpstreamEnded => Self::Ended,
            Ending::NotStarted => Self::NotStarted,
            Ending::NotSignedIn => Self::NotSignedIn,
            Ending::Signal(signal) => Self::Signal(u8::try_from(signal).unwrap_or(0)),
        }
    }
}

/// Says what is wrong with the arguments, or the help that was asked for.
pub(crate) fn of_parsing(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        crate::border::tell(&error.render().to_string());
        return Exit::Usage;
    }
    if error.print().is_err() { Exit::Usage } else { Exit::Done }
}

/// Says on stderr why the program cannot do what was asked.
pub(crate) fn complain(error: &dyn std::fmt::Display, hint: Option<&str>) {
    say(format_args!("error: {error}"));
    if let Some(hint) = hint {
        say(format_args!("hint: {hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_as_documented() {
        let codes = [
            Exit::Done,
            Exit::Ended,
            Exit::Usage,
            Exit::Untrusted,
            Exit::NotStarted,
            Exit::NotSignedIn,
            Exit::Signal(2),
            Exit::Signal(15),
        ];
        assert_eq!(codes.map(Exit::code), [0, 1, 2, 3, 4, 5, 130, 143]);
    }
}
