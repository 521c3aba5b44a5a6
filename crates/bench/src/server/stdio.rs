//! The upstream over stdin and stdout: whole batches of lines in, one write out. Knows lines, not tools.

use std::io::{stdin, stdout};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Emit, Server, blob_piece};
use crate::{json, sys};

#[derive(Debug, Default)]
struct Stdout(Mutex<()>);

impl Stdout {
    fn write(&self, pieces: &[&[u8]]) -> bool {
        let _turn = sys::held(&self.0);
        pieces.iter().all(|piece| sys::write_all(stdout(), piece))
    }
}

impl Emit for Stdout {
    fn emit(&self, message: &[u8]) {
        self.write(&[&[message, b"\n"].concat()]);
    }

    fn emit_torn(&self) {
        self.write(&[br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","te"#]);
    }

    fn emit_blob(&self, head: &[u8], n: usize, tail: &[u8]) {
        let piece = blob_piece();
        let rest = vec![b'.'; n % piece.len()];
        let mut all: Vec<&[u8]> = vec![head];
        all.extend(std::iter::repeat_n(piece.as_slice(), n / piece.len()));
        all.extend([rest.as_slice(), tail, b"\n"]);
        self.write(&all);
    }
}

fn batch(server: &Arc<Server>, line: &[u8], emit: &Arc<dyn Emit>, out: &mut Vec<u8>) {
    let mut answers = Vec::new();
    for member in json::items(line) {
        let mut one = Vec::new();
        server.handle(member, emit, &mut one, false);
        if !one.is_empty() {
            answers.push(one);
        }
    }
    out.push(b'[');
    out.extend_from_slice(&answers.join(&b','));
    out.extend_from_slice(b"]\n");
}

fn line(server: &Arc<Server>, line: &[u8], emit: &Arc<dyn Emit>, out: &mut Vec<u8>) {
    match (line.first(), line.last()) {
        (None, _) => {}
        (Some(b'['), _) => batch(server, line, emit, out),
        (Some(b'{'), Some(b'}')) => {
            let before = out.len();
            server.handle(line, emit, out, false);
            if out.len() > before {
                out.push(b'\n');
            }
        }
        _ => {
            let error = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
            out.extend_from_slice(error);
            out.push(b'\n');
        }
    }
}

/// Serves until stdin ends (or for good with `ignore_eof`).
pub(super) fn serve(server: &Arc<Server>) {
    let to = Arc::new(Stdout::default());
    let emit: Arc<dyn Emit> = to.clone();
    let mut buf: Vec<u8> = Vec::with_capacity(1 << 16);
    let mut out: Vec<u8> = Vec::with_capacity(1 << 16);
    let mut scanned = 0usize;
    while sys::read_more(stdin(), &mut buf, 1 << 16).is_ok_and(|n| n > 0) {
        let mut start = 0;
        while let Some(k) = memchr::memchr(b'\n', &buf[scanned..]) {
            let end = scanned + k;
            line(server, buf[start..end].trim_ascii(), &emit, &mut out);
            start = end + 1;
            scanned = start;
        }
        buf.drain(..start);
        scanned = buf.len();
        if !out.is_empty() {
            if !to.write(&[&out]) && !server.options.ignore_eof {
                return;
            }
            if out.capacity() > 8 << 20 {
                out = Vec::with_capacity(1 << 16);
            } else {
                out.clear();
            }
        }
    }
    if server.options.ignore_eof {
        sys::pause(server.options.max_life);
    }
    for _ in 0..3000 {
        if !server.options.drain || server.state.slow.load(Ordering::SeqCst) == 0 {
            break;
        }
        sys::pause(Duration::from_millis(10));
    }
}
