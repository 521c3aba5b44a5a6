//! One result of a GiB: how fast the front moves or saves it, how much memory it needs meanwhile, and whether every
//! byte arrived or lies in the saved file. The client counts and forgets, and the upstream repeats one piece, so that
//! neither is what is measured.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::front::{Link, Running, Spec, StartOptions};
use crate::json as raw;
use crate::measure::{self, Config};
use crate::server::blob_piece;
use crate::sys::float;
use crate::table::Row;

/// Characters of the text, and about as many bytes.
pub(crate) const GIB: usize = 1 << 30;

const TIMEOUT: Duration = Duration::from_mins(3);

/// How the upstream makes the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// One piece again and again, which costs it nothing: the front alone is measured.
    InPieces,
    /// Whole in its memory before the first byte leaves, as servers do.
    AtOnce,
}

impl Made {
    fn name(self) -> &'static str {
        match self {
            Self::InPieces => "huge",
            Self::AtOnce => "huge_made",
        }
    }
}

/// The fronts in interleaved rounds.
pub(crate) fn run(specs: &[Spec], config: &Config, bytes: usize, out: Option<&Path>) -> anyhow::Result<()> {
    let bytes = bytes.min(8 * GIB);
    let baseline = specs.first().map(|s| s.name.clone()).unwrap_or_default();
    measure::rounds(specs, config.rounds, &baseline, out, |spec| {
        let mut row = Row::new();
        row.insert("front".into(), json!(spec.name));
        row.insert("bytes".into(), json!(bytes.to_string()));
        for made in [Made::InPieces, Made::AtOnce] {
            if let Err(error) = one(spec, config, bytes, made, &mut row) {
                row.insert(format!("{}_error", made.name()), json!(error));
            }
        }
        row
    })
}

/// The message as the upstream sends it, around the text.
fn ends(id: &str) -> (Vec<u8>, &'static [u8]) {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    (head.into_bytes(), br#""}]}}"#)
}

fn one(spec: &Spec, config: &Config, n: usize, made: Made, row: &mut Row) -> Result<(), String> {
    let mut options = StartOptions::of(spec, "stdio");
    options.tmp.clone_from(&config.tmp);
    let mut run = Running::start(spec, &options)?;
    run.reset_peak();
    let before = run.usage();
    let id = run.id();
    let message =
        run.tool_message(&id, "blob", &format!(r#"{{"n":{n},"stream":{}}}"#, made == Made::InPieces));
    let begin = Instant::now();
    run.send(message.as_bytes());
    let Link::Stdio(link) = &mut run.link else { return Err("not a stdio front".into()) };
    let line = link.receive_long(begin + TIMEOUT).map_err(|got| format!("no answer: {got:?}"))?;
    let seconds = begin.elapsed().as_secs_f64();
    let usage = run.usage();
    let mib = float((n >> 20) as u64);
    let mut put = |what: &str, value| row.insert(format!("{}_{what}", made.name()), value);
    put("ms", json!(seconds * 1e3));
    put("mib_s", json!(mib / seconds));
    put("cpu_ms", json!((usage.cpu_us - before.cpu_us) / 1e3));
    put("peak_mb", json!(float(usage.peak_kib) / 1024.0));
    let (head, tail) = ends(&id);
    let whole = (head.len() + n + tail.len()) as u64;
    let verdict = match saved_path(&line.head, line.bytes) {
        _ if line.bytes == whole && line.head.starts_with(&head) => "passed whole".to_owned(),
        None => format!("LOST: {} of {whole} bytes came, and no saved file", line.bytes),
        Some(path) => match is_whole(&path, &head, n, tail) {
            Ok(()) => "saved whole".to_owned(),
            Err(why) => format!("LOST: {why}"),
        },
    };
    put("outcome", json!(verdict));
    if verdict.starts_with("LOST") {
        put("verdict", json!(verdict));
    }
    Ok(())
}

/// Where the answer says that the whole is.
fn saved_path(head: &[u8], bytes: u64) -> Option<PathBuf> {
    if bytes != head.len() as u64 {
        return None;
    }
    let meta = raw::path(head, &["result", "_meta"])?;
    let path = raw::path(meta, &["toolway/saved", "path"])
        .or_else(|| raw::path(meta, &["_cursor_mcp_response_proxy", "saved_path"]))?;
    raw::string(Some(path)).map(PathBuf::from)
}

/// Compares the file with the message, byte for byte.
fn is_whole(path: &Path, head: &[u8], n: usize, tail: &[u8]) -> Result<(), String> {
    let mut file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut expect = |want: &[u8]| -> Result<(), String> {
        let mut got = vec![0; want.len()];
        file.read_exact(&mut got).map_err(|e| e.to_string())?;
        if got == want { Ok(()) } else { Err("the saved bytes are others".into()) }
    };
    let piece = blob_piece();
    expect(head)?;
    for _ in 0..n / piece.len() {
        expect(&piece)?;
    }
    expect(&vec![b'.'; n % piece.len()])?;
    expect(tail)?;
    match file.read(&mut [0]) {
        Ok(0) => Ok(()),
        _ => Err("the saved file is longer than the message".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_file_must_equal_the_message() {
        let dir = std::env::temp_dir().join(format!("toolway-bench-huge-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("folder");
        let path = dir.join("saved.json");
        let (head, tail) = ends("7");
        let piece = blob_piece();
        let n = piece.len() * 2 + 5;
        let whole = [&head, piece.as_slice(), &piece, b".....", tail].concat();
        std::fs::write(&path, &whole).expect("written");
        assert_eq!(is_whole(&path, &head, n, tail), Ok(()));
        for wrong in [whole[..whole.len() - 1].to_vec(), [&whole[..], b"\n"].concat(), whole.repeat(2)] {
            std::fs::write(&path, wrong).expect("written");
            assert!(is_whole(&path, &head, n, tail).is_err());
        }
        let mut flipped = whole;
        flipped[100_000] ^= 1;
        std::fs::write(&path, flipped).expect("written");
        assert!(is_whole(&path, &head, n, tail).is_err());
        std::fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn saved_path_is_read_from_either_name() {
        let table = [
            (r#"{"result":{"_meta":{"toolway/saved":{"path":"/a b"}}}}"#, Some("/a b")),
            (r#"{"result":{"_meta":{"_cursor_mcp_response_proxy":{"saved_path":"/c"}}}}"#, Some("/c")),
            (r#"{"result":{}}"#, None),
        ];
        for (answer, want) in table {
            assert_eq!(saved_path(answer.as_bytes(), answer.len() as u64), want.map(PathBuf::from));
        }
    }
}
