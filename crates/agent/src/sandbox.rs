//! Owns the box that commands and servers run in: what may be written, whether there is a network, and how the system
//! is made to hold them to it. It knows no tools and no models.

mod command;
mod config;
mod landlock;

use std::path::PathBuf;

pub use command::{SANDBOX_COMMAND, run_sandboxed};
pub use config::{SandboxConfig, SandboxMode};

/// What is to hold commands. [`Sandbox::none`] holds nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    means: Means,
    rules: Rules,
}

/// By what they are held.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Means {
    /// By nothing.
    Nothing,
    /// By bubblewrap at this path.
    Bubblewrap(PathBuf),
    /// By Landlock of the kernel.
    Landlock,
}

/// What they are held to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Rules {
    /// Folders that may be written.
    writable: Vec<PathBuf>,
    /// Within those, what may not be.
    protected: Vec<PathBuf>,
    /// Whether there is a network.
    network: bool,
}
