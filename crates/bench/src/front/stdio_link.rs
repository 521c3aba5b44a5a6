//! The client's side of a stdio front: lines over non-blocking pipes, reading and writing at once, so that neither
//! side can block the other. Knows lines, not what they mean.

use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::Got;
use crate::sys;

/// One line of which only the ends were kept.
#[derive(Debug, Default)]
pub(crate) struct LongLine {
    pub(crate) head: Vec<u8>,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct StdioLink {
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    out: Vec<u8>,
    written: usize,
    buf: Vec<u8>,
    start: usize,
    scanned: usize,
    ended: bool,
}

fn nonblocking(fd: impl std::os::fd::AsFd) -> anyhow::Result<()> {
    let flags = fcntl_getfl(&fd)?;
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK).context("O_NONBLOCK")
}

impl StdioLink {
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout) -> anyhow::Result<Self> {
        nonblocking(&stdin)?;
        nonblocking(&stdout)?;
        Ok(Self {
            stdin: Some(stdin),
            stdout,
            out: vec![],
            written: 0,
            buf: Vec::with_capacity(1 << 16),
            start: 0,
            scanned: 0,
            ended: false,
        })
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Writes what the pipe takes now.
    pub(super) fn flush(&mut self) {
        if let Some(stdin) = &self.stdin {
            while self.written < self.out.len() {
                match rustix::io::write(stdin, &self.out[self.written..]) {
                    Ok(n) => self.written += n,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return,
                    Err(_) => break,
                }
            }
        }
        self.out.clear();
        self.written = 0;
    }

    /// Puts one line behind what is to be written.
    pub(super) fn queue(&mut self, message: &[u8]) {
        self.out.extend_from_slice(message);
        self.out.push(b'\n');
    }

    pub(super) fn send(&mut self, message: &[u8]) {
        self.queue(message);
        self.flush();
    }

    /// A line that has arrived whole; empty ones are passed over.
    pub(super) fn take_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let end = self.scanned + memchr::memchr(b'\n', &self.buf[self.scanned..])?;
            let line = if self.start == 0 && end + 1 == self.buf.len() {
                let mut line = std::mem::replace(&mut self.buf, Vec::with_capacity(1 << 16));
                line.truncate(end);
                self.scanned = 0;
                line
            } else {
                let line = self.buf[self.start..end].to_vec();
                self.start = end + 1;
                self.scanned = end + 1;
                if self.start == self.buf.len() {
                    self.buf.clear();
                    self.start = 0;
                    self.scanned = 0;
                }
                line
            };
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }

    /// The next line, by then.
    pub(super) fn receive(&mut self, deadline: Instant) -> Got {
        loop {
            if let Some(line) = self.take_line() {
                return Got::Message(line);
            }
            self.scanned = self.buf.len();
            if self.ended {
                return Got::Closed;
            }
            if self.start > 0 {
                self.buf.drain(..self.start);
                self.scanned -= self.start;
                self.start = 0;
            }
            if !self.exchange(deadline) {
                return Got::Timeout;
            }
        }
    }

    /// The next line with everything but its first 64 KiB counted and thrown away.
    pub(crate) fn receive_long(&mut self, deadline: Instant) -> Result<LongLine, Got> {
        let mut line = LongLine::default();
        loop {
            let rest = &self.buf[self.start..];
            let end = memchr::memchr(b'\n', rest);
            let piece = &rest[..end.unwrap_or(rest.len())];
            let keep = piece.len().min((1 << 16) - line.head.len());
            line.head.extend_from_slice(&piece[..keep]);
            line.bytes += piece.len() as u64;
            if let Some(end) = end {
                self.start += end + 1;
                self.scanned = self.start;
                return Ok(line);
            }
            self.buf.clear();
            self.start = 0;
            self.scanned = 0;
            if self.ended {
                return Err(Got::Closed);
            }
            if !self.exchange(deadline) {
                return Err(Got::Timeout);
            }
        }
    }

    /// Waits for the pipes once, and reads and writes what they allow; false when the time is over.
    fn exchange(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let seconds = i64::try_from(left.as_secs()).unwrap_or(60).min(60);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() };
        let from = PollFd::new(&self.stdout, PollFlags::IN);
        let (readable, writable) = match &self.stdin {
            Some(stdin) if self.written < self.out.len() => {
                let mut fds = [from, PollFd::new(stdin, PollFlags::OUT)];
                poll(&mut fds, Some(&timeout)).ok();
                (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
            }
            _ => {
                let mut fds = [from];
                poll(&mut fds, Some(&timeout)).ok();
                (!fds[0].revents().is_empty(), false)
            }
        };
        if writable {
            self.flush();
        }
        if readable {
            let room = if self.buf.len() > 1 << 18 { 1 << 20 } else { 1 << 16 };
            match sys::read_more(&self.stdout, &mut self.buf, room) {
                Ok(0) => self.ended = true,
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(_) => self.ended = true,
            }
        }
        true
    }
}
