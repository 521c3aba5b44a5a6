//! Owns how a login reaches the person: its address on stderr, and the browser of their desktop. Knows no OAuth.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use toolway_auth::Opener;
use url::Url;

use crate::show::safe;

/// Shows addresses to the person.
#[derive(Debug)]
pub(crate) struct Browser {
    /// What is signed in to, for people.
    server: String,
    /// Programs that open an address, the first that starts is taken. None: there is no desktop, or it is not wanted.
    programs: Vec<Vec<OsString>>,
    opened: AtomicBool,
}

impl Browser {
    /// With the desktop's browser, unless it is not wanted. `variable` looks into the environment.
    pub(crate) fn new(
        server: impl Into<String>,
        wanted: bool,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let programs = if wanted { programs(variable) } else { Vec::new() };
        Self { server: server.into(), programs, opened: AtomicBool::new(false) }
    }

    /// There is a program that could open an address.
    pub(crate) fn is_there(&self) -> bool {
        !self.programs.is_empty()
    }

    /// Opens the address; whether a program was started for that.
    pub(crate) fn open(&self, url: &Url) -> bool {
        // Whoever said no, or was not there, is not shown one tab after the other: the address stands on stderr.
        if self.programs.is_empty() || self.opened.swap(true, Ordering::AcqRel) {
            return false;
        }
        for words in &self.programs {
            let Some((program, arguments)) = words.split_first() else { continue };
            let mut command = Command::new(program);
            command.args(arguments).arg(url.as_str());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            match command.spawn() {
                Ok(mut child) => {
                    let waiting = std::thread::Builder::new().name("browser".to_owned()).stack_size(64 << 10);
                    // Nothing is to be done with how it ends, but that no dead process stays.
                    if let Err(error) = waiting.spawn(move || child.wait()) {
                        tracing::debug!(%error, "nobody waits for the browser");
                    }
                    return true;
                }
                Err(error) => tracing::debug!(%error, program = %program.display(), "no browser"),
            }
        }
        false
    }
}

impl Opener for Browser {
    fn show(&self, url: &Url) {
        // The address holds what the redactor of logs takes out.
        let text = format!("toolway: to sign in to {}, open {url}", safe(&self.server));
        writeln!(std::io::stderr().lock(), "{text}").ok();
        self.open(url);
    }

    fn waits(&self) {
        let text = format!("toolway: another process signs in to {}: waiting for it", safe(&self.server));
        writeln!(std::io::stderr().lock(), "{text}").ok();
    }
}

/// What opens an address here, best first: `BROWSER`, a list of commands, then the desktop's own way.
fn programs(variable: impl Fn(&str) -> Option<OsString>) -> Vec<Vec<OsString>> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let chosen = set("BROWSER").and_then(|value| value.into_string().ok()).unwrap_or_default();
    let words = |command: &str| -> Option<Vec<OsString>> {
        let words = if cfg!(windows) { vec![command.to_owned()] } else { shlex::split(command)? };
        // `%s` stands for the address, which comes last anyway.
        let words: Vec<OsString> = words.into_iter().filter(|word| word != "%s").map(Into::into).collect();
        (!words.is_empty()).then_some(words)
    };
    let separator = if cfg!(windows) { ';' } else { ':' };
    let mut all: Vec<Vec<OsString>> = chosen.split(separator).filter_map(words).collect();
    let own: Option<&[&str]> = if cfg!(target_os = "macos") {
        Some(&["open"])
    } else if cfg!(windows) {
        // Without a shell, which would read the ampersands of the address.
        Some(&["rundll32", "url.dll,FileProtocolHandler"])
    } else {
        let desktop = set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some();
        desktop.then_some(&["xdg-open"])
    };
    all.extend(own.map(|words| words.iter().map(OsString::from).collect()));
    all
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::programs;

    #[test]
    fn the_persons_choice_comes_before_the_desktops_and_without_either_there_is_none() {
        let found = |pairs: &[(&str, &str)]| {
            let of = |name: &str| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| value.into());
            let words = programs(of).into_iter();
            words
                .map(|words| {
                    words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&[("DISPLAY", "")]), [""; 0]);
        assert_eq!(found(&[("WAYLAND_DISPLAY", "wayland-0")]), ["xdg-open"]);
        assert_eq!(
            found(&[("BROWSER", "firefox --new-tab %s:w3m"), ("DISPLAY", ":0")]),
            ["firefox --new-tab", "w3m", "xdg-open"]
        );
        assert_eq!(found(&[("BROWSER", "'unclosed")]), [""; 0]);
    }
}
