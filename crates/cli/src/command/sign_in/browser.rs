//! Owns how a login reaches the person: a browser that is opened, an address that is printed, an answer that is pasted.

use std::ffi::OsString;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, mpsc};
use toolway_agent::Machine;
use toolway_auth::Opener;
use toolway_transport::BoxFuture;
use url::Url;

use super::super::shell::Refusal;
use crate::show::safe;

/// The stack of the thread that reads what is pasted.
const STACK: usize = 128 << 10;

/// A person before this process.
#[derive(Debug)]
pub(in super::super) struct Person {
    name: String,
    /// The program that opens addresses, and what it needs of the environment it has.
    browser: Option<Vec<OsString>>,
    /// Lines that are pasted.
    lines: Option<Mutex<mpsc::Receiver<String>>>,
    /// Whether a browser was opened, where that is to be done once only.
    once: Option<AtomicBool>,
}

impl Person {
    /// Who may also paste the answer here.
    pub(super) fn at_terminal(name: &str, machine: &Machine, no_browser: bool) -> Result<Self, Refusal> {
        let browser = if no_browser { None } else { browser(machine) };
        let pastes = browser.is_none() || std::io::stdin().is_terminal();
        let lines = if pastes { Some(Mutex::new(pasted()?)) } else { None };
        Ok(Self { name: name.to_owned(), browser, lines, once: None })
    }

    /// Who has a browser alone: stdin belongs to somebody else. It is opened once: whoever said no, or was not there, is
    /// not shown one page after the other, and finds the address on stderr.
    pub(in super::super) fn with_browser(name: &str, machine: &Machine, no_browser: bool) -> Self {
        let browser = if no_browser { None } else { browser(machine) };
        Self { name: name.to_owned(), browser, lines: None, once: Some(AtomicBool::new(false)) }
    }
}

impl Opener for Person {
    fn show(&self, url: &Url) {
        let again = self.once.as_ref().is_some_and(|once| once.swap(true, Ordering::AcqRel));
        let browser = self.browser.as_deref().filter(|_| !again);
        let opened = browser.is_some_and(|browser| open(browser, url));
        let what = if opened { "If no browser opens, open" } else { "Open" };
        let mut text = format!("{what} this address to sign in to {}:\n\n  {url}\n\n", self.name);
        if self.lines.is_some() {
            text.push_str(
                "A browser on another machine ends at an address that does not load: paste that address here.\n",
            );
        }
        std::io::stderr().lock().write_all(safe(&text).as_bytes()).ok();
    }

    fn waits(&self) {
        let text = format!("Another process has begun to sign in to {}: waiting for it.\n", self.name);
        std::io::stderr().lock().write_all(safe(&text).as_bytes()).ok();
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            if let Some(lines) = &self.lines
                && let Some(line) = lines.lock().await.recv().await
            {
                return line;
            }
            std::future::pending().await
        })
    }
}

/// Lines of stdin. The thread ends with the process.
fn pasted() -> Result<mpsc::Receiver<String>, Refusal> {
    let (sender, receiver) = mpsc::channel(4);
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if !line.trim().is_empty() && sender.blocking_send(line).is_err() {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("pasted".to_owned()).stack_size(STACK).spawn(read);
    started.map_err(|error| Refusal::usage(format!("no thread: {error}")))?;
    Ok(receiver)
}

/// The program that opens addresses: `BROWSER`, else the desktop's. `None` where there is no desktop.
fn browser(machine: &Machine) -> Option<Vec<OsString>> {
    if let Some(set) = machine.var("BROWSER") {
        // A list, as manuals of programs that read it say; the first will do.
        let first = if cfg!(windows) { set } else { set.split(':').next().unwrap_or(set) };
        let words = shlex::split(first)?;
        return Some(words.into_iter().map(OsString::from).collect())
            .filter(|words: &Vec<OsString>| !words.is_empty());
    }
    let words: &[&str] = if cfg!(target_os = "macos") {
        &["open"]
    } else if cfg!(windows) {
        &["rundll32", "url.dll,FileProtocolHandler"]
    } else {
        let desktop = ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| machine.var(name).is_some());
        let wsl = machine.var("WSL_DISTRO_NAME").is_some();
        if !desktop && !wsl {
            return None;
        }
        &["xdg-open"]
    };
    Some(words.iter().map(OsString::from).collect())
}

/// Whether it was started. It is not waited for: some browsers stay.
fn open(browser: &[OsString], url: &Url) -> bool {
    let Some((program, args)) = browser.split_first() else { return false };
    let placed = args.iter().any(|arg| arg == "%s");
    let mut command = Command::new(program);
    command.args(args.iter().map(|arg| if arg == "%s" { OsString::from(url.as_str()) } else { arg.clone() }));
    if !placed {
        command.arg(url.as_str());
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // So that it is no zombie for as long as this runs.
            let wait = move || drop(child.wait());
            std::thread::Builder::new().name("browser".to_owned()).stack_size(STACK).spawn(wait).ok();
            true
        }
        Err(error) => {
            tracing::warn!(%error, program = %program.display(), "the browser cannot be opened");
            false
        }
    }
}
