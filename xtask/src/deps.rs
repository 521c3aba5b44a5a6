//! `cargo xtask deps`: what the binary is made of. Licences, sources, duplicates and the number of crates.
//!
//! cargo-deny checks the same and more, but takes five minutes to build on a small machine and its advisories need a
//! network that CI may not have. These four rules are read from `cargo metadata` in a second.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::Workspace;

/// Licences that MIT OR Apache-2.0 software may be linked with.
const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];
/// Crates that may be there in two versions: small, and split by the ecosystem. This list may only shrink.
const TWICE: [&str; 8] =
    ["base64", "foldhash", "getrandom", "syn", "thiserror", "thiserror-impl", "windows-link", "windows-sys"];
/// Third-party crates of the binary on all platforms together, build and proc-macro crates included. Raise it with a
/// reason in the commit. A hundred of them came with agents: the library for models brings its own HTTP client (60), the Agent
/// Client Protocol and its schema 20, the rest is `SQLite`, search and the sandbox; Linux builds 270.
/// Signing in added a dozen: `oauth2` with its random numbers, and libdbus for the keyring of a Linux desktop.
const BUDGET: usize = 328;

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask deps");
    }
    let metadata = workspace.cargo(&["metadata", "--format-version", "1", "--locked"]);
    let metadata = metadata.output(std::time::Duration::from_mins(2))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata wrote no JSON")?;
    let tree =
        ["tree", "-p", "toolway", "-e", "normal,build", "--target", "all", "--prefix", "none", "--locked"];
    let tree = workspace.cargo(&tree).output(std::time::Duration::from_mins(2))?;
    let crates = shipped(&metadata, &tree)?;
    let problems = problems(&crates, &TWICE);
    println!("dependencies of the binary: {} crates, at most {BUDGET}", crates.len());
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// A crate that is not ours.
#[derive(Debug)]
struct Foreign {
    name: String,
    version: String,
    licence: String,
    source: String,
}

/// Everything that the binary package needs, on every platform, without what only tests need. `cargo tree` says what is
/// really built: the graph in the metadata also has optional crates that nobody switched on.
fn shipped(metadata: &Value, tree: &str) -> Result<Vec<Foreign>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let built: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    let foreign = packages.iter().filter(|package| !package["source"].is_null()).map(described);
    Ok(foreign.filter(|each| built.contains(&(each.name.as_str(), each.version.as_str()))).collect())
}

/// `name v1.2.3 (proc-macro)`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

fn described(package: &Value) -> Foreign {
    let text = |member: &str| package[member].as_str().unwrap_or_default().to_owned();
    Foreign { name: text("name"), version: text("version"), licence: text("license"), source: text("source") }
}

fn problems(crates: &[Foreign], twice: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for each in crates {
        versions.entry(&each.name).or_default().push(&each.version);
        if !allowed(&each.licence) {
            found.push(format!(
                "{} {}: licence {:?} is not on the list",
                each.name, each.version, each.licence
            ));
        }
        if !each.source.starts_with("registry+") {
            found.push(format!(
                "{} {}: comes from {}, not from the registry",
                each.name, each.version, each.source
            ));
        }
    }
    for (name, versions) in &versions {
        if versions.len() > 1 && !twice.contains(name) {
            found.push(format!("{name}: {} versions: {}", versions.len(), versions.join(", ")));
        }
    }
    for name in twice.iter().filter(|name| versions.get(*name).is_none_or(|versions| versions.len() < 2)) {
        found.push(format!("{name} is no longer there twice: take it off the list"));
    }
    if crates.len() > BUDGET {
        found.push(format!("{} crates, but the budget is {BUDGET}", crates.len()));
    }
    found
}

/// True when one alternative of the expression has only allowed licences.
fn allowed(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    let all = |part: &str| part.split(" AND ").all(|licence| LICENCES.contains(&licence.trim()));
    if expression.contains('(') && expression.contains(" AND ") {
        // `(MIT OR Apache-2.0) AND Unicode-3.0`: every factor needs one allowed choice.
        return flat
            .split(" AND ")
            .all(|factor| factor.split(" OR ").any(|one| LICENCES.contains(&one.trim())));
    }
    flat.split(" OR ").any(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions() {
        assert!(allowed("MIT OR Apache-2.0"));
        assert!(allowed("Unlicense/MIT"));
        assert!(allowed("Apache-2.0 AND ISC"));
        assert!(allowed("(MIT OR GPL-3.0) AND Unicode-3.0"));
        assert!(allowed("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT"));
        assert!(!allowed("GPL-3.0"));
        assert!(!allowed("MIT AND GPL-3.0"));
        assert!(!allowed("(MIT OR Apache-2.0) AND GPL-3.0"));
        assert!(!allowed(""));
    }

    #[test]
    fn duplicates_and_foreign_sources_are_problems() {
        let each = |version: &str, source: &str| Foreign {
            name: "a".into(),
            version: version.into(),
            licence: "MIT".into(),
            source: source.into(),
        };
        let one = [each("1.0.0", "registry+x")];
        assert_eq!(problems(&one, &[]), Vec::<String>::new());
        assert_eq!(problems(&one, &["a"]).len(), 1, "the list of exceptions shrinks");
        let two = [each("1.0.0", "registry+x"), each("2.0.0", "git+y")];
        assert_eq!(problems(&two, &[]).len(), 2);
        assert_eq!(problems(&two, &["a"]).len(), 1);
    }
}
