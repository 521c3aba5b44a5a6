//! The fake server on stdin and stdout.

use std::fs::File;
use std::io::{self, BufRead as _, Write};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::json;

use super::{Fake, Port};
use crate::message::Message;
use crate::script::{Eof, Step, Template, Values};

type Stdout = Arc<Mutex<Option<File>>>;

/// Writes to stdout, message by message.
struct StdioPort {
    out: Stdout,
    pieces: usize,
    batch: Option<Batch>,
}

/// The answers to one batch, until all of its members have been handled.
type Batch = Arc<Mutex<Vec<Vec<u8>>>>;

pub(super) fn serve(fake: &Arc<Fake>) -> Result<()> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let out: Stdout = Arc::new(Mutex::new(Some(stdout)));
    let port = |batch: Option<Batch>| Box::new(StdioPort { out: Arc::clone(&out), pieces: 0, batch });
    if let Some(test) = fake.config.test {
        let test = std::net::TcpStream::connect(test)?;
        fake.journal.start(&test, json!({ "role": "server" }))?;
        fake.obey(test, port(None));
    }
    if let Some(plan) = fake.plan(&["start".to_owned()]) {
        fake.run(&plan.steps, &Values::default(), port(None).as_mut())?;
    }
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        fake.journal.bytes("line", &line, json!({}));
        let text = line.trim_ascii();
        match Message::parse_line(text) {
            Err(_) if text.is_empty() => {}
            Err(_) => {
                let plan = fake.plan(&["invalid".to_owned()]).unwrap_or_default();
                fake.start(plan, Values::default(), port(None));
            }
            Ok(_) if text.starts_with(b"[") => batch(fake, text, &out, &port)?,
            Ok(_) => one(fake, text, port(None)),
        }
    }
    fake.journal.event("eof", json!({}));
    if let Some(plan) = fake.plan(&["eof".to_owned()]) {
        fake.start(plan, Values::default(), port(None));
    }
    match fake.script.settings.eof {
        Eof::Exit => {}
        Eof::Drain => fake.drain(),
        Eof::Ignore => loop {
            std::thread::park();
        },
    }
    fake.exit(0)
}

fn one(fake: &Arc<Fake>, text: &[u8], port: Box<StdioPort>) {
    let Ok(message) = Message::parse(text) else {
        return;
    };
    let plan = fake.plan_message(&message);
    let values = Values { line: text.to_vec(), count: plan.count, ..Values::default() };
    fake.start(plan, values, port);
}

fn batch(
    fake: &Arc<Fake>,
    text: &[u8],
    out: &Stdout,
    port: &dyn Fn(Option<Batch>) -> Box<StdioPort>,
) -> io::Result<()> {
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_slice(text)?;
    let answers = Batch::default();
    for item in items {
        one(fake, item.get().as_bytes(), port(Some(Arc::clone(&answers))));
    }
    let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    if !answers.is_empty() {
        let line = [b"[".as_slice(), &answers.join(&b','), b"]\n"].concat();
        with(out, |file| file.write_all(&line))?;
    }
    Ok(())
}

fn with(out: &Stdout, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    match out.as_mut() {
        Some(file) => write(file),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

impl StdioPort {
    fn write(&self, text: &Template, end: &[u8], values: &Values) -> io::Result<()> {
        with(&self.out, |file| {
            let mut out = Pieces { inner: file, size: self.pieces };
            text.write(values, &mut out)?;
            out.write_all(end)
        })
    }
}

impl Port for StdioPort {
    fn step(&mut self, step: &Step, values: &Values) -> io::Result<()> {
        match (step, &self.batch) {
            (Step::Send(text), Some(answers)) => {
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.push(text.render(values));
                Ok(())
            }
            (Step::Send(text), None) => self.write(text, b"\n", values),
            (Step::Raw(text), _) => self.write(text, b"", values),
            (Step::Pieces(size), _) => {
                self.pieces = *size;
                Ok(())
            }
            (Step::Close, _) => {
                *self.out.lock().unwrap_or_else(PoisonError::into_inner) = None;
                let null = File::options().write(true).open("/dev/null")?;
                Ok(rustix::stdio::dup2_stdout(null)?)
            }
            (Step::Never, _) => Ok(()),
            (other, _) => Err(io::Error::other(format!("not over stdio: {other:?}"))),
        }
    }

    fn finish(&mut self, _: &Values) -> io::Result<()> {
        Ok(())
    }
}

/// Writes at most `size` bytes at a time (0: whatever comes).
pub(super) struct Pieces<W> {
    pub(super) inner: W,
    pub(super) size: usize,
}

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = if self.size == 0 { bytes.len() } else { self.size };
        let piece = bytes.get(..size.min(bytes.len())).unwrap_or_default();
        let written = self.inner.write(piece)?;
        if self.size != 0 {
            self.inner.flush()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
