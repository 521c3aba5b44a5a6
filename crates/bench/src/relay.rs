//! Yardsticks over stdio: what the least possible front costs on this machine. They have no supervision, no limits
//! and no errors, on purpose.
//!
//! * `relay`: bytes, read and written 64 KiB at a time, with no look at the content;
//! * `relay --splice`: bytes that the kernel moves between the pipes;
//! * `relay --frame`: whole lines, with id and method found and the characters of each response counted.

use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::SpliceFlags;

use crate::{json, sys};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Copy,
    Splice,
    Frame,
}

fn splice(from: impl AsFd, to: impl AsFd) {
    loop {
        let moved =
            retry_on_intr(|| rustix::pipe::splice(&from, None, &to, None, 1 << 20, SpliceFlags::MOVE));
        match moved {
            Err(Errno::INVAL) => return sys::copy(from, to), // not a pipe
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Finds id and method of a line, and its characters if asked.
fn look(line: &[u8], count: bool) -> usize {
    let keys = json::fields(line).filter(|(key, _)| *key == b"id" || *key == b"method").count();
    // Every byte that does not continue a character begins one.
    keys + if count { line.iter().filter(|c| (**c & 0xC0) != 0x80).count() } else { 0 }
}

fn frame(from: impl AsFd, to: impl AsFd, count: bool) {
    let mut buf: Vec<u8> = Vec::with_capacity(1 << 16);
    let mut scanned = 0;
    let mut seen = 0usize;
    while sys::read_more(&from, &mut buf, 1 << 16).is_ok_and(|n| n > 0) {
        let mut end = 0;
        while let Some(k) = memchr::memchr(b'\n', &buf[scanned..]) {
            seen += look(&buf[end..scanned + k], count);
            end = scanned + k + 1;
            scanned = end;
        }
        scanned = buf.len();
        if end > 0 {
            if !sys::write_all(&to, &buf[..end]) {
                break;
            }
            buf.drain(..end);
            scanned -= end;
            if buf.capacity() > 4 << 20 && buf.is_empty() {
                buf = Vec::with_capacity(1 << 16);
            }
        }
    }
    std::hint::black_box(seen);
}

fn pump(mode: Mode, from: impl AsFd, to: impl AsFd, count: bool) {
    match mode {
        Mode::Copy => sys::copy(from, to),
        Mode::Splice => splice(from, to),
        Mode::Frame => frame(from, to, count),
    }
}

/// Runs the command behind two pumps, and ends with its exit code.
pub(crate) fn run(mode: Mode, command: &[String]) -> anyhow::Result<()> {
    let (program, args) = command.split_first().context("no command after --")?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let (to_child, from_child) = (child.stdin.take(), child.stdout.take());
    let (to_child, from_child) = to_child.zip(from_child).context("no pipes to the child")?;
    std::thread::Builder::new().stack_size(64 << 10).spawn(move || pump(mode, stdin(), to_child, false))?;
    pump(mode, from_child, stdout(), true);
    sys::quit(child.wait().ok().and_then(|status| status.code()).unwrap_or(1))
}
