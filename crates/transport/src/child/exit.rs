//! How a process ended, and how that is said to people.

use std::fmt;
use std::process::ExitStatus;

/// How an upstream ended. [`fmt::Display`] completes a sentence: "the server" + "exited with code 7".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code. Windows: the 32-bit code read as signed.
    Code(i32),
    /// A signal ended it (Unix).
    Signal(i32),
    /// It is gone, but the system would not say how.
    Unknown,
}

impl Exit {
    /// Whether it exited by itself and reported success.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    #[cfg(unix)]
    pub(crate) fn from_status(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        status.signal().map(Self::Signal).or(status.code().map(Self::Code)).unwrap_or(Self::Unknown)
    }

    #[cfg(windows)]
    pub(crate) fn from_status(status: ExitStatus) -> Self {
        status.code().map_or(Self::Unknown, Self::Code)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // NTSTATUS values such as 0xc0000005 are known by their hexadecimal spelling only.
            Self::Code(code) if *code < 0 => write!(f, "exited with code {:#010x}", code.cast_unsigned()),
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was ended by {name}"),
                None => write!(f, "was ended by signal {signal}"),
            },
            Self::Unknown => f.write_str("ended"),
        }
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    signal_hook::low_level::signal_name(signal)
}

#[cfg(windows)]
fn signal_name(_signal: i32) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_read_as_the_end_of_a_sentence() {
        let table = [
            (Exit::Code(0), "exited with code 0"),
            (Exit::Code(7), "exited with code 7"),
            (Exit::Code(-1_073_741_819), "exited with code 0xc0000005"),
            (Exit::Signal(99), "was ended by signal 99"),
            (Exit::Unknown, "ended"),
        ];
        for (exit, text) in table {
            assert_eq!(exit.to_string(), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn signals_are_named() {
        assert_eq!(Exit::Signal(9).to_string(), "was ended by SIGKILL");
        assert_eq!(Exit::Signal(15).to_string(), "was ended by SIGTERM");
        assert_eq!(Exit::Signal(11).to_string(), "was ended by SIGSEGV");
    }
}
