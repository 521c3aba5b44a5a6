//! Owns the last look at what leaves for people: lines on stderr, reports on stdout, the message of a crash. What a
//! server gave for its caller does not come by here.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use toolway_secret::{Redactor, Secret, secret_name};

/// A variable with a shorter value may be a number or a word, whatever its name says.
const SHORTEST: usize = 8;
/// Names that end so tell where a secret is, and are none.
const PLACES: [&str; 7] = ["_FILE", "_PATH", "_DIR", "_SOCK", "_URL", "_HOST", "_ID"];

/// What is known until the process ends.
static KEPT: Mutex<Vec<Secret>> = Mutex::new(Vec::new());

/// Makes the secrets among our own variables known for the life of the process, since a child may inherit them, and has
/// crashes tell nothing of them.
pub(crate) fn guard() {
    let own = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let is_place = PLACES.iter().any(|end| name.ends_with(end)) || value.starts_with('/');
        (secret_name(&name) && !is_place && value.len() >= SHORTEST).then(|| Secret::in_use(value))
    });
    own.for_each(keep);
    std::panic::set_hook(Box::new(|crash| {
        let thread = std::thread::current();
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        say(format_args!("thread '{}' {crash}{trace}", thread.name().unwrap_or("?")));
    }));
}

/// Lets a secret be known until the process ends.
pub(crate) fn keep(secret: Secret) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(secret);
}

/// A line on stderr, without secrets; whoever reads it may be gone.
pub(crate) fn say(line: Arguments<'_>) {
    tell(&format!("{line}\n"));
}

/// Text on stderr, without secrets.
pub(crate) fn tell(text: &str) {
    let mut stderr = io::stderr().lock();
    stderr.write_all(Redactor::known().redact(text).as_bytes()).and_then(|()| stderr.flush()).ok();
}

/// A page for a person without the secrets in use.
pub(crate) fn page(text: &str) -> Cow<'_, str> {
    Redactor::values().redact(text)
}

/// A report as JSON without the secrets in use.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    Redactor::values().redact_json(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "CRASH_TOKEN";

    #[test]
    #[ignore = "the process that crashes, for the next test"]
    fn a_process_that_crashes() {
        guard();
        let value = std::env::var(NAME).unwrap();
        panic!("was sent {value:?}, which is {}", value.replace('/', "%2F"));
    }

    #[test]
    fn a_crash_tells_no_secret() {
        let secret = "of/the-crash \"quoted\" 271828";
        let crashed = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "border::tests::a_process_that_crashes", "--ignored", "--nocapture"])
            .env(NAME, secret)
            .env("RUST_BACKTRACE", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&crashed.stderr);
        assert!(!crashed.status.success() && said.contains("panicked at"), "{said}");
        assert!(said.contains("was sent \"[redacted]\", which is [redacted]"), "{said}");
        assert!(said.contains("border::tests"), "the trace is there: {said}");
        assert!(!said.contains("271828"), "{said}");
    }
}
