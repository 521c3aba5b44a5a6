//! What needs permission: asked on a terminal, denied without one, allowed by rules.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use toolway_testkit::SOON;

use crate::House;

fn script() -> Value {
    json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Done with it."}},
        {"when": {"user": "make it"}, "reply": {"calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}},
    ]})
}

#[test]
fn without_a_terminal_it_is_denied_and_the_flag_is_named() -> Result<()> {
    let house = House::new(&script())?;
    let made = house.rig.path().join("work/made");
    let told = house.run(&["make it"])?.ended(0)?;
    told.says(&[
        "denied: run touch made",
        "hint: nobody can be asked here (no terminal)",
        "--allow 'Shell(touch)'",
        "--yes",
    ])?;
    ensure!(!made.exists());
    let result = house.model.requests()[1].results().join("\n");
    ensure!(result.contains("Nobody can be asked"), "{result}");

    house.run(&["--allow", "Shell(touch)", "make it"])?.ended(0)?;
    ensure!(made.exists());
    std::fs::remove_file(&made)?;
    house.run(&["--yes", "make it"])?.ended(0)?;
    ensure!(made.exists());
    std::fs::remove_file(&made)?;
    house.run(&["--yes", "--deny", "Shell(touch)", "make it"])?.ended(0)?;
    ensure!(!made.exists(), "what is denied is denied, whatever else is said");
    house.run(&["--allow", "Sell(touch)", "make it"])?.ended(2)?.says(&["Sell(touch)", "--allow"])?;
    house.leave()
}

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
        let mut command = house.rig.command(house.run_words(words));
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
fn on_a_terminal_it_is_asked() -> Result<()> {
    let house = House::new(&script())?;
    let made = house.rig.path().join("work/made");
    let mut seat = Seat::new(&house, &["make it"])?;
    seat.sees("shell wants to run touch made")?;
    seat.sees("[y] once, [a] for this agent, [w] always,")?;
    ensure!(!made.exists());
    seat.types("y\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && seen.contains("Done with it.") && made.exists(), "{code:?} {seen}");

    std::fs::remove_file(&made)?;
    let mut seat = Seat::new(&house, &["make it"])?;
    seat.sees("[n] no")?;
    seat.types("use a file of another name\n")?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && !made.exists(), "{code:?} {seen}");
    let asked = house.model.requests();
    let result = asked.last().map(|asked| asked.results().join("\n")).unwrap_or_default();
    ensure!(result.contains("use a file of another name"), "{result}");
    house.leave()
}

#[test]
fn the_models_questions_are_put_to_the_person() -> Result<()> {
    let ask = json!({"name": "askQuestion", "arguments": {"question": "Which colour?", "options": ["red", "blue"]}});
    let house = House::new(&json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Good."}},
        {"when": {"user": "paint"}, "reply": {"calls": [ask]}},
    ]}))?;
    let mut seat = Seat::new(&house, &["paint"])?;
    seat.sees("Which colour?")?;
    seat.sees("  2. blue")?;
    seat.types("2\n")?;
    assert_eq!(seat.ends()?.0, Some(0));
    let results = house.model.requests()[1].results();
    ensure!(results == ["blue"], "{results:?}");
    house.run(&["paint"])?.ended(0)?;
    let results = house.model.requests()[3].results();
    ensure!(results[0].contains("Nobody can be asked"), "{results:?}");
    house.leave()
}
