//! What a person at a terminal sees: tables, pictures, progress, questions. The terminal is a real one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use toolway_testkit::SOON;

use crate::House;

/// The program at a terminal.
struct Seat {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Seat {
    fn new(house: &House, args: &[&str]) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?.into_string()?;
        let open = || File::options().read(true).write(true).open(&name);
        let mut command = house.rig.command(args.iter().copied());
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

    /// Waits until this is on the screen.
    fn sees(&mut self, text: &str) -> Result<()> {
        let end = Instant::now() + SOON;
        while !self.seen.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => bail!("{text:?} is not on the screen: {:?}", self.seen),
            }
        }
        Ok(())
    }

    fn types(&mut self, text: &str) -> Result<()> {
        Ok(self.keyboard.write_all(text.as_bytes())?)
    }

    /// The exit code, and all that was on the screen.
    fn ends(mut self) -> Result<(Option<i32>, String)> {
        while let Ok(piece) = self.screen.recv_timeout(Duration::from_secs(10)) {
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        let status = self.child.wait()?;
        Ok((status.code(), self.seen.replace("\r\n", "\n")))
    }
}

#[test]
fn rows_are_a_table_and_texts_steer_nothing() -> Result<()> {
    let house = House::new()?;
    let command = house.command(
        r#"on tools/call/rows -> answer {"content":[{"type":"text","text":"{\"rows\":[{\"name\":\"a\",\"size\":1},{\"name\":\"b\",\"size\":20}]}"}],"structuredContent":{"rows":[{"name":"a","size":1},{"name":"b","size":20}]}}
on tools/call/evil -> text a\u001b[2J\u009b1mb"#,
    )?;
    let (code, seen) = Seat::new(&house, &["call", "--command", &command, "rows"])?.ends()?;
    assert_eq!((code, seen.as_str()), (Some(0), "name  size\na        1\nb       20\n"));
    let (code, seen) = Seat::new(&house, &["call", "--command", &command, "evil"])?.ends()?;
    assert_eq!((code, seen.as_str()), (Some(0), "a\\x1b[2J\\u{9b}1mb\n"));
    let (code, seen) = Seat::new(&house, &["call", "--json", "--command", &command, "evil"])?.ends()?;
    ensure!(code == Some(0) && seen.contains(r#""a\u001b[2J\u009b1mb""#), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn a_terminal_that_can_shows_pictures() -> Result<()> {
    let house = House::new()?.with_variable("TERM", "xterm-kitty");
    let command = house.command(
        r#"on tools/call/t -> answer {"content":[{"type":"image","data":"{png:3000}","mimeType":"image/png"}]}"#,
    )?;
    let (code, seen) = Seat::new(&house, &["call", "--command", &command, "t"])?.ends()?;
    ensure!(code == Some(0) && seen.starts_with("\u{1b}_Ga=T,f=100,q=2,m="), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn progress_is_drawn_and_taken_away() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(
        r#"on tools/call/t
    send {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{token},"progress":3,"total":10,"message":"half\u001b[1m way"}}
    wait go
    text done"#,
    )?;
    let mut seat = Seat::new(&house, &["call", "--command", &command, "t"])?;
    seat.sees("\r\u{1b}[Kt: 3 of 10 (30%) half\\x1b[1m way")?;
    let mut server = house.rig.arrival()?;
    server.tell("arm go")?;
    let (code, seen) = seat.ends()?;
    assert_eq!(code, Some(0));
    ensure!(seen.ends_with("\r\u{1b}[Kdone\n"), "{seen:?}");
    house.leave()
}

const ASKS: &str = r#"on tools/call/t
    send {"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Name"},"age":{"type":"integer"}}}}}
    wait response:"q1"
    text went on"#;

#[test]
fn a_question_is_put_to_the_person() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(ASKS)?;
    let mut seat = Seat::new(&house, &["call", "--command", &command, "t"])?;
    let mut server = house.rig.arrival()?;
    seat.sees("Name (text, required): ")?;
    seat.types("Bo\n")?;
    seat.sees("age (whole number): ")?;
    seat.types("40\n")?;
    seat.sees("Send these answers? [Y/n] ")?;
    seat.types("y\n")?;
    server.wait_for(r#"{"action":"accept","content":{"name":"Bo","age":40}}"#, SOON)?;
    let (code, seen) = seat.ends()?;
    ensure!(code == Some(0) && seen.ends_with("went on\n"), "{code:?} {seen:?}");
    house.leave()
}

#[test]
fn the_end_of_input_declines_and_a_signal_ends_all() -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let mut house = House::new()?;
    let command = house.command(ASKS)?;
    let mut seat = Seat::new(&house, &["call", "--command", &command, "t"])?;
    let mut server = house.rig.arrival()?;
    seat.sees("Name (text, required): ")?;
    seat.types("\u{4}")?;
    server.wait_for(r#"{"action":"decline"}"#, SOON)?;
    assert_eq!(seat.ends()?.0, Some(0));

    let mut seat = Seat::new(&house, &["call", "--command", &command, "t"])?;
    let mut server = house.rig.arrival()?;
    seat.sees("Name (text, required): ")?;
    kill_process(Pid::from_raw(i32::try_from(seat.child.id())?).context("no pid")?, Signal::INT)?;
    assert_eq!(seat.ends()?.0, Some(130));
    server.wait_gone(SOON)?;
    house.leave()
}
