//! Owns the output of a command as it is kept: the first and the last of what was not looked at yet in memory, and the
//! whole in a file once it is long. Bounded in both.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::tools::outputs::Outputs;

/// Bytes of the beginning that are shown.
const HEAD: usize = 10_000;
/// Bytes of the end that are shown.
const TAIL: usize = 20_000;
/// Bytes of a command that are saved.
const MOST_SAVED: u64 = 51_380_224;

/// What came out of a command.
#[derive(Debug)]
pub(crate) struct Kept {
    outputs: Arc<Outputs>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes since the last look.
    fresh: u64,
    /// Bytes in all.
    total: u64,
    /// Everything, until it goes to a file.
    first: Vec<u8>,
    file: Option<(File, PathBuf)>,
    saved: u64,
    /// Why nothing is saved.
    unsaved: Option<String>,
}

/// What is new since the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// The text, with a line that says what is left out.
    pub(crate) text: String,
    /// Bytes that are left out of it.
    pub(crate) left_out: u64,
    /// Where the whole is.
    pub(crate) saved: Option<PathBuf>,
    /// Bytes in all.
    pub(crate) total: u64,
}

impl Kept {
    /// Nothing yet; what is long goes to a file of `outputs`.
    pub(crate) fn new(outputs: Arc<Outputs>) -> Self {
        Self {
            outputs,
            head: Vec::new(),
            tail: VecDeque::new(),
            fresh: 0,
            total: 0,
            first: Vec::new(),
            file: None,
            saved: 0,
            unsaved: None,
        }
    }

    /// More came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.save(bytes);
        let length = bytes.len() as u64;
        self.fresh = self.fresh.saturating_add(length);
        self.total = self.total.saturating_add(length);
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD.saturating_sub(self.head.len())));
        self.head.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(TAIL)..).unwrap_or_default();
        let surplus = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend(rest);
    }

    fn save(&mut self, bytes: &[u8]) {
        if self.file.is_none() && self.unsaved.is_none() {
            if self.first.len() + bytes.len() <= HEAD + TAIL {
                self.first.extend_from_slice(bytes);
                return;
            }
            let first = std::mem::take(&mut self.first);
            match self.outputs.file() {
                Ok(file) => {
                    self.file = Some(file);
                    self.write(&first);
                }
                Err(error) => self.unsaved = Some(error.to_string()),
            }
        }
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some((file, _)) = &mut self.file else { return };
        let room = usize::try_from(MOST_SAVED.saturating_sub(self.saved)).unwrap_or(usize::MAX);
        let bytes = bytes.get(..bytes.len().min(room)).unwrap_or_default();
        match file.write_all(bytes) {
            Ok(()) => self.saved += bytes.len() as u64,
            Err(error) => {
                self.unsaved = Some(error.to_string());
                self.file = None;
            }
        }
    }

    /// What is new, which is then no longer.
    pub(crate) fn look(&mut self) -> Look {
        let head = std::mem::take(&mut self.head);
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        let left_out = self.fresh - (head.len() + tail.len()) as u64;
        let fresh = std::mem::take(&mut self.fresh);
        let text = if left_out == 0 {
            let whole = [head, tail].concat();
            String::from_utf8_lossy(&whole).into_owned()
        } else {
            let notice = self.notice(left_out, fresh);
            let (head, tail) = (upto_line(&head), from_character(&tail));
            format!("{}\n{notice}\n{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
        };
        let saved = self.file.as_ref().map(|(_, path)| path.clone());
        Look { text, left_out, saved, total: self.total }
    }

    fn notice(&self, left_out: u64, fresh: u64) -> String {
        let place = match (&self.file, &self.unsaved) {
            (Some((_, path)), _) if self.total > self.saved => {
                format!("the first {} bytes are in {}, the rest is lost", self.saved, path.display())
            }
            (Some((_, path)), _) => {
                format!("the whole output is in {}: `read` or `grep` it", path.display())
            }
            (None, Some(reason)) => format!("it could not be saved: {reason}"),
            (None, None) => "it was not saved".to_owned(),
        };
        format!("[... {left_out} of {fresh} bytes are left out here; {place} ...]")
    }
}

/// Without a character that is cut at the end.
fn upto_line(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}

/// Without the rest of a character at the beginning.
fn from_character(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    bytes.get(cut..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_whole_and_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Kept::new(Arc::new(Outputs::new(folder.path())));
        kept.push("grü".as_bytes());
        kept.push(b"n\n");
        let look = kept.look();
        assert_eq!(look, Look { text: "grün\n".to_owned(), left_out: 0, saved: None, total: 6 });
        assert_eq!(kept.look().text, "");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn long_output_keeps_both_ends_and_the_whole_is_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Kept::new(Arc::new(Outputs::new(folder.path())));
        let mut whole = Vec::new();
        for number in 0..20_000 {
            let line = format!("lïne {number}\n");
            kept.push(line.as_bytes());
            whole.extend_from_slice(line.as_bytes());
        }
        let look = kept.look();
        assert!(look.text.starts_with("lïne 0\n"), "{}", look.text);
        assert!(look.text.ends_with("lïne 19999\n"));
        assert!(!look.text.contains('\u{fffd}'));
        assert_eq!(look.left_out, (whole.len() - HEAD - TAIL) as u64);
        assert!(look.text.contains(&format!("{} of {} bytes are left out", look.left_out, whole.len())));
        let saved = look.saved.unwrap();
        assert_eq!(std::fs::read(&saved).unwrap(), whole);
        kept.push(b"more");
        assert_eq!(kept.look().text, "more");
        assert!(std::fs::read(&saved).unwrap().ends_with(b"more"));
    }

    #[test]
    fn memory_and_file_are_bounded_and_the_loss_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Kept::new(Arc::new(Outputs::new(folder.path())));
        let block = vec![b'x'; 1 << 20];
        for _ in 0..60 {
            kept.push(&block);
        }
        assert!(kept.head.len() <= HEAD && kept.tail.len() <= TAIL && kept.first.is_empty());
        let look = kept.look();
        assert_eq!(look.total, 60 << 20);
        assert_eq!(std::fs::metadata(look.saved.unwrap()).unwrap().len(), MOST_SAVED);
        assert!(look.text.contains("the rest is lost"));
    }

    #[test]
    fn output_that_cannot_be_saved_is_still_shown_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let mut kept = Kept::new(Arc::new(Outputs::new(&file)));
        kept.push(&vec![b'y'; HEAD + TAIL + 1]);
        let look = kept.look();
        assert_eq!(look.saved, None);
        assert!(look.text.contains("could not be saved"), "{}", look.text);
    }
}
