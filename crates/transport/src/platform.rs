//! The few things that differ between operating systems, behind the same names: process tables, signals that
//! check whom they reach, and what happens when a parent dies. Knows no pipes and no messages.

/// Nothing in it needs macOS, so its tests run on Linux too.
#[cfg(all(test, target_os = "linux"))]
#[path = "platform/macos.rs"]
#[expect(dead_code, reason = "Linux has its own")]
mod elsewhere;
#[cfg(target_os = "linux")]
#[path = "platform/linux.rs"]
mod system;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "platform/macos.rs"]
mod system;
#[cfg(windows)]
#[path = "platform/windows.rs"]
mod system;

pub(crate) use system::*;

/// The kinds of operating system whose conventions differ. Decisions take it as an argument, so that all of
/// them can be tested on one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux.
    Linux,
    /// macOS, and what else is a Unix.
    Macos,
    /// Windows.
    Windows,
}

impl Platform {
    /// The one this program was built for.
    pub const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "linux") {
        Self::Linux
    } else {
        Self::Macos
    };

    /// Whether names of environment variables and files ignore case here.
    pub const fn ignores_case(self) -> bool {
        matches!(self, Self::Windows)
    }
}
