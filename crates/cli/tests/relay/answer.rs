//! What a test reads out of an answer: blocks, flags, and where the whole was saved.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolway_testkit::Message;

/// One line that the client got, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The line.
    pub(crate) line: String,
    /// The same as a tree.
    pub(crate) tree: Value,
}

impl Answer {
    pub(crate) fn of(line: &[u8]) -> Result<Self> {
        let line = std::str::from_utf8(line)?.to_owned();
        let tree = serde_json::from_str(&line)?;
        Ok(Self { line, tree })
    }

    /// The result.
    pub(crate) fn result(&self) -> Result<&Value> {
        self.tree.get("result").with_context(|| format!("no result: {:.600}", self.line))
    }

    /// The error's code and message.
    pub(crate) fn error(&self) -> Result<(i64, &str)> {
        let error = self.tree.get("error").with_context(|| format!("no error: {:.600}", self.line))?;
        let code = error.get("code").and_then(Value::as_i64).context("no code")?;
        Ok((code, error.get("message").and_then(Value::as_str).context("no message")?))
    }

    /// The content blocks.
    pub(crate) fn blocks(&self) -> Result<&Vec<Value>> {
        let content = self.result()?.get("content").and_then(Value::as_array);
        content.with_context(|| format!("no content: {:.600}", self.line))
    }

    /// The text of all text blocks.
    pub(crate) fn text(&self) -> Result<String> {
        let blocks = self.blocks()?.iter();
        let texts = blocks.filter_map(|block| block.get("text").and_then(Value::as_str));
        Ok(texts.collect::<Vec<_>>().join("\n"))
    }

    /// Size as the guard counts it.
    pub(crate) fn chars(&self) -> usize {
        self.line.chars().count()
    }

    /// The record of a replaced result: fails when the two `_meta` objects are missing or contradict one another.
    pub(crate) fn saved(&self) -> Result<Saved> {
        let meta = self.result()?.get("_meta").with_context(|| format!("no _meta: {:.900}", self.line))?;
        let short = meta.get("_cursor_mcp_response_proxy").context("no _cursor_mcp_response_proxy")?;
        let record = meta.get("toolway/saved").context("no toolway/saved")?;
        let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_u64);
        ensure!(short.get("truncated") == Some(&Value::Bool(true)), "not truncated: {short}");
        ensure!(number(short, "original_chars") == number(record, "chars"), "{short} and {record}");
        let done = record.get("saved").and_then(Value::as_bool).context("no saved")?;
        // Where little room is left, the path is said once.
        let path = text(short, "saved_path");
        if done && record.get("path").is_some() {
            ensure!(path == text(record, "path"), "{short} and {record}");
        }
        Ok(Saved {
            done,
            path: path.unwrap_or_default().into(),
            text_path: text(record, "text_path").map(Into::into),
            sha256: text(record, "sha256").unwrap_or_default(),
            chars: number(record, "chars").context("no chars")?,
            bytes: number(record, "bytes").unwrap_or_default(),
            reason: text(record, "reason"),
        })
    }
}

/// Where the whole of a replaced result is.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub(crate) done: bool,
    pub(crate) path: PathBuf,
    pub(crate) text_path: Option<PathBuf>,
    pub(crate) sha256: String,
    pub(crate) chars: u64,
    pub(crate) bytes: u64,
    pub(crate) reason: Option<String>,
}

impl Saved {
    /// Fails unless the file holds exactly these bytes, and the record says so.
    pub(crate) fn check_file(&self, original: &[u8]) -> Result<()> {
        ensure!(self.done, "not saved: {:?}", self.reason);
        let stored = std::fs::read(&self.path).with_context(|| format!("{}", self.path.display()))?;
        if stored != original {
            bail!("{} bytes were stored of {}", stored.len(), original.len());
        }
        let mut digest = String::new();
        for byte in Sha256::digest(&stored) {
            write!(digest, "{byte:02x}")?;
        }
        ensure!(digest == self.sha256, "the record says {}, the file is {digest}", self.sha256);
        Ok(())
    }
}

/// A response to `id` with this text block, as an upstream would spell it.
pub(crate) fn text_response(id: &str, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

/// A text block's letters, so that the response to `id` has exactly this many characters.
pub(crate) fn filling(id: &str, size: usize, text: &str, counted: usize) -> String {
    let around = text_response(id, "").chars().count();
    format!("{text}{}", "x".repeat(size - around - counted))
}

/// The members of a message, as they were spelled.
pub(crate) fn raw<'a>(line: &'a [u8], names: &[&str]) -> Result<&'a str> {
    Message::parse(line)?.path(names).context("no such member")
}

/// Fails when a line is not what the upstream sent.
pub(crate) fn same(line: &[u8], sent: &str) -> Result<()> {
    let got = String::from_utf8_lossy(line);
    ensure!(got == sent, "changed on the way:\n{got:.600}\nwas\n{sent:.600}");
    Ok(())
}
