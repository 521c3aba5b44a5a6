//! `toolway quickstart`: calls the demonstration server directly and through Toolway, and shows both on one screen.
//! Every figure on it is measured in that run.

mod client;
mod page;
mod snippets;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolway_guard::{Found, SavedEntry, Store, StoreConfig};

use self::client::{Answer, Client};
use super::saved;
use crate::args::QuickstartArgs;
use crate::compose::{Environment, UsageError, default_profile, output_dir, saved_command};
use crate::exit::{Exit, complain};
use crate::render::Output;

const TOOLS: [&str; 5] = ["build_log", "table", "picture", "failing", "slow"];

/// Runs it.
pub(super) fn run(args: QuickstartArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    let given = own.option(args.output_dir, "output-dir", Some("OUTPUT_DIR"))?;
    let directory = output_dir(given, &own)?;
    let program =
        std::env::current_exe().map_err(|error| UsageError::new("our own file", error.to_string()))?;
    let saved_command = saved_command(&directory, &own);
    let shown = demonstrate(&program, &directory, &own).and_then(|demonstration| {
        let text = page::page(&demonstration, &directory, &saved_command)?;
        let mut out = Output::new();
        let snippets = snippets::snippets(&program.to_string_lossy());
        let printed = out.write_all(format!("{text}\n{snippets}").as_bytes()).and_then(|()| out.flush());
        match printed {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
            _ => Ok(()),
        }
    });
    Ok(match shown {
        Ok(()) => Exit::Done,
        Err(reason) => {
            complain(&reason, Some("is the directory writable? --output-dir names another"));
            Exit::Ended
        }
    })
}

/// What came of it.
#[derive(Debug)]
struct Demonstration {
    limit: u64,
    calls: Vec<Call>,
    middle: Middle,
}

/// One tool, called both ways.
#[derive(Debug)]
struct Call {
    tool: &'static str,
    direct: Answer,
    guarded: Answer,
    saved: Option<Saved>,
}

/// A result that Toolway saved.
#[derive(Debug)]
struct Saved {
    id: String,
    path: PathBuf,
    /// The file is byte for byte what the server sent in the direct call.
    equal: bool,
}

/// Lines out of the middle of the build log, read back by its id.
#[derive(Debug)]
struct Middle {
    id: String,
    first: u64,
    last: u64,
    text: String,
}

fn demonstrate(program: &Path, directory: &Path, own: &Environment) -> Result<Demonstration, String> {
    let (limit, _) = default_profile();
    let mut direct = Command::new(program);
    direct.arg("__demo");
    let mut guarded = Command::new(program);
    guarded.arg("stdio").arg("--output-dir").arg(directory);
    guarded.arg("--").arg(program).arg("__demo");
    // The demonstration shows the defaults, whatever is set for other relays.
    for (name, _) in own.all() {
        let text = name.to_string_lossy();
        if text.starts_with("TOOLWAY_") || text.starts_with("CURSOR_MCP_RESPONSE_PROXY_") {
            guarded.env_remove(&name);
        }
    }
    let direct = session(direct)?;
    let guarded = session(guarded)?;
    let calls: Vec<Call> = TOOLS
        .into_iter()
        .zip(direct.into_iter().zip(guarded))
        .map(|(tool, (direct, guarded))| call(tool, direct, guarded))
        .collect::<Result<_, _>>()?;
    let log = calls.iter().find(|call| call.tool == "build_log").and_then(|call| call.saved.as_ref());
    let log = log.ok_or("the build log was not saved")?;
    let middle = middle(directory, &log.id)?;
    Ok(Demonstration { limit, calls, middle })
}

/// Starts a server, calls its tools, and ends it.
fn session(command: Command) -> Result<Vec<Answer>, String> {
    let mut client = Client::start(command)?;
    let info = json!({ "name": "toolway-quickstart", "version": env!("CARGO_PKG_VERSION") });
    client.request(
        "initialize",
        &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }),
    )?;
    client.notify("notifications/initialized")?;
    let listed = client.request("tools/list", &json!({}))?;
    let names: Vec<&str> = listed
        .message
        .pointer("/result/tools")
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |tools| tools.iter().filter_map(|tool| tool["name"].as_str()).collect());
    let mut answers = Vec::new();
    for tool in TOOLS {
        if !names.contains(&tool) {
            return Err(format!("the server does not list {tool}"));
        }
        let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": tool } });
        answers.push(client.request("tools/call", &params)?);
    }
    client.close()?;
    Ok(answers)
}

fn call(tool: &'static str, direct: Answer, guarded: Answer) -> Result<Call, String> {
    let meta = guarded.message.pointer("/result/_meta/toolway~1saved");
    let saved = match meta {
        None => None,
        Some(meta) => match (meta["id"].as_str(), meta["path"].as_str()) {
            (Some(id), Some(path)) => {
                let bytes = fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))?;
                Some(Saved { id: id.to_owned(), path: path.into(), equal: bytes == direct.line })
            }
            _ => return Err(format!("not saved: {}", meta["reason"].as_str().unwrap_or("no reason given"))),
        },
    };
    Ok(Call { tool, direct, guarded, saved })
}

/// Finds the error in the saved log and reads the lines around it, as `toolway saved` does.
fn middle(directory: &Path, id: &str) -> Result<Middle, String> {
    let store = Store::new(StoreConfig::new(directory.to_path_buf()));
    let entry: SavedEntry = store.find(id, None).map_err(|error| error.to_string())?;
    let mut at = None;
    let mut first = |found: Found| match found {
        Found::Line { number, matched: true, .. } => {
            at = Some(number);
            false
        }
        _ => true,
    };
    store.search(&entry, "ERROR", 0, 1, &mut first).map_err(|error| error.to_string())?;
    let at = at.ok_or("the error is not in the saved log")?;
    let (first, last) = (at.saturating_sub(1).max(1), at + 1);
    let mut text = Vec::new();
    saved::lines(&store, &entry, &format!("{first}-{last}"), &mut text)?;
    Ok(Middle { id: entry.id, first, last, text: String::from_utf8_lossy(&text).into_owned() })
}
