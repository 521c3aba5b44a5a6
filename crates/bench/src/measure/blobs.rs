//! Large answers: their time, the front's CPU time and peak memory, and whether what came back is whole.

use std::time::Instant;

use serde_json::json;

use super::{Config, mib};
use crate::front::Running;
use crate::json as raw;
use crate::server::{blob_base64, blob_text};
use crate::sys::{self, float, percentile};
use crate::table::Row;

fn label(n: usize) -> String {
    match n {
        n if n >= 1_000_000 => format!("{}M", n / 1_000_000),
        n if n >= 100_000 => format!("{}k", n / 1000),
        n => format!("{n}"),
    }
}

fn repetitions(n: usize) -> usize {
    match n {
        0..=20_000 => 40,
        20_001..=200_000 => 20,
        200_001..=2_000_000 => 8,
        2_000_001..=20_000_000 => 3,
        _ => 1,
    }
}

/// The arguments of the call, and the text that shall come back.
fn ask(n: usize, kind: &str) -> (String, Vec<u8>) {
    match kind {
        "structured" => (format!(r#"{{"n":{n},"structured":true}}"#), blob_text(n, "ascii")),
        "image" => (format!(r#"{{"n":{n},"image":true}}"#), blob_base64(n)),
        "values" => (format!(r#"{{"n":{},"kind":"values"}}"#, n / 2), vec![]),
        kind => (format!(r#"{{"n":{n},"kind":"{kind}"}}"#), blob_text(n, kind)),
    }
}

/// What came back for a blob: the whole text, something shorter, or something else.
pub(super) fn judge(answer: &[u8], want: &[u8], kind: &str, n: usize) -> String {
    if let Some(error) = raw::get(answer, "error") {
        return format!("error {}", String::from_utf8_lossy(&error[..error.len().min(120)]));
    }
    if kind == "values" {
        let values = raw::path(answer, &["result", "structuredContent", "values"]);
        let whole = values.is_some_and(|v| raw::items(v).len() == n / 2);
        return if whole { "ok".into() } else { format!("preview {} bytes", answer.len()) };
    }
    let part = match kind {
        "structured" => raw::path(answer, &["result", "structuredContent", "text"]),
        "image" => raw::first_content(answer).and_then(|block| raw::get(block, "data")),
        _ => raw::first_text_raw(answer),
    };
    let Some(part) = part else { return format!("no such part ({} bytes)", answer.len()) };
    if raw::unquoted(part) == want {
        "ok".into()
    } else if raw::string(Some(part)) == raw::string(Some(&[b"\"", want, b"\""].concat())) {
        "ok respelled".into()
    } else if answer.len() < want.len() {
        format!("preview {} bytes", answer.len())
    } else {
        "WRONG".into()
    }
}

pub(super) fn measure(run: &mut Running, config: &Config, row: &mut Row) {
    for kind in &config.kinds {
        for &n in &config.sizes {
            if !one_size(run, config, row, kind, n) {
                break;
            }
        }
    }
}

/// One kind and size; false when nothing came back.
fn one_size(run: &mut Running, config: &Config, row: &mut Row, kind: &str, n: usize) -> bool {
    let tag =
        if kind == "ascii" { format!("blob_{}", label(n)) } else { format!("blob_{kind}_{}", label(n)) };
    let (args, want) = ask(n, kind);
    run.reset_peak();
    let before = run.usage();
    let (mut times, mut verdict) = (vec![], String::new());
    let begin = Instant::now();
    for _ in 0..repetitions(n) {
        let one = Instant::now();
        let answer = run.tool("blob", &args, config.blob_timeout);
        let time = sys::ms(one.elapsed());
        match answer {
            Ok(answer) => {
                times.push(time);
                let judged = judge(&answer, &want, kind, n);
                if verdict.is_empty() || judged != "ok" {
                    verdict = judged;
                }
            }
            Err(miss) => {
                verdict = format!("{miss} after {time:.0} ms");
                break;
            }
        }
        if begin.elapsed() > config.budget * 2 {
            break;
        }
    }
    let after = run.usage();
    if verdict != "ok" {
        row.insert(format!("{tag}_verdict"), json!(verdict));
    }
    if times.is_empty() {
        return false;
    }
    let cpu_ms = (after.cpu_us - before.cpu_us) / 1e3 / float(times.len() as u64);
    row.insert(format!("{tag}_ms"), json!(percentile(&mut times, 50)));
    row.insert(format!("{tag}_cpu_ms"), json!(cpu_ms));
    row.insert(format!("{tag}_peak_mb"), json!(mib(after.peak_kib)));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Vec<u8> {
        format!(r#"{{"id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#).into_bytes()
    }

    #[test]
    fn whole_respelled_cut_and_wrong_texts_are_told_apart() {
        let long = "x".repeat(1000);
        let table = [
            (answer("é"), "é", "ok"),
            (answer("\\u00e9"), "é", "ok respelled"),
            (answer("short"), long.as_str(), "preview 62 bytes"),
            (answer("other"), "é", "WRONG"),
            (br#"{"id":1,"error":{"code":1}}"#.to_vec(), "é", r#"error {"code":1}"#),
        ];
        for (got, want, verdict) in table {
            assert_eq!(judge(&got, want.as_bytes(), "ascii", 1), verdict);
        }
    }
}
