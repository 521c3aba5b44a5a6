//! What README.md and the pages of clients tell people to paste and to type is understood by the real binary.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");
/// Where a client's file has its servers.
const ROOTS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp"];
const DOCUMENTS: [&str; 2] = ["README.md", "docs/clients.md"];

fn root() -> Result<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no crates")?;
    Ok(crates.parent().context("no root")?.to_owned())
}

/// The documents, and each client's page.
fn pages() -> Result<Vec<String>> {
    let mut pages = DOCUMENTS.map(str::to_owned).to_vec();
    for entry in fs::read_dir(root()?.join("docs/clients"))? {
        pages.push(format!("docs/clients/{}", entry?.file_name().to_string_lossy()));
    }
    pages.sort();
    Ok(pages)
}

/// A fenced block: its language and its text.
struct Block {
    language: String,
    text: String,
}

fn blocks(document: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in fs::read_to_string(root()?.join(document))?.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Block { language: language.to_owned(), text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    ensure!(open.is_none(), "{document}: a block that does not end");
    Ok(blocks)
}

/// TOML as the documents use it: tables, and keys whose values are JSON too. Anything else is an error.
fn toml(text: &str) -> Result<Value> {
    let mut servers = Map::new();
    let mut name = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(table) = line.strip_prefix("[mcp_servers.").and_then(|rest| rest.strip_suffix(']')) {
            ensure!(table.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{line}");
            ensure!(servers.insert(table.to_owned(), Value::Object(Map::new())).is_none(), "twice: {line}");
            name = Some(table.to_owned());
            continue;
        }
        let (key, value) = line.split_once(" = ").with_context(|| format!("not understood: {line}"))?;
        let value: Value = serde_json::from_str(value).with_context(|| format!("value of {line}"))?;
        let server = name.as_ref().and_then(|name| servers.get_mut(name)).and_then(Value::as_object_mut);
        ensure!(server.context("a key outside")?.insert(key.to_owned(), value).is_none(), "twice: {line}");
    }
    Ok(serde_json::json!({ "mcpServers": servers }))
}

/// The arguments of every server that the documents configure.
fn configured() -> Result<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for document in pages()? {
        for block in blocks(&document)? {
            let value = match block.language.as_str() {
                "json" => serde_json::from_str(&block.text)
                    .with_context(|| format!("{document}: {}", block.text))?,
                "toml" => toml(&block.text).with_context(|| document.clone())?,
                _ => continue,
            };
            let servers = ROOTS.iter().find_map(|root| value.get(root));
            let servers = servers.with_context(|| format!("{document}: a block without servers"))?;
            for server in servers.as_object().context("servers are no object")?.values() {
                // One client has the command and its arguments in one list.
                let list = server["command"].as_array();
                let command = list.map_or(&server["command"], |list| &list[0]);
                let command = command.as_str().context("no command")?;
                ensure!(
                    ["/home/you/.cargo/bin/toolway", r"C:\Users\you\.cargo\bin\toolway.exe"]
                        .contains(&command),
                    "{command}"
                );
                let args = match list {
                    Some(list) => list.get(1..).context("no args")?,
                    None => server["args"].as_array().context("no args")?,
                };
                all.push(
                    args.iter()
                        .map(|arg| arg.as_str().map(str::to_owned).context("an argument"))
                        .collect::<Result<_>>()?,
                );
            }
        }
    }
    Ok(all)
}

/// Every variable that the arguments name, and that the client would set or replace.
fn variables(args: &[String]) -> Vec<(String, &'static str)> {
    let names = args.iter().flat_map(|arg| arg.split("${").skip(1));
    names.filter_map(|rest| Some((rest.split_once('}')?.0.to_owned(), "value"))).collect()
}

/// Runs the relay with these options before a server that is there, or the gateway of a person who has imported one, and
/// a client that closes at once.
fn accepted(args: &[String]) -> Result<()> {
    let home = tempfile::tempdir()?;
    let own = home.path().join(".config/toolway");
    fs::create_dir_all(&own)?;
    let imported =
        serde_json::json!({ "mcpServers": { "demo": { "command": TOOLWAY, "args": ["__demo"] } } });
    fs::write(own.join("mcp.json"), imported.to_string())?;
    let mut args = args.to_vec();
    let variables = variables(&args);
    if let Some(at) = args.iter().position(|arg| arg == "--") {
        args.truncate(at + 1);
        args.extend([TOOLWAY.to_owned(), "__demo".to_owned()]);
    }
    let output = Command::new(TOOLWAY)
        .args(&args)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .envs(variables)
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{args:?}: {:?}: {told}", output.status);
    Ok(())
}

#[test]
fn every_server_in_the_documents_starts() -> Result<()> {
    let all = configured()?;
    for kind in ["stdio", "sse", "streamable-http"] {
        ensure!(
            all.iter().filter(|args| args.first().is_some_and(|first| first == kind)).count() >= 5,
            "few {kind}"
        );
    }
    for args in all {
        accepted(&args)?;
    }
    Ok(())
}

/// Commands in blocks, and in the running text where they are no pattern.
fn commands(document: &str) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for block in blocks(document)? {
        if block.language == "sh" {
            found.extend(block.text.lines().map(str::to_owned));
        }
    }
    let text = fs::read_to_string(root()?.join(document))?;
    let outside: String = text.split("```").step_by(2).collect();
    found.extend(
        outside
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")),
    );
    found.retain(|command| command.starts_with("toolway ") || command.starts_with("cargo "));
    Ok(found)
}

/// Words of a command line with simple quotes.
fn words(command: &str) -> Vec<String> {
    let pieces = command.split('\'').enumerate();
    pieces
        .flat_map(|(index, piece)| {
            if index % 2 == 1 {
                vec![piece.to_owned()]
            } else {
                piece.split_whitespace().map(str::to_owned).collect()
            }
        })
        .collect()
}

#[test]
fn every_command_in_the_documents_is_understood() -> Result<()> {
    let mut seen = 0;
    for document in pages()? {
        for command in commands(&document)? {
            let mut args = words(&command);
            match args.remove(0).as_str() {
                "toolway"
                    if args.first().is_some_and(|first| first == "stdio")
                        && args.iter().any(|arg| arg == "--") =>
                {
                    accepted(&args)?;
                }
                "toolway" => {
                    args.push("--help".to_owned());
                    let output = Command::new(TOOLWAY).args(&args).output()?;
                    ensure!(
                        output.status.success(),
                        "{command}: {}",
                        String::from_utf8_lossy(&output.stderr)
                    );
                }
                _ => cargo(&command)?,
            }
            seen += 1;
        }
    }
    ensure!(seen >= 12, "only {seen} commands found");
    Ok(())
}

/// Commands of cargo are not run here: what they name must exist.
fn cargo(command: &str) -> Result<()> {
    let root = root()?;
    let words = words(command);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["cargo", "run", "--release", "--", "quickstart"] => {
            let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
            ensure!(manifest.contains("default-members = [\"crates/cli\"]"), "another program would run");
        }
        ["cargo", "xtask", task, ..] => {
            let alias = fs::read_to_string(root.join(".cargo/config.toml"))?;
            ensure!(alias.contains("xtask = "), "no alias");
            let tasks = fs::read_to_string(root.join("xtask/src/main.rs"))?;
            ensure!(tasks.contains(&format!("\"{task}\" =>")), "no task {task}");
        }
        ["cargo", "install", "--locked", "--path", path] => {
            ensure!(root.join(path.replace('\\', "/")).join("Cargo.toml").is_file(), "{path}");
        }
        ["cargo", "uninstall", "toolway"] => {}
        _ => bail!("a command that this test does not know: {command}"),
    }
    Ok(())
}

#[test]
fn every_link_in_the_documents_leads_somewhere() -> Result<()> {
    let root = root()?;
    for document in pages()? {
        let text = fs::read_to_string(root.join(&document))?;
        let base = root.join(&document);
        let base = base.parent().context("no folder")?;
        for target in text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)) {
            if target.starts_with("https://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { root.join(&document) } else { base.join(file) };
            ensure!(path.is_file(), "{document}: {target}");
            let headings = fs::read_to_string(&path)?;
            let there = |line: &str| line.starts_with('#') && slug(line) == anchor;
            ensure!(anchor.is_empty() || headings.lines().any(there), "{document}: {target}");
        }
    }
    Ok(())
}

fn slug(heading: &str) -> String {
    heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-")
}

#[test]
fn every_client_has_a_page_that_tells_its_limits() -> Result<()> {
    let index = fs::read_to_string(root()?.join("docs/clients.md"))?;
    for client in toolway_config::CLIENTS {
        let page = format!("docs/clients/{}.md", client.id);
        let text = fs::read_to_string(root()?.join(&page)).with_context(|| page.clone())?;
        ensure!(index.contains(&format!("| `{}` | [", client.id)), "no line for {} in the index", client.id);
        let way = [format!("toolway import --from {}", client.id), "## Out again".to_owned()];
        ensure!(way.iter().all(|part| text.contains(part)), "{page} does not say the way in and out");
        if let Some(tools) = client.limits.tools {
            ensure!(text.contains(&format!("{tools} tools")), "{page} does not tell the cap of {tools}");
        }
    }
    Ok(())
}
