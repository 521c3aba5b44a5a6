//! `toolway tools`: the tools of a server or of all, and one tool with its arguments.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use toolway_proxy::gateway::{RawLists, ServerConfig, ServerState};

use super::shell::{
    Choice, Definition, Refusal, Shell, Wanted, find_tool, offered, remarks, start_all, told,
};
use crate::args::ToolsArgs;
use crate::exit::Exit;
use crate::show::{one_line, safe};
use crate::table::{Align, columns};

/// The most characters of a name.
const MOST_NAME: usize = 64;

/// Shows them.
pub(super) fn run(args: &ToolsArgs) -> Exit {
    told(tools(args))
}

/// A server and what it offers.
struct Offer {
    name: String,
    tools: Vec<Definition>,
    notes: Vec<String>,
}

fn tools(args: &ToolsArgs) -> Result<Exit, Refusal> {
    let shell = Shell::new(&args.talk)?;
    let given = args.ad_hoc.command.is_some() || args.ad_hoc.url.is_some();
    if !given && args.words.is_empty() {
        return all(&shell, args);
    }
    let choice = shell.choose(&args.ad_hoc, &args.sources, &args.words)?;
    let lists = Shell::block_on(async {
        let mut session = shell.open(&choice.config).await?;
        let lists = session.lists().await;
        session.close().await;
        lists
    })?;
    let offer = offer(&choice.config, &lists);
    match choice.words {
        [] => print(&shell, &[offer], false),
        [tool] => one(&shell, &choice, &offer, tool),
        _ => Err(Refusal::usage("one tool at a time")),
    }
}

fn offer(config: &ServerConfig, lists: &RawLists) -> Offer {
    Offer {
        name: config.name.clone(),
        tools: offered(&lists.tools, &config.filter),
        notes: remarks(config, lists),
    }
}

/// Every server that may be started.
fn all(shell: &Shell, args: &ToolsArgs) -> Result<Exit, Refusal> {
    let servers = shell.servers(&args.sources)?;
    let plans = servers.entries.iter().enumerate();
    let configs: Vec<(usize, Arc<ServerConfig>)> =
        plans.filter_map(|(index, entry)| Some((index, shell.timed(entry.plan.as_ref().ok()?)))).collect();
    for entry in &servers.entries {
        if let Err(state) = &entry.plan
            && !matches!(state, ServerState::Shadowed { .. } | ServerState::Disabled { .. })
        {
            note(&format!("{}: {state}", entry.name));
        }
    }
    if configs.is_empty() {
        // What waits for approval only is another matter than what is not there.
        let untrusted = servers.entries.iter().find_map(|entry| match &entry.plan {
            Err(state @ ServerState::Untrusted { .. }) => Some(Refusal::state(&entry.name, state)),
            _ => None,
        });
        if let Some(refusal) = untrusted {
            return Err(refusal);
        }
        return Err(Refusal::usage("no server is configured that may be started")
            .with_hint("toolway list shows what is configured, and why it is not started"));
    }
    let started = Shell::block_on(start_all(shell, configs, Wanted::Lists))?;
    let (mut offers, mut refusal) = (Vec::new(), None);
    for started in started {
        let Some(Ok(config)) = servers.entries.get(started.index).map(|entry| &entry.plan) else { continue };
        if let Some(lists) = started.lists {
            offers.push(offer(config, &lists));
        } else {
            note(&format!("{}: {}", config.name, started.state));
            refusal.get_or_insert_with(|| Refusal::state(&config.name, &started.state));
        }
    }
    match refusal {
        Some(refusal) if offers.is_empty() => Err(refusal),
        _ => print(shell, &offers, true),
    }
}

fn note(text: &str) {
    crate::border::say(format_args!("note: {}", safe(text)));
}

fn print(shell: &Shell, offers: &[Offer], named: bool) -> Result<Exit, Refusal> {
    if shell.json {
        let servers: Vec<Value> = offers
            .iter()
            .map(|offer| {
                let tools: Vec<&Value> = offer.tools.iter().map(|tool| &tool.value).collect();
                json!({ "name": offer.name, "tools": tools, "notes": offer.notes })
            })
            .collect();
        shell.print_json(&json!({ "schema": 1, "servers": servers }))?;
        return Ok(Exit::Done);
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for offer in offers {
        for tool in &offer.tools {
            let server = named.then(|| one_line(&offer.name, MOST_NAME));
            let own = [one_line(tool.name(), MOST_NAME), tool.summary().to_owned()];
            rows.push(server.into_iter().chain(own).collect());
        }
        offer.notes.iter().for_each(|text| note(&format!("{}: {text}", offer.name)));
    }
    if rows.is_empty() {
        note("there are no tools");
        return Ok(Exit::Done);
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count() + 2).max().unwrap_or(0)
    };
    // What is left of a terminal's width; a pipe takes it whole.
    let before: usize = (0..=usize::from(named)).map(width).sum();
    let left = shell.terminal.width.saturating_sub(before).max(20);
    let most = if shell.terminal.out { left } else { usize::MAX };
    for row in &mut rows {
        if let Some(summary) = row.last_mut() {
            *summary = one_line(summary, most);
        }
    }
    shell.print(&columns(&[Align::Left; 3], &rows))?;
    Ok(Exit::Done)
}

/// One tool, whole.
fn one(shell: &Shell, choice: &Choice<'_>, offer: &Offer, tool: &str) -> Result<Exit, Refusal> {
    let found = find_tool(choice, tool, &offer.tools)?;
    if shell.json {
        shell.print_json(&found.value)?;
        return Ok(Exit::Done);
    }
    let mut page = format!("{} {}\n", offer.name, found.name());
    if let Some(text) = found.description() {
        write!(page, "\n{}\n", text.trim()).unwrap_or_default();
    }
    let arguments = found.arguments();
    if !arguments.is_empty() {
        page.push_str("\nArguments:\n");
        page.push_str(&columns(&[Align::Left; 3], &arguments));
    }
    write!(page, "\ntoolway call {} {}{}\n", choice.spelled, found.name(), found.example())
        .unwrap_or_default();
    shell.print(&page)?;
    Ok(Exit::Done)
}
