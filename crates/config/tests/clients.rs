//! Files of every client become entries of Toolway's own, and these the same files again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use toolway_config::{
    CLIENTS, Change, Client, ClientFile, ExportOutcome, Format, ImportOutcome, ImportPlan, InFile, Node,
    Scope, check_own, edit, find, plan_export, plan_import, read, read_bytes,
};

type Failure = Box<dyn std::error::Error>;
type Entries = Vec<(String, Map<String, Json>)>;

/// A client's file of the tests, and what it becomes.
struct Case {
    client: &'static Client,
    file: ClientFile,
    bytes: Vec<u8>,
    format: Format,
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

fn cases() -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for client in CLIENTS {
        let names = ["json", "jsonc", "toml", "yaml"].map(|end| here().join(format!("{}.{end}", client.id)));
        let package = here().join(client.id).join("mcp.json");
        let path = names.into_iter().chain([package]).find(|path| path.exists());
        let path = path.ok_or_else(|| format!("{} has no file in the tests", client.id))?;
        let bytes = read_bytes(&path).map_err(|problem| problem.to_string())?;
        let file = ClientFile::given(path, Scope::User);
        let format = file.format;
        cases.push(Case { client, file, bytes, format });
    }
    Ok(cases)
}

fn found(case: &Case, bytes: &[u8]) -> Result<InFile, Failure> {
    find(case.client, &case.file, bytes, Path::new("/project"))
        .map_err(|problems| format!("{problems:?}").into())
}

fn tree(bytes: &[u8], format: Format) -> Result<Node, Failure> {
    read(bytes, format).map_err(|problems| format!("{problems:?}").into())
}

fn edited(bytes: &[u8], format: Format, changes: &[Change]) -> Result<Vec<u8>, Failure> {
    edit(bytes, format, changes).map(|edited| edited.bytes).map_err(|problems| format!("{problems:?}").into())
}

/// Toolway's own file after the import.
fn imported(case: &Case) -> Result<(Vec<u8>, ImportPlan), Failure> {
    let found = found(case, &case.bytes)?;
    let plan = plan_import(None, found.found, &found.inputs);
    Ok((edited(b"", Format::Jsonc, &plan.changes)?, plan))
}

fn entries(own: &[u8]) -> Result<(Entries, Vec<Json>), Failure> {
    let root = tree(own, Format::Jsonc)?.to_json();
    let servers = root["mcpServers"].as_object().ok_or("no servers")?;
    let entries =
        servers.iter().map(|(name, own)| Ok((name.clone(), own.as_object().ok_or("no object")?.clone())));
    let inputs = root["inputs"].as_array().cloned().unwrap_or_default();
    Ok((entries.collect::<Result<_, Failure>>()?, inputs))
}

/// The client's file without the servers that were imported.
fn emptied(case: &Case) -> Result<Vec<u8>, Failure> {
    let root = tree(&case.bytes, case.format)?;
    let mut changes = Vec::new();
    for found in found(case, &case.bytes)?.found {
        let name = found.name.split_once("__").map_or(found.name.as_str(), |(_, name)| name);
        let roots: [&[&str]; 7] = [
            &["mcpServers"],
            &["servers"],
            &["mcp_servers"],
            &["mcp"],
            &["context_servers"],
            &["extensions"],
            &["projects", "/project", "mcpServers"],
        ];
        let path =
            roots.iter().map(|path| [path, &[name][..]].concat()).find(|path| root.at_path(path).is_some());
        match path {
            Some(path) => changes.push(Change::remove(&path)),
            None => changes.push(Change::set(&["mcpServers"], Json::Array(Vec::new()))),
        }
    }
    edited(&case.bytes, case.format, &changes)
}

#[test]
fn every_server_is_imported_under_its_name() -> Result<(), Failure> {
    for case in cases()? {
        let (_, plan) = imported(&case)?;
        assert!(!plan.lines.is_empty(), "{}", case.client.id);
        for line in &plan.lines {
            let fits = matches!(&line.outcome, ImportOutcome::Added { name }
                if *name == line.found.name.replace(' ', "-"));
            assert!(fits, "{}: {line:?}", case.client.id);
        }
        let problems = found(&case, &case.bytes)?.problems;
        let told: Vec<String> = problems.iter().map(toolway_config::Problem::text).collect();
        let expected: &[&str] = match case.client.id {
            "goose" => &["server \"developer\": is an extension of the type \"builtin\", and no MCP server"],
            "zed" => &["server \"from-extension\": is an extension of the client's own, and no MCP server"],
            "claude-code" => &["1 servers of other projects are left alone"],
            _ => &[],
        };
        assert_eq!(told, expected, "{}", case.client.id);
    }
    Ok(())
}

#[test]
fn what_a_file_becomes_is_as_reviewed() -> Result<(), Failure> {
    for case in cases()? {
        let (own, _) = imported(&case)?;
        let expected = here().join("imported").join(format!("{}.json", case.client.id));
        expect_test::expect_file![expected].assert_eq(&String::from_utf8(own)?);
    }
    Ok(())
}

#[test]
fn what_was_imported_is_understood_by_the_reader() -> Result<(), Failure> {
    for case in cases()? {
        for (name, own) in entries(&imported(&case)?.0)?.0 {
            let problems: Vec<String> = check_own(&name, &own).iter().map(ToString::to_string).collect();
            assert!(problems.is_empty(), "{}: {problems:?}", case.client.id);
        }
    }
    Ok(())
}

#[test]
fn exporting_over_the_file_it_came_from_changes_nothing() -> Result<(), Failure> {
    for case in cases()? {
        let (entries, inputs) = entries(&imported(&case)?.0)?;
        let root = tree(&case.bytes, case.format)?;
        let plan = plan_export(case.client, Some(&root), &entries, &inputs, false);
        assert!(plan.changes.is_empty(), "{}: {:?}", case.client.id, plan.changes);
        for line in &plan.lines {
            assert_eq!(line.outcome, ExportOutcome::Same, "{}: {line:?}", case.client.id);
            assert!(line.left_out.is_empty(), "{}: {line:?}", case.client.id);
        }
    }
    Ok(())
}

#[test]
fn a_file_whose_servers_are_gone_is_equal_again_after_the_export() -> Result<(), Failure> {
    for case in cases()? {
        let (entries, inputs) = entries(&imported(&case)?.0)?;
        let empty = emptied(&case)?;
        let root = tree(&empty, case.format)?;
        assert!(found(&case, &empty)?.found.is_empty(), "{}", case.client.id);
        let plan = plan_export(case.client, Some(&root), &entries, &inputs, false);
        assert!(
            plan.lines.iter().all(|line| line.outcome == ExportOutcome::Added),
            "{}: {:?}",
            case.client.id,
            plan.lines
        );
        let full = edited(&empty, case.format, &plan.changes)?;
        assert_eq!(
            tree(&full, case.format)?.to_json(),
            tree(&case.bytes, case.format)?.to_json(),
            "{}",
            case.client.id
        );
    }
    Ok(())
}

#[test]
fn a_new_file_holds_the_same_servers() -> Result<(), Failure> {
    for case in cases()? {
        let (entries, inputs) = entries(&imported(&case)?.0)?;
        let plan = plan_export(case.client, None, &entries, &inputs, false);
        let new = edited(b"", case.format, &plan.changes)?;
        let (before, after) = (found(&case, &case.bytes)?, found(&case, &new)?);
        assert_eq!(before.inputs, after.inputs, "{}", case.client.id);
        let servers = |found: &InFile| -> Vec<String> {
            let server = |found: &toolway_config::Found| {
                let own = Json::Object(found.own.clone());
                let unknown: BTreeSet<&String> = found.unknown.iter().collect();
                format!("{} {:?} {:?} {own} {unknown:?}", found.name, found.home, found.dialect)
            };
            found.found.iter().map(server).collect()
        };
        let sorted = |found: &InFile| servers(found).into_iter().collect::<BTreeSet<_>>();
        // What is switched off by being absent from a list cannot be seen without the list.
        if case.client.id != "gemini" {
            assert_eq!(
                sorted(&before),
                sorted(&after),
                "{}\n{}",
                case.client.id,
                String::from_utf8_lossy(&new)
            );
        }
    }
    Ok(())
}

#[test]
fn comments_outside_of_the_servers_survive_an_export() -> Result<(), Failure> {
    for (id, comments) in [
        ("cursor", &["// shared by the whole team"][..]),
        ("zed", &["// Zed settings"]),
        ("codex", &["# my settings", "# the large one"]),
        ("goose", &["# goose", "# which model", "# built in", "# the end"]),
        ("continue", &["# the usual"]),
    ] {
        let case = cases()?.into_iter().find(|case| case.client.id == id).ok_or("no such client")?;
        let (entries, inputs) = entries(&imported(&case)?.0)?;
        let empty = emptied(&case)?;
        let plan = plan_export(case.client, Some(&tree(&empty, case.format)?), &entries, &inputs, false);
        let full = String::from_utf8(edited(&empty, case.format, &plan.changes)?)?;
        for comment in comments {
            assert!(full.contains(comment), "{id}: {comment}\n{full}");
        }
    }
    Ok(())
}

#[test]
fn every_servers_way_through_every_other_client_is_whole_or_told() -> Result<(), Failure> {
    for case in cases()? {
        let (entries, inputs) = entries(&imported(&case)?.0)?;
        for client in CLIENTS {
            let plan = plan_export(client, None, &entries, &inputs, false);
            assert_eq!(plan.lines.len(), entries.len());
            if plan.changes.is_empty() {
                assert!(plan.lines.iter().all(|line| matches!(line.outcome, ExportOutcome::Refused(_))));
                continue;
            }
            let other = Case {
                client,
                file: ClientFile::given(PathBuf::from("x.json"), Scope::User),
                bytes: edited(b"", Format::Jsonc, &plan.changes)?,
                format: Format::Jsonc,
            };
            let back = found(&other, &other.bytes)?;
            for line in &plan.lines {
                let there = back.found.iter().any(|found| line.theirs.ends_with(&found.name));
                let expected = matches!(line.outcome, ExportOutcome::Added);
                assert_eq!(
                    there, expected,
                    "{} to {}: {line:?}\n{:?}",
                    case.client.id, client.id, back.problems
                );
            }
        }
    }
    Ok(())
}
