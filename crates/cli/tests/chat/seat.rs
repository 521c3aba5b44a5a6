//! What a person at a terminal sees. The terminal is a real one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use toolway_testkit::SOON;

use crate::{House, calls};

/// The program at a terminal.
struct Seat {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Seat {
    fn new(house: &House, words: &[&str]) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?.into_string()?;
        let open = || File::options().read(true).write(true).open(&name);
        let mut command = house.rig.command(house.words(words));
        let child = command
            .stdin(Stdio::from(open()?))
            .stdout(Stdio::from(open()?))
            .stderr(Stdio::from(open()?))
            .spawn()?;
        drop(command);
        let keyboard = File::from(master);
        let mut read = keyboard.try_clone()?;
        let (piece, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = read.read(&mut bytes) {
                if count == 0 || piece.send(bytes.get(..count).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, keyboard, screen, seen: String::new() })
    }

    fn sees(&mut self, text: &str) -> Result<()> {
        let end = Instant::now() + SOON;
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => bail!("{text:?} is not on the screen: {:?}", self.seen),
            }
        }
        Ok(())
    }

    fn types(&mut self, text: &str) -> Result<()> {
        Ok(self.keyboard.write_all(text.as_bytes())?)
    }

    fn ends(mut self) -> Result<(Option<i32>, String)> {
        while let Ok(piece) = self.screen.recv_timeout(Duration::from_secs(10)) {
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        let status = self.child.wait()?;
        Ok((status.code(), self.seen.replace("\r\n", "\n")))
    }
}

#[test]
fn answers_are_markdown_unless_colours_are_unwanted() -> Result<()> {
    let reply = json!({"replies": [{"text": "# Top\n- **one**\u{1b}[2J\n"}]});
    let house = House::new(&reply)?;
    let mut seat = Seat::new(&house, &[])?;
    seat.sees("> ")?;
    seat.types("hi\n")?;
    seat.sees("• \u{1b}[1mone\u{1b}[0m\\x1b[2J")?;
    seat.types("\u{4}")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && seen.contains("\u{1b}[1m\u{1b}[4mTop\u{1b}[0m"), "{code:?} {seen:?}");
    house.leave()?;

    let house = House::new(&reply)?.with_variable("NO_COLOR", "1");
    let mut seat = Seat::new(&house, &[])?;
    seat.types("hi\n")?;
    seat.sees("# Top\r\n- **one**\\x1b[2J")?;
    seat.types("/quit\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && !seen.contains('\u{1b}'), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn the_person_is_asked_and_answers() -> Result<()> {
    let house = House::new(&calls(
        "host__ask",
        &json!({"question": "Tea or coffee?", "options": ["tea", "coffee"]}),
    ))?;
    let mut seat = Seat::new(&house, &[])?;
    seat.sees("> ")?;
    seat.types("go\n")?;
    seat.sees("  2. coffee")?;
    seat.types("2\n")?;
    seat.sees("That is it.")?;
    seat.types("/quit\n")?;
    assert_eq!(seat.ends()?.0, Some(0));
    let result = house.model.requests()[1].results().join("");
    ensure!(result.contains("coffee"), "{result}");
    house.leave()
}

#[test]
fn the_editor_has_the_terminal_and_a_change_is_told() -> Result<()> {
    let house = House::new(&calls("host__open_in_editor", &json!({"path": "draft.txt"})))?;
    let editor = "sh -c 'read line; echo \"$line\" > \"$0\"'";
    let house = house.with_variable("EDITOR", editor);
    let mut seat = Seat::new(&house, &[])?;
    seat.sees("> ")?;
    seat.types("go\n")?;
    seat.sees("open_in_editor")?;
    seat.types("typed in the editor\n")?;
    seat.sees("That is it.")?;
    seat.types("/quit\n")?;
    assert_eq!(seat.ends()?.0, Some(0));
    assert_eq!(std::fs::read_to_string(house.rig.path().join("work/draft.txt"))?, "typed in the editor\n");
    let result = house.model.requests()[1].results().join("");
    ensure!(result.contains("the user changed"), "{result}");
    house.leave()
}

#[test]
fn two_interrupts_in_a_row_end_it() -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let house = House::new(&json!({"replies": [{"text": "Yes."}]}))?;
    let mut seat = Seat::new(&house, &[])?;
    seat.sees("> ")?;
    let Some(pid) = Pid::from_raw(i32::try_from(seat.child.id())?) else { bail!("no pid") };
    kill_process(pid, Signal::INT)?;
    seat.sees("Ctrl-C once more, or /quit, ends the chat")?;
    kill_process(pid, Signal::INT)?;
    assert_eq!(seat.ends()?.0, Some(130));
    house.leave()
}
