//! Owns the commands that an agent runs through us: their processes, what they wrote, and their end. Asks nobody for
//! permission, and knows no files.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use toolway_transport::{Child, ChildConfig, Exit};

/// The most terminals of a session at a time.
const MOST: usize = 16;
/// What is kept of an output where the agent names no limit, in bytes.
const KEPT: usize = 1 << 20;
/// How long what it wrote last is waited for once it has ended.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(1);
/// Read at once.
const PIECE: usize = 16 << 10;

/// A piece of output, for whoever watches.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) terminal: String,
    pub(super) stream: &'static str,
    pub(super) text: String,
}

/// All terminals of a session.
#[derive(Debug)]
pub(super) struct Terminals {
    open: Mutex<BTreeMap<String, Arc<Terminal>>>,
    /// What is started takes its place before it is there: many may be asked for at once.
    places: Arc<Semaphore>,
    count: std::sync::atomic::AtomicU64,
    news: mpsc::Sender<Written>,
}

#[derive(Debug)]
pub(super) struct Terminal {
    child: Arc<Child>,
    kept: Mutex<Kept>,
    exit: watch::Receiver<Option<Exit>>,
    _place: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Kept {
    bytes: VecDeque<u8>,
    most: usize,
    cut: bool,
}

impl Kept {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend(piece);
        let over = self.bytes.len().saturating_sub(self.most);
        if over > 0 {
            self.cut = true;
            self.bytes.drain(..over);
            // Not in the middle of a character.
            while self.bytes.front().is_some_and(|byte| byte & 0xc0 == 0x80) {
                self.bytes.pop_front();
            }
        }
    }
}

impl Terminal {
    /// What it wrote, and whether the beginning is missing.
    pub(super) fn output(&self) -> (String, bool) {
        let mut kept = lock(&self.kept);
        let cut = kept.cut;
        (String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned(), cut)
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Unknown),
            Err(_) => Exit::Unknown,
        }
    }

    /// Ends it and all that it started.
    pub(super) async fn kill(&self) {
        let child = Arc::clone(&self.child);
        tokio::task::spawn_blocking(move || child.kill_all()).await.ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Terminals {
    /// None yet. What they write is told as well to whoever has the other end, as far as that keeps up.
    pub(super) fn new() -> (Self, mpsc::Receiver<Written>) {
        let (news, written) = mpsc::channel(256);
        let places = Arc::new(Semaphore::new(MOST));
        (Self { open: Mutex::default(), places, count: std::sync::atomic::AtomicU64::new(0), news }, written)
    }

    /// Starts a command. The environment of the configuration is the command's whole one.
    pub(super) async fn create(&self, config: ChildConfig, limit: Option<u64>) -> Result<String, String> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| format!("{MOST} terminals are open: release some of them"))?;
        let spawned = tokio::task::spawn_blocking(move || Child::spawn(&config)).await;
        let mut child = spawned.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        drop(child.take_stdin());
        let (stdout, stderr) = (child.take_stdout(), child.take_stderr());
        let number = self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let id = format!("term-{number}");
        let most = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(KEPT).min(KEPT);
        let kept = Mutex::new(Kept { bytes: VecDeque::new(), most, cut: false });
        let (ended, exit) = watch::channel(None);
        let terminal = Arc::new(Terminal { child: Arc::new(child), kept, exit, _place: place });
        let (reading, all_read) = std::sync::mpsc::channel::<()>();
        if let Some(stdout) = stdout {
            self.follow(&id, Arc::clone(&terminal), stdout, "stdout", reading.clone());
        }
        if let Some(stderr) = stderr {
            self.follow(&id, Arc::clone(&terminal), stderr, "stderr", reading.clone());
        }
        drop(reading);
        let child = Arc::clone(&terminal.child);
        // It ends when the process has ended, which killing it makes sure of.
        drop(tokio::task::spawn_blocking(move || {
            let exit = child.wait();
            // Its end is told after all that it wrote. Who still holds its pipes is not it.
            all_read.recv_timeout(LAST_WORDS).ok();
            ended.send_replace(Some(exit));
        }));
        lock(&self.open).insert(id.clone(), terminal);
        Ok(id)
    }

    fn follow(
        &self,
        id: &str,
        terminal: Arc<Terminal>,
        mut source: impl Read + Send + 'static,
        stream: &'static str,
        reading: std::sync::mpsc::Sender<()>,
    ) {
        let (id, news) = (id.to_owned(), self.news.clone());
        drop(tokio::task::spawn_blocking(move || {
            let _until_read = reading;
            let mut buffer = vec![0; PIECE];
            // The beginning of a character whose end is still to come.
            let mut begun = Vec::new();
            loop {
                let read = match source.read(&mut buffer) {
                    Ok(read) => read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(_) => 0,
                };
                let piece = buffer.get(..read).unwrap_or_default();
                lock(&terminal.kept).push(piece);
                begun.extend_from_slice(piece);
                let whole = if read == 0 { begun.len() } else { whole_characters(&begun) };
                let text: Vec<u8> = begun.drain(..whole).collect();
                if !text.is_empty() {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    // Who watches and does not keep up misses some; the whole is kept.
                    news.try_send(Written { terminal: id.clone(), stream, text }).ok();
                }
                if read == 0 {
                    return;
                }
            }
        }));
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Terminal>> {
        lock(&self.open).get(id).cloned()
    }

    /// What a terminal wrote, also for a result that shows it.
    pub(super) fn output_of(&self, id: &str) -> Option<String> {
        Some(self.get(id)?.output().0)
    }

    /// Forgets one, and ends it.
    pub(super) async fn release(&self, id: &str) -> bool {
        let terminal = lock(&self.open).remove(id);
        match terminal {
            Some(terminal) => {
                terminal.kill().await;
                true
            }
            None => false,
        }
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        let all = std::mem::take(&mut *lock(&self.open));
        for terminal in all.into_values() {
            terminal.kill().await;
        }
    }
}

/// So many of the bytes are whole characters, or no characters at all.
fn whole_characters(bytes: &[u8]) -> usize {
    for (after, byte) in bytes.iter().rev().take(3).enumerate() {
        let long = match byte {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        return if long > after + 1 { bytes.len() - after - 1 } else { bytes.len() };
    }
    bytes.len()
}

/// What is started for a command of the protocol: with arguments the program itself; without any it is a line for a shell,
/// since that is what agents mean by it.
pub(super) fn program(command: &str, args: &[String]) -> (PathBuf, Vec<String>) {
    if !args.is_empty() {
        return (PathBuf::from(command), args.to_vec());
    }
    if cfg!(windows) {
        return (PathBuf::from("cmd.exe"), vec!["/C".to_owned(), command.to_owned()]);
    }
    (PathBuf::from("/bin/sh"), vec!["-c".to_owned(), command.to_owned()])
}

/// The same as one line, for rules and people.
pub(super) fn line(command: &str, args: &[String]) -> String {
    let mut line = command.to_owned();
    for arg in args {
        line.push(' ');
        let plain = |char: char| char.is_alphanumeric() || "-_./=:,@%+".contains(char);
        if !arg.is_empty() && arg.chars().all(plain) {
            line.push_str(arg);
        } else {
            line.push('\'');
            line.push_str(&arg.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_started() {
        let args = ["-c".to_owned(), "echo it's".to_owned(), String::new()];
        assert_eq!(line("sh", &args), r"sh -c 'echo it'\''s' ''");
        assert_eq!(line("ls -la | wc", &[]), "ls -la | wc");
    }

    #[test]
    fn a_character_that_comes_in_two_pieces_is_told_whole() {
        let text = "aä€𝄞".as_bytes();
        for cut in 0..=text.len() {
            let whole = whole_characters(&text[..cut]);
            assert!(std::str::from_utf8(&text[..whole]).is_ok() && cut - whole < 4, "{cut} {whole}");
        }
        assert_eq!(whole_characters(b"a\xff"), 2);
        assert_eq!(whole_characters(&[0x80; 5]), 5);
    }

    #[test]
    fn the_end_of_an_output_is_kept_in_whole_characters() {
        let mut kept = Kept { bytes: VecDeque::new(), most: 4, cut: false };
        kept.push("aäö".as_bytes());
        assert_eq!(
            (String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned(), kept.cut),
            ("äö".to_owned(), true)
        );
        kept.push(b"x");
        assert_eq!(String::from_utf8_lossy(kept.bytes.make_contiguous()), "öx");
    }
}
