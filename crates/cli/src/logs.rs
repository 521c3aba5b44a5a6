//! Owns the logs: to stderr only, with secrets taken out.

use std::io::{self, Write};

use toolway_secret::Redactor;
use tracing::level_filters::LevelFilter;

/// Starts logging at this level.
pub(crate) fn start(level: LevelFilter) {
    if level == LevelFilter::OFF {
        return;
    }
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_writer(|| Redacted)
        .finish();
    // A second start in one process changes nothing.
    tracing::subscriber::set_global_default(subscriber).ok();
}

/// One line a call, as the subscriber writes it.
struct Redacted;

impl Write for Redacted {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let clean = Redactor::known().redact(&text);
        io::stderr().lock().write_all(format!("toolway: {}", clean.trim_start()).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
