//! Owns what is known of the three standard streams: which are terminals, how wide, and which pictures they take.

use std::io::IsTerminal as _;

use super::graphics::Graphics;

/// The width that is assumed where nothing says it.
const WIDTH: usize = 100;

/// The standard streams as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// A person reads stdout.
    pub(crate) out: bool,
    /// A person reads stderr.
    pub(crate) err: bool,
    /// A person can be asked: stdin and stderr are terminals.
    pub(crate) asks: bool,
    /// Columns.
    pub(crate) width: usize,
    /// How pictures are put on stdout, if they can be.
    pub(crate) graphics: Option<Graphics>,
}

impl Terminal {
    /// The columns that there are at this moment.
    pub(crate) fn width_now(&self) -> usize {
        columns_of_stdout().filter(|width| *width > 0).unwrap_or(self.width)
    }

    /// As they are now; `variable` gives our own variables.
    pub(crate) fn now(variable: impl Fn(&str) -> Option<String>) -> Self {
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let columns = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        let width = columns.or_else(columns_of_stdout).filter(|width| *width >= 20).unwrap_or(WIDTH);
        let graphics = if out { Graphics::of(&variable) } else { None };
        Self { out, err, asks: err && std::io::stdin().is_terminal(), width, graphics }
    }
}

#[cfg(unix)]
fn columns_of_stdout() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(windows)]
fn columns_of_stdout() -> Option<usize> {
    None
}
