//! Owns the audit log: one JSON line for each call, without payloads, in files of the user alone. A thread of its own
//! writes, so that a slow disk holds no call up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;
use toolway_secret::Redactor;

use super::{CallRecord, ObserveError};

/// Lines that wait for the disk.
const QUEUE: usize = 4096;
/// Lines that are written at once.
const BATCH: u64 = 256;
/// Characters of one text from outside.
const MAX_TEXT: usize = 256;
/// What the end waits for.
const CLOSING: Duration = Duration::from_secs(2);

/// Where calls are written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// The file; older ones have `.1`, `.2` and so on behind their names.
    pub path: PathBuf,
    /// A file that would become larger than this is put aside; 10 MiB is a good measure.
    pub max_bytes: u64,
    /// How many older files are kept.
    pub keep: u32,
}

impl AuditConfig {
    /// Files of 10 MiB, five older ones.
    pub fn new(path: PathBuf) -> Self {
        Self { path, max_bytes: 10 << 20, keep: 5 }
    }
}

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Audit {
    lines: Mutex<Option<SyncSender<String>>>,
    dropped: Arc<AtomicU64>,
    ended: watch::Receiver<bool>,
}

impl Audit {
    /// Opens the file and starts the thread.
    pub(super) fn start(config: &AuditConfig) -> Result<Self, ObserveError> {
        let failed = |error: io::Error| {
            ObserveError::new(format!("cannot write the audit log {}", config.path.display()), &error)
        };
        let log = Log::open(config.clone()).map_err(failed)?;
        let (lines, received) = sync_channel(QUEUE);
        let (end, ended) = watch::channel(false);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        let run = move || {
            write_all(log, &received, &lost);
            end.send(true).ok();
        };
        std::thread::Builder::new().name("audit".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { lines: Mutex::new(Some(lines)), dropped, ended })
    }

    /// Lines that could not be written.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }

    pub(super) fn call(&self, call: &CallRecord<'_>, now: SystemTime) {
        let line = line(call, now);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes no more, and waits for what there is.
    pub(super) async fn close(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut ended = self.ended.clone();
        if timeout(CLOSING, ended.wait_for(|ended| *ended)).await.is_err() {
            tracing::warn!("the audit log is still being written");
        }
    }
}

/// One call as a line.
fn line(call: &CallRecord<'_>, now: SystemTime) -> String {
    // What is to be cut is looked through before that, since of a part of a secret nothing is known.
    let text = |text: &str| match text.char_indices().nth(MAX_TEXT) {
        Some(_) => Redactor::known().redact(text).chars().take(MAX_TEXT).collect::<String>(),
        None => text.to_owned(),
    };
    let mut line = json!({
        "time": timestamp(now),
        "session": call.session,
        "client": text(call.client),
        "server": text(call.server),
        "method": text(call.method),
        "target": text(call.target),
        "requestBytes": call.request_bytes,
        "responseBytes": call.response_bytes,
        "durationMs": (call.duration.as_secs_f64() * 1e6).round() / 1e3,
        "outcome": call.outcome.name(),
    });
    if let (Some(code), Some(line)) = (call.code, line.as_object_mut()) {
        line.insert("code".to_owned(), code.into());
    }
    let mut line = line.to_string();
    line.push('\n');
    line
}

/// `2026-11-30T14:05:06.789Z` (RFC 3339).
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Days to a date of the Gregorian calendar, in eras of 400 years that begin with March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, rest) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{rest:02}.{:03}Z", since.subsec_millis())
}

fn write_all(mut log: Log, lines: &Receiver<String>, dropped: &AtomicU64) {
    let mut failing = false;
    let mut batch = String::new();
    while let Ok(line) = lines.recv() {
        batch.clear();
        batch.push_str(&line);
        let mut count = 1;
        while count < BATCH
            && let Ok(line) = lines.try_recv()
        {
            batch.push_str(&line);
            count += 1;
        }
        let written = log.write(&Redactor::known().redact_json(&batch));
        if let Err(error) = &written {
            dropped.fetch_add(count, Ordering::Relaxed);
            if !failing {
                tracing::error!(file = %log.config.path.display(), %error, "the audit log cannot be written");
            }
        }
        failing = written.is_err();
    }
}

/// The file and its older ones.
#[derive(Debug)]
struct Log {
    config: AuditConfig,
    file: File,
    bytes: u64,
}

impl Log {
    fn open(config: AuditConfig) -> io::Result<Self> {
        let file = open(&config.path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { config, file, bytes })
    }

    /// Appends whole lines in one write, so that several processes can share the file.
    fn write(&mut self, lines: &str) -> io::Result<()> {
        if !is_at(&self.file, &self.config.path) {
            // Another process has put it aside, or somebody has removed it.
            *self = Self::open(self.config.clone())?;
        }
        self.bytes = self.file.metadata()?.len();
        if self.bytes > 0 && self.bytes + lines.len() as u64 > self.config.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(lines.as_bytes())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let older = |number: u32| {
            let mut name = self.config.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        if self.config.keep == 0 {
            fs::remove_file(&self.config.path)?;
        }
        for number in (0..self.config.keep).rev() {
            let from = if number == 0 { self.config.path.clone() } else { older(number) };
            match fs::rename(&from, older(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        *self = Self::open(self.config.clone())?;
        Ok(())
    }
}

/// Private whatever the umask, and also when it was there before.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    // Opening a pipe would wait for its reader.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("it is no file"));
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut permissions = file.metadata()?.permissions();
        if permissions.mode() & 0o077 != 0 {
            permissions.set_mode(0o600);
            file.set_permissions(permissions)?;
        }
    }
    Ok(file)
}

/// What stands under the name is what is open.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(open), Ok(there)) = (file.metadata(), fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests;
