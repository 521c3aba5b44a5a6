//! `toolway trust`: approves definitions that come from others, after having shown them.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::json;
use toolway_config::{Entry, LoadOptions, Resolved, SettingSource, Standing, TrustStore};

use super::shell::{Refusal, told};
use crate::args::TrustArgs;
use crate::compose;
use crate::exit::Exit;
use crate::render::Output;
use crate::show::{safe, whole_line};
use crate::table::{Align, columns};

/// The version of the JSON that `--list --json` prints; members are added, never changed.
const SCHEMA: u32 = 1;
/// What may hold things to approve.
const SOURCES: [SettingSource; 3] = [SettingSource::Project, SettingSource::User, SettingSource::Plugins];

/// Approves, lists or takes back.
pub(super) fn run(args: &TrustArgs) -> Exit {
    told(trust(args))
}

fn trust(args: &TrustArgs) -> Result<Exit, Refusal> {
    let machine = compose::servers::machine(&compose::Environment::read())?;
    let sources = match &args.sources {
        Some(list) => SettingSource::parse_list(list.split(','))
            .map_err(|problem| Refusal::usage(format!("--sources: {problem}")))?,
        None => SOURCES.to_vec(),
    };
    let resolved = toolway_config::load(&LoadOptions { sources, ..LoadOptions::default() }, &machine);
    let mut store = TrustStore::read(&resolved.trust_file).map_err(|error| {
        Refusal::usage(error.to_string()).with_hint("mend that file or remove it, then approve again")
    })?;
    if args.list {
        return list(&resolved, &store, args.json);
    }
    if args.revoke {
        return revoke(&resolved, &mut store, &args.servers);
    }
    if args.servers.is_empty() {
        ask(&resolved, &mut store)
    } else {
        named(&resolved, &mut store, &args.servers)
    }
}

fn waiting(resolved: &Resolved) -> Vec<&Entry> {
    let waits = |entry: &&Entry| matches!(entry.standing, Standing::Untrusted { .. });
    resolved.entries.iter().filter(waits).collect()
}

/// What is to be approved, as a person has to see it.
fn shown(entry: &Entry) -> String {
    let rows = entry
        .shown_fields()
        .into_iter()
        .map(|(field, value)| vec![format!("  {}", whole_line(&field)), whole_line(&value)]);
    let rows: Vec<Vec<String>> = rows.collect();
    let fields = columns(&[Align::Left, Align::Left], &rows);
    let runs = if entry.runs_commands() { "  It runs a command of yours for a value.\n" } else { "" };
    let reads = if entry.reads_keyring() { "  It reads your keyring.\n" } else { "" };
    format!("{} ({}): {}\n{fields}{runs}{reads}", whole_line(&entry.name), entry.place, entry.standing)
}

fn named(resolved: &Resolved, store: &mut TrustStore, names: &[String]) -> Result<Exit, Refusal> {
    let mut approved = Vec::new();
    let mut out = Output::new();
    for name in names {
        let Some(entry) = resolved.entry(name) else { return Err(unknown(name)) };
        match &entry.standing {
            Standing::Untrusted { .. } => {
                out.write_all(shown(entry).as_bytes())?;
                approved.push(entry);
            }
            Standing::Itself => {
                writeln!(out, "{name} needs no approval: it is Toolway's own gateway.")?;
            }
            Standing::Ready | Standing::Unset { .. } | Standing::NeedsInput { .. } => {
                writeln!(out, "{name} needs no approval, or has it.")?;
            }
            other => {
                return Err(Refusal::usage(format!("{name} cannot be approved: it is {other}")));
            }
        }
    }
    store.approve(approved.iter().copied()).map_err(|error| Refusal::usage(error.to_string()))?;
    for entry in approved {
        writeln!(out, "Approved {}.", entry.name)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Asks about each that waits.
fn ask(resolved: &Resolved, store: &mut TrustStore) -> Result<Exit, Refusal> {
    let waiting = waiting(resolved);
    let mut out = Output::new();
    if waiting.is_empty() {
        writeln!(out, "Nothing waits for approval.")?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        for entry in &waiting {
            out.write_all(shown(entry).as_bytes())?;
        }
        out.flush()?;
        let names: Vec<String> =
            waiting.iter().map(|entry| crate::render::quoted(&entry.name, cfg!(windows))).collect();
        let reason = "these servers wait for approval, and there is no terminal to ask at".to_owned();
        let hint = Some(format!("toolway trust {}", names.join(" ")));
        return Err(Refusal { reason, hint, exit: Exit::Untrusted });
    }
    drop(out);
    let mut left = false;
    for entry in waiting {
        let mut out = io::stdout().lock();
        write!(out, "{}Approve {}? [y/N] ", safe(&shown(entry)), safe(&entry.name))?;
        out.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            store.approve([entry]).map_err(|error| Refusal::usage(error.to_string()))?;
        } else {
            left = true;
        }
    }
    Ok(if left { Exit::Untrusted } else { Exit::Done })
}

fn revoke(resolved: &Resolved, store: &mut TrustStore, names: &[String]) -> Result<Exit, Refusal> {
    // An approval whose server is gone from its file can be taken back as well.
    let known = |name: &String| store.approvals().iter().any(|approval| approval.name == *name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(match resolved.entry(name) {
            Some(_) => Refusal::usage(format!("{name} was never approved")),
            None => unknown(name),
        });
    }
    // Of several files that have the name, the one at hand is meant.
    let at_hand = |name: &str| resolved.entry(name).map(TrustStore::file_of);
    let files: Vec<(String, Option<std::path::PathBuf>)> =
        names.iter().map(|name| (name.clone(), at_hand(name))).collect();
    let has_own = |name: &str, file: &std::path::Path| {
        store.approvals().iter().any(|approval| approval.name == name && approval.file == file)
    };
    let files: Vec<_> = files
        .into_iter()
        .map(|(name, file)| {
            let file = file.filter(|file| has_own(&name, file));
            (name, file)
        })
        .collect();
    let count = store
        .revoke(|approval| {
            files.iter().any(|(name, file)| {
                *name == approval.name && file.as_ref().is_none_or(|file| *file == approval.file)
            })
        })
        .map_err(|error| Refusal::usage(error.to_string()))?;
    let mut out = Output::new();
    writeln!(out, "Took back {count} {}.", if count == 1 { "approval" } else { "approvals" })?;
    out.flush()?;
    Ok(Exit::Done)
}

fn list(resolved: &Resolved, store: &TrustStore, json: bool) -> Result<Exit, Refusal> {
    let waiting = waiting(resolved);
    let mut out = Output::new();
    if json {
        let waiting = waiting.iter().map(|entry| {
            json!({"name": entry.name, "file": entry.place.file.to_string_lossy(), "digest": entry.digest,
                   "reason": entry.standing.to_string()})
        });
        let waiting: Vec<_> = waiting.collect();
        let all = json!({"schema": SCHEMA, "approved": store.approvals(), "waiting": waiting});
        writeln!(out, "{all:#}")?;
    } else {
        let mut rows = vec![["SERVER", "STATUS", "FILE"].map(String::from).to_vec()];
        rows.extend(waiting.iter().map(|entry| {
            let changed = matches!(store.verdict(entry), toolway_config::Verdict::Changed);
            let status = if changed { "waits: changed" } else { "waits" };
            vec![entry.name.clone(), status.to_owned(), entry.place.to_string()]
        }));
        let waits = |name: &str, file: &std::path::Path| {
            waiting.iter().any(|entry| entry.name == name && TrustStore::file_of(entry) == file)
        };
        let approved = store.approvals().iter().filter(|approval| !waits(&approval.name, &approval.file));
        rows.extend(approved.map(|approval| {
            vec![approval.name.clone(), "approved".to_owned(), approval.file.display().to_string()]
        }));
        if rows.len() == 1 {
            writeln!(out, "Nothing is approved, and nothing waits for approval.")?;
        } else {
            out.write_all(columns(&[Align::Left, Align::Left, Align::Left], &rows).as_bytes())?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn unknown(name: &str) -> Refusal {
    Refusal::usage(format!("no server is called {name:?}")).with_hint("toolway trust --list shows what waits")
}
