//! Owns how a login reaches the person at a terminal: the browser, the address, the answer that is pasted.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use tokio::sync::{Mutex, mpsc};
use toolway_auth::Opener;
use toolway_transport::BoxFuture;
use url::Url;

use super::super::shell::Refusal;
use crate::compose::{Browser, Environment};
use crate::show::safe;

/// The stack of the thread that reads what is pasted.
const STACK: usize = 128 << 10;

/// A person before this process.
#[derive(Debug)]
pub(super) struct Person {
    name: String,
    browser: Browser,
    /// Lines that are pasted.
    lines: Option<Mutex<mpsc::Receiver<String>>>,
}

impl Person {
    /// Who may also paste the answer here.
    pub(super) fn at_terminal(name: &str, own: &Environment, no_browser: bool) -> Result<Self, Refusal> {
        let browser = Browser::new(name, !no_browser, |name| own.get(name).map(Into::into));
        let pastes = !browser.is_there() || std::io::stdin().is_terminal();
        let lines = if pastes { Some(Mutex::new(pasted()?)) } else { None };
        Ok(Self { name: name.to_owned(), browser, lines })
    }
}

impl Opener for Person {
    fn show(&self, url: &Url) {
        let opened = self.browser.open(url);
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
