//! A program at a real terminal: what a person there types and sees. It knows no program.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::client::SOON;

/// How long nothing more is waited for at the end.
const QUIET: Duration = Duration::from_secs(10);

/// A program whose three streams are a terminal.
#[derive(Debug)]
pub struct Seat {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Seat {
    /// Starts it at a terminal of unknown width.
    pub fn new(command: Command) -> Result<Self> {
        Self::start(command, None)
    }

    /// Starts it at a terminal with that many columns.
    pub fn narrow(command: Command, columns: u16) -> Result<Self> {
        Self::start(command, Some(columns))
    }

    fn start(mut command: Command, columns: Option<u16>) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        if let Some(columns) = columns {
            tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
        }
        let name = ptsname(&master, Vec::new())?.into_string()?;
        let open = || File::options().read(true).write(true).open(&name);
        let child = command
            .stdin(Stdio::from(open()?))
            .stdout(Stdio::from(open()?))
            .stderr(Stdio::from(open()?))
            .spawn()?;
        // Its ends of the terminal are closed here, so that its end is the terminal's.
        drop(command);
        let keyboard = File::from(master);
        let mut read = keyboard.try_clone()?;
        let (piece, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // At the end of the last process a terminal gives an error.
            while let Ok(count) = read.read(&mut bytes) {
                if count == 0 || piece.send(bytes.get(..count).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, keyboard, screen, seen: String::new() })
    }

    /// Waits until this is on the screen, or was.
    pub fn sees(&mut self, text: &str) -> Result<()> {
        let end = Instant::now() + SOON;
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => bail!("{text:?} is not on the screen: {:?}", self.seen),
            }
        }
        Ok(())
    }

    /// The same of what comes after the first `mark`.
    pub fn sees_after(&mut self, mark: &str, text: &str) -> Result<()> {
        self.sees(mark)?;
        let end = Instant::now() + SOON;
        while !self.seen.split_once(mark).is_some_and(|(_, after)| after.contains(text)) {
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => bail!("{text:?} is not on the screen after {mark:?}: {:?}", self.seen),
            }
        }
        Ok(())
    }

    /// Types.
    pub fn types(&mut self, text: &str) -> Result<()> {
        Ok(self.keyboard.write_all(text.as_bytes())?)
    }

    /// What Ctrl-C does where the program has the terminal.
    pub fn interrupts(&self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).context("no pid")?;
        Ok(kill_process(pid, Signal::INT)?)
    }

    /// Waits for the end: the exit code, and all that was on the screen.
    pub fn ends(mut self) -> Result<(Option<i32>, String)> {
        while let Ok(piece) = self.screen.recv_timeout(QUIET) {
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        let status = self.child.wait()?;
        Ok((status.code(), self.seen.replace("\r\n", "\n")))
    }
}
