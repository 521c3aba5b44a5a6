//! `toolway config show`.

use std::io::Write as _;

use serde_json::{Value, json};
use toolway_config::{Entry, Environment, Place, Resolved};

use super::{SCHEMA, described, load};
use crate::args::ShowConfigArgs;
use crate::border;
use crate::command::shell::Refusal;
use crate::compose;
use crate::exit::Exit;
use crate::render::Output;
use crate::show::{safe, whole_line};
use crate::table::{Align, columns};

pub(super) fn run(args: &ShowConfigArgs) -> Result<Exit, Refusal> {
    let resolved = load(&args.sources)?.resolved;
    let machine = compose::servers::machine(&compose::Environment::read())?;
    let wanted = |name: &str| args.servers.is_empty() || args.servers.iter().any(|server| server == name);
    if let Some(unknown) = args.servers.iter().find(|name| resolved.entry(name).is_none()) {
        let refusal = Refusal::usage(format!("no server is called {unknown:?}"));
        return Err(refusal.with_hint("toolway config show shows all, toolway config path shows the files"));
    }
    let entries: Vec<&Entry> = resolved.entries.iter().filter(|entry| wanted(&entry.name)).collect();
    let mut out = Output::new();
    if args.json {
        let report = format!("{:#}\n", json(&entries, &resolved, args.explain.then_some(&machine)));
        out.write_all(border::json(&report).as_bytes())?;
    } else if entries.is_empty() {
        writeln!(out, "No server is configured. toolway config path shows the files that are looked at.")?;
    } else {
        let pages = entries.iter().map(|entry| page(entry, &resolved, args.explain.then_some(&machine)));
        out.write_all(border::page(&pages.collect::<Vec<_>>().join("\n")).as_bytes())?;
    }
    out.flush()?;
    // What spoils a whole file stands under no server.
    for problem in resolved.problems.iter().filter(|problem| problem.server.is_none()) {
        let word = if problem.is_error() { "error" } else { "warning" };
        border::say(format_args!("{word}: {}", safe(&problem.to_string())));
    }
    Ok(Exit::Done)
}

/// One entry: a line about it, a line for each field, and what is wrong with it.
fn page(entry: &Entry, resolved: &Resolved, explain: Option<&Environment>) -> String {
    let mut rows = Vec::new();
    for (field, value) in entry.shown_fields() {
        let mut row = vec![format!("  {}", whole_line(&field)), whole_line(&value)];
        if let Some(machine) = explain {
            row.push(place_of(entry, &field).map(ToString::to_string).unwrap_or_default());
            row.push(origins(entry, &field, machine).join(", "));
        }
        rows.push(row);
    }
    let align = [Align::Left; 4];
    let width = if explain.is_some() { 4 } else { 2 };
    let fields = columns(align.get(..width).unwrap_or_default(), &rows);
    let problems: Vec<String> = own_problems(entry, resolved)
        .map(|problem| {
            let word = if problem.is_error() { "error" } else { "warning" };
            let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("  {word}: {}{hint}\n", bare(problem))
        })
        .collect();
    let problems = problems.concat();
    let explained =
        explain.map(|_| format!("  conventions of {}, digest {}\n", entry.dialect.name(), entry.digest));
    let explained = explained.filter(|_| !entry.digest.is_empty()).unwrap_or_default();
    format!(
        "{}: {}, from {}, {}\n{fields}{problems}{explained}",
        entry.name, entry.standing, entry.source, entry.place
    )
}

/// The problem without the server's name and its place, which stand above it; a field is enough of a place.
fn bare(problem: &toolway_config::Problem) -> String {
    let field = problem.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
    let line = problem.at.map(|at| format!("line {}: ", at.line)).unwrap_or_default();
    format!("{line}{field}{}", problem.message)
}

fn own_problems<'a>(
    entry: &'a Entry,
    resolved: &'a Resolved,
) -> impl Iterator<Item = &'a toolway_config::Problem> {
    let of_entry = |problem: &&toolway_config::Problem| {
        problem.server.as_ref() == Some(&entry.name) && problem.file == entry.place.file
    };
    resolved.problems.iter().filter(of_entry)
}

/// Where a field stands; some are known under another client's name for them.
fn place_of<'a>(entry: &'a Entry, field: &str) -> Option<&'a Place> {
    let others: &[&str] = match field {
        "url" => &["serverUrl", "httpUrl"],
        "enabled" => &["disabled"],
        "tools.allow" => &["tools", "enabledTools", "enabled_tools", "includeTools"],
        "tools.deny" => &["disabledTools", "disabled_tools", "excludeTools"],
        "startupTimeoutMs" => &["startupTimeoutSec"],
        _ => &[],
    };
    let mut named = std::iter::once(field).chain(others.iter().copied());
    named.find_map(|name| entry.provenance.get(name))
}

/// Where the values of a field's variables come from: never the values.
fn origins(entry: &Entry, field: &str, machine: &Environment) -> Vec<String> {
    let own = entry.variables().into_iter().filter(|(of, _, _)| of == field);
    own.map(|(_, name, has_default)| match machine.var(&name) {
        Some("") if has_default => format!("{name} is empty: default"),
        Some("") => format!("{name} is empty"),
        Some(_) => format!("{name} from the environment"),
        None if has_default => format!("{name} not set: default"),
        None => format!("{name} not set"),
    })
    .collect()
}

fn json(entries: &[&Entry], resolved: &Resolved, explain: Option<&Environment>) -> Value {
    let servers = entries.iter().map(|entry| {
        let fields = entry.shown_fields().into_iter().map(|(field, value)| {
            let mut one = json!({"field": field, "value": value});
            if let (Some(machine), Some(members)) = (explain, one.as_object_mut()) {
                let place = place_of(entry, &field);
                let origins = origins(entry, &field, machine);
                members.insert("file".to_owned(), json!(place.map(|place| place.file.to_string_lossy())));
                members.insert("line".to_owned(), json!(place.and_then(|place| place.at).map(|at| at.line)));
                members.insert("variables".to_owned(), json!(origins));
            }
            one
        });
        json!({
            "name": entry.name,
            "standing": entry.standing.name(),
            "reason": entry.standing.to_string(),
            "source": entry.source.name(),
            "file": (!entry.place.file.as_os_str().is_empty()).then(|| entry.place.file.to_string_lossy()),
            "line": entry.place.at.map(|at| at.line),
            "dialect": entry.dialect.name(),
            "digest": (!entry.digest.is_empty()).then_some(&entry.digest),
            "fields": fields.collect::<Vec<_>>(),
        })
    });
    let problems: Vec<Value> = resolved.problems.iter().map(described).collect();
    json!({"schema": SCHEMA, "servers": servers.collect::<Vec<_>>(), "problems": problems})
}
