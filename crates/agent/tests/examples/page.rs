//! What the page for programs shows is what is tested: its Rust is in the examples, its JSON is understood by the readers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use toolway_agent::{AgentOptions, Event, EventKind, Machine, SendOptions, SettingSource, cloud_servers};
use toolway_config::{LoadOptions, Standing, TrustMode, load};
use toolway_testkit::ModelScript;

use super::rig;

/// A fenced block: what stands behind its fence, and its text.
struct Block {
    kind: String,
    text: String,
}

fn root() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("no root")?.to_owned())
}

fn blocks(document: &str) -> Result<Vec<Block>> {
    let text = fs::read_to_string(root()?.join(document))?;
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some(Block { kind: kind.to_owned(), text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    ensure!(open.is_none(), "{document}: a block that does not end");
    Ok(blocks)
}

/// Lines without what all of them are indented by.
fn flush(lines: &[&str]) -> Vec<String> {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or_default().trim_end().to_owned()).collect()
}

/// The block stands in the text as it is, wherever it is indented to.
fn stands_in(block: &str, source: &str) -> bool {
    let wanted = flush(&block.lines().collect::<Vec<_>>());
    let lines: Vec<&str> = source.lines().collect();
    lines.windows(wanted.len().max(1)).any(|window| flush(window) == wanted)
}

#[test]
fn rust_on_the_pages_is_in_the_examples() -> Result<()> {
    let mut unused: BTreeSet<String> = rig::names()?.into_iter().collect();
    for document in ["docs/sdk.md", "README.md"] {
        let mut count = 0;
        for block in blocks(document)?.into_iter().filter(|block| block.kind == "rust") {
            let holds = |name: &String| rig::source(name).is_ok_and(|source| stands_in(&block.text, &source));
            let found: Vec<String> = rig::names()?.into_iter().filter(holds).collect();
            ensure!(!found.is_empty(), "{document} shows what no example has:\n{}", block.text);
            unused.retain(|name| !found.contains(name));
            count += 1;
        }
        ensure!(count > 0, "{document} shows no Rust");
    }
    ensure!(unused.is_empty(), "no page shows {unused:?}");
    ensure!(!stands_in("let a = 1;\nlet b = 2;\n", "let a = 1;\n\nlet b = 2;\n"), "the comparison compares");
    Ok(())
}

#[test]
fn json_on_the_page_is_understood() -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut sent = Vec::new();
    for block in blocks("docs/sdk.md")? {
        let Some(kind) = block.kind.strip_prefix("json") else { continue };
        let dir = tempfile::tempdir()?;
        let variables = vec![("HOME".into(), dir.path().into()), ("GITHUB_TOKEN".into(), "abc".into())];
        let machine = Machine::new(variables, dir.path().to_owned());
        match kind.trim() {
            "file" => file(dir.path(), &block.text, &machine)?,
            "options" => drop(AgentOptions::from_json(&block.text, machine)?),
            "refused" => {
                let refused = AgentOptions::from_json(&block.text, machine);
                ensure!(refused.is_err(), "this is to be refused:\n{}", block.text);
            }
            "cloud" => sent = cloud_servers(&AgentOptions::from_json(&block.text, machine)?.mcp_servers)?,
            "travels" => ensure!(serde_json::from_str::<Vec<Value>>(&block.text)? == sent, "not {sent:?}"),
            "script" => drop(ModelScript::parse(&block.text)?),
            "send" => drop(SendOptions::from_json(&block.text)?),
            "event" => {
                let event: Event = serde_json::from_str(&block.text)?;
                ensure!(matches!(event.kind, EventKind::System(_)), "{event:?}");
            }
            other => bail!("what JSON is {other:?}?\n{}", block.text),
        }
        seen.insert(kind.trim().to_owned());
    }
    ensure!(seen.len() == 8, "the page shows only {seen:?}");
    Ok(())
}

/// A project's file: every entry is good, and nothing is said about it.
fn file(dir: &Path, text: &str, machine: &Machine) -> Result<()> {
    fs::create_dir_all(dir.join(".git"))?;
    fs::create_dir_all(dir.join(".toolway"))?;
    fs::write(dir.join(".toolway/mcp.json"), text)?;
    let sources = vec![SettingSource::Project];
    let options = LoadOptions { sources, trust: TrustMode::Given, ..LoadOptions::default() };
    let resolved = load(&options, machine.environment());
    ensure!(resolved.problems.is_empty(), "{:?}", resolved.problems);
    ensure!(!resolved.entries.is_empty(), "no servers in\n{text}");
    for entry in &resolved.entries {
        ensure!(!matches!(entry.standing, Standing::Invalid), "{:?}", entry.standing);
    }
    Ok(())
}
