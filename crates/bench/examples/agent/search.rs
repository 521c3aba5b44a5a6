//! The tools `grep` and `glob` in a tree of many files, beside ripgrep in the same tree, one after the other.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolway_agent::{Arguments, Capabilities, ToolContext, ToolRegistry, ToolSession, ToolSetup};

use crate::args::Args;
use crate::process::{median, ms};

const FOLDERS: usize = 500;
const FILES: usize = 100;

/// A name of a figure, the arguments of the tool, and those of ripgrep.
type Case = (&'static str, &'static str, Value, &'static [&'static str]);

fn cases() -> [Case; 3] {
    const LINES: [&str; 4] = ["--no-config", "--line-number", "--no-heading", "--color=never"];
    const WORD: [&str; 5] = [LINES[0], LINES[1], LINES[2], LINES[3], "unreachable_needle"];
    const REGEX: [&str; 5] = [LINES[0], LINES[1], LINES[2], LINES[3], r"fn \w+_(17|42)\(.*u64\)"];
    const NAMES: [&str; 4] = [LINES[0], "--files", "-g", "*.rs"];
    [
        ("grep_word_ms", "grep", json!({"pattern": WORD[4]}), &WORD),
        ("grep_regex_ms", "grep", json!({"pattern": REGEX[4]}), &REGEX),
        ("glob_ms", "glob", json!({"pattern": "*.rs"}), &NAMES),
    ]
}

pub(crate) async fn measure(args: &Args) -> Result<Vec<Value>> {
    let tree = args.path("--tree")?;
    grown(&tree)?;
    let tree = tree.canonicalize()?;
    let tools = ToolRegistry::built_in(&Capabilities::new(None, &[])?);
    let session = Arc::new(ToolSession::new(ToolSetup::new(tree.clone(), tree.join(".temp")), None));
    let (mut ours, mut theirs) = (json!({"front": "tools"}), json!({"front": "rg"}));
    for (figure, name, arguments, words) in cases() {
        let tool = tools.find(name).with_context(|| format!("no tool {name}"))?;
        let (mut own, mut other) = (Vec::new(), Vec::new());
        // The first time warms up.
        for time in 0..=args.count(5)? {
            let context = ToolContext::new(Arc::clone(&session), "call", CancellationToken::new());
            let given = Arguments::of(arguments.clone()).ok().context("arguments")?;
            let begin = Instant::now();
            let output = tool.run(&context, given).await;
            let taken = ms(begin.elapsed());
            let details = output.details.as_ref().context("no details")?.tree();
            let found = details.get(if name == "grep" { "finds" } else { "files" });
            let found = found.and_then(Value::as_u64).context("no count")?;
            ensure!(found > 100 && !output.is_error, "{name}: {}", output.text);
            if time > 0 {
                own.push(taken);
            }
            let Some(rg) = args.text("--rg") else { continue };
            let begin = Instant::now();
            let output = Command::new(rg)
                .args(words)
                .current_dir(&tree)
                .stdin(std::process::Stdio::null())
                .output()?;
            let taken = ms(begin.elapsed());
            let lines = String::from_utf8_lossy(&output.stdout).lines().count();
            ensure!(u64::try_from(lines)? == found, "{figure}: {found} were found, and {lines} by ripgrep");
            if time > 0 {
                other.push(taken);
            }
        }
        put(&mut ours, figure, &mut own);
        put(&mut theirs, figure, &mut other);
    }
    let has_rg = args.text("--rg").is_some();
    Ok(if has_rg { vec![theirs, ours] } else { vec![ours] })
}

fn put(row: &mut Value, figure: &str, times: &mut [f64]) {
    if let Some(row) = row.as_object_mut().filter(|_| !times.is_empty()) {
        row.insert(figure.to_owned(), json!(median(times)));
    }
}

/// The tree, made once: source files of about two kilobytes, a tenth of them ignored.
fn grown(tree: &Path) -> Result<()> {
    let ready = tree.join(".grown");
    if ready.exists() {
        return Ok(());
    }
    // Ignore files count within a repository.
    std::fs::create_dir_all(tree.join(".git"))?;
    std::fs::write(tree.join(".gitignore"), "*.log\n/build/\n")?;
    for folder in 0..FOLDERS {
        let parts = [format!("part{}", folder % 20), format!("module{}", folder / 20), "src".to_owned()];
        let path = parts.iter().fold(tree.to_owned(), |path, part| path.join(part));
        std::fs::create_dir_all(&path)?;
        for file in 0..FILES {
            let kind = match file % 10 {
                0 => "log",
                1..=6 => "rs",
                7 | 8 => "ts",
                _ => "md",
            };
            std::fs::write(path.join(format!("file{file}.{kind}")), text(folder * FILES + file))?;
        }
    }
    Ok(std::fs::write(ready, "")?)
}

fn text(seed: usize) -> String {
    let mut text = String::new();
    for line in 0..40 {
        let number = (seed * 31 + line * 7) % 1000;
        let (name, body) = (format!("step_{number}"), format!("value.wrapping_mul({number})"));
        text.extend(["pub fn ", &name, "(value: u64) -> u64 { ", &body, " }\n"]);
    }
    if seed.is_multiple_of(37) {
        text += "// An unreachable_needle lies here.\n";
    }
    text
}
