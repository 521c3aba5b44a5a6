//! Owns the recording of a session: JSON lines with time, direction and message. Knows nothing of what they mean.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use toolway_secret::Redactor;
use toolway_wire::push_string;

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The client, to the server.
    FromClient,
    /// The server, to the client; as it came, before the guard.
    FromServer,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::FromClient => "client",
            Self::FromServer => "server",
        }
    }
}

/// Messages longer than this are recorded by their size only.
const RECORDED_BYTES: usize = 4 << 20;

/// Writes `{"time":SECONDS,"from":"client"|"server","message":...}` lines to a file, redacted. The message is JSON
/// where it was JSON, a string where it was not, and `{"bytes":N}` under `omitted` where it was too long to keep.
#[derive(Debug)]
pub struct Recorder {
    file: Mutex<BufWriter<File>>,
    redactor: Option<Arc<Redactor>>,
}

impl Recorder {
    /// Creates the file, readable by its owner only; one that is there is appended to.
    pub fn create(path: &Path, redactor: Option<Arc<Redactor>>) -> io::Result<Self> {
        let mut options = File::options();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self { file: Mutex::new(BufWriter::new(options.open(path)?)), redactor })
    }

    /// Records one message, or its size where it is not at hand.
    pub(crate) fn message(&self, from: Direction, bytes: Option<&[u8]>, length: u64) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = format!(
            "{{\"time\":{}.{:06},\"from\":\"{}\",",
            time.as_secs(),
            time.subsec_micros(),
            from.name()
        )
        .into_bytes();
        match bytes.filter(|bytes| bytes.len() <= RECORDED_BYTES) {
            Some(bytes) => {
                line.extend_from_slice(b"\"message\":");
                let text = String::from_utf8_lossy(bytes);
                let redactor = self.redactor.as_deref().unwrap_or_else(|| Redactor::known());
                let clean = redactor.redact_json(&text);
                if serde_json::from_str::<&serde_json::value::RawValue>(&clean).is_ok() {
                    line.extend(
                        clean.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }),
                    );
                } else {
                    push_string(&redactor.redact(&text), &mut line);
                }
            }
            None => line.extend_from_slice(format!("\"omitted\":{{\"bytes\":{length}}}").as_bytes()),
        }
        line.extend_from_slice(b"}\n");
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&line).and_then(|()| file.flush()) {
            tracing::warn!(%error, "cannot write the recording");
        }
    }
}
