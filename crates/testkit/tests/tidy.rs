//! Rules of the house that no compiler checks: crate edges, module cycles, file shapes, documents in step.
//!
//! Every list of exceptions here may only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// What each crate may use of the workspace. `testkit` and `bench` may use anything.
const EDGES: [(&str, &[&str]); 11] = [
    ("secret", &[]),
    ("config", &["secret"]),
    ("wire", &["secret"]),
    ("transport", &["wire", "secret"]),
    ("guard", &["wire", "secret"]),
    ("auth", &["wire", "secret"]),
    ("proxy", &["wire", "transport", "guard", "secret"]),
    ("bridge", &["wire", "transport", "guard", "secret"]),
    ("agent", &["wire", "transport", "guard", "proxy", "bridge", "config", "auth", "secret"]),
    ("cli", &["wire", "transport", "guard", "proxy", "bridge", "agent", "config", "auth", "secret"]),
    ("xtask", &[]),
];
/// Lines of a file that should not be longer.
const LONG: usize = 400;
/// Longer files, with the length they may not pass.
const LONGER: [(&str, usize); 2] = [("crates/wire/src/lex.rs", 597), ("crates/wire/src/scan/sink.rs", 513)];
/// Pairs of modules that still use each other.
const CYCLES: [(&str, &str); 0] = [];
/// Code that decides and does nothing: no files, no network, no processes, no environment.
const PURE: [&str; 3] = ["crates/wire/src", "crates/guard/src/policy", "crates/guard/src/policy.rs"];
const EFFECTS: [&str; 6] = ["std::fs", "std::net", "std::process", "std::env", "std::io::", "tokio"];

#[test]
fn crates_depend_downward_only() -> Result<()> {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.into();
    let is_manifest = |path: &PathBuf| path.file_name().is_some_and(|name| name == "Cargo.toml");
    let manifests = files(&root().join("crates"), "toml").into_iter().filter(is_manifest);
    for manifest in manifests.chain([root().join("xtask/Cargo.toml")]) {
        let folder = manifest.parent().and_then(Path::file_name).context("a manifest has a folder")?;
        let folder = folder.to_string_lossy();
        let Some(allowed) = allowed.get(&*folder) else {
            ensure!(["testkit", "bench"].contains(&&*folder), "crate {folder} has no line in EDGES");
            continue;
        };
        for (section, used) in workspace_dependencies(&fs::read_to_string(&manifest)?) {
            let fits =
                allowed.contains(&used.as_str()) || (section == "dev-dependencies" && used == "testkit");
            ensure!(fits, "{folder} must not use {used} ({section})");
        }
    }
    Ok(())
}

/// (section, crate) of each `toolway-*` dependency of a manifest.
fn workspace_dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').rsplit('.').next().unwrap_or_default();
        } else if let Some(rest) = line.strip_prefix("toolway-") {
            let name = rest.split(['.', ' ', '=']).next().unwrap_or_default();
            found.push((section.to_owned(), name.to_owned()));
        }
    }
    found
}

#[test]
fn modules_of_a_crate_form_no_cycle() -> Result<()> {
    let mut closed = BTreeSet::new();
    for library in children(&root().join("crates")) {
        let source = library.join("src");
        let uses = module_uses(&source)?;
        let crate_name = library.file_name().context("a crate has a name")?.to_string_lossy().into_owned();
        for (module, used) in &uses {
            for other in used.iter().filter(|other| reaches(&uses, other, module)) {
                closed.insert((format!("{crate_name}::{module}"), format!("{crate_name}::{other}")));
            }
        }
    }
    let known: BTreeSet<(String, String)> =
        CYCLES.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    let new: Vec<_> = closed.difference(&known).collect();
    ensure!(new.is_empty(), "modules that use each other: {new:?}");
    let gone: Vec<_> = known.difference(&closed).collect();
    ensure!(gone.is_empty(), "no longer a cycle, take it off CYCLES: {gone:?}");
    Ok(())
}

type Uses = BTreeMap<String, BTreeSet<String>>;

/// Which top-level module names which other one through `crate::`, tests apart.
fn module_uses(source: &Path) -> Result<Uses> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for file in files(source, "rs") {
        let inside = file.strip_prefix(source)?;
        let top = inside.components().next().context("a file has a name")?;
        let top = top.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        let is_test = inside.file_name().is_some_and(|name| name == "tests.rs") || has_part(inside, "tests");
        if ["lib", "main"].contains(&top.as_str()) || is_test {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
        texts.entry(top).or_default().push_str(&code);
    }
    let modules: BTreeSet<String> = texts.keys().cloned().collect();
    let uses = texts.iter().map(|(module, code)| {
        let named =
            named_after_crate(code).into_iter().filter(|name| name != module && modules.contains(name));
        (module.clone(), named.collect())
    });
    Ok(uses.collect())
}

fn has_part(path: &Path, part: &str) -> bool {
    path.components().any(|component| component.as_os_str() == part)
}

/// The first names after `crate::`, those inside braces too.
fn named_after_crate(code: &str) -> Vec<String> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let list = match rest.strip_prefix('{') {
            Some(list) => first_level(list),
            None => vec![rest.to_owned()],
        };
        for item in list {
            let name: String =
                item.trim().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            names.push(name);
        }
    }
    names
}

/// The parts of `a::B, c::{D, E}};` that are separated at its own level.
fn first_level(list: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    for letter in list.chars() {
        match letter {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            _ => {}
        }
        if let Some(part) = parts.last_mut().filter(|_| letter != ',' || depth > 0) {
            part.push(letter);
        }
    }
    parts
}

fn reaches(uses: &Uses, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(module) = open.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            open.extend(uses.get(module).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

#[test]
fn files_are_short_or_on_the_list() -> Result<()> {
    let longer: BTreeMap<&str, usize> = LONGER.into();
    let mut unused: BTreeSet<&str> = longer.keys().copied().collect();
    let mut problems = Vec::new();
    for file in sources() {
        let name = relative(&file);
        let lines = fs::read_to_string(&file)?.lines().count();
        let limit = longer.get(name.as_str()).copied().unwrap_or(LONG);
        if lines > limit {
            problems.push(format!("{name} has {lines} lines, at most {limit}"));
        }
        if lines > LONG {
            unused.remove(name.as_str());
        }
    }
    problems.extend(unused.iter().map(|name| format!("{name} is short now: take it off LONGER")));
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

#[test]
fn files_begin_with_what_they_are_for() -> Result<()> {
    let mut problems = Vec::new();
    for file in sources() {
        // A file of unit tests says by its place what it is for.
        let is_tests = file.file_name().is_some_and(|name| name == "tests.rs");
        if !is_tests && !fs::read_to_string(&file)?.starts_with("//! ") {
            problems.push(relative(&file));
        }
        ensure!(
            file.file_name().is_none_or(|name| name != "mod.rs"),
            "{} has the name mod.rs",
            relative(&file)
        );
    }
    ensure!(problems.is_empty(), "no `//!` in the first line: {}", problems.join(", "));
    Ok(())
}

#[test]
fn pure_code_has_no_effects() -> Result<()> {
    let pure = PURE.map(|path| root().join(path));
    for file in sources().into_iter().filter(|file| pure.iter().any(|path| file.starts_with(path))) {
        let text = fs::read_to_string(&file)?;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for effect in EFFECTS {
            ensure!(!code.contains(effect), "{} uses {effect}", relative(&file));
        }
    }
    Ok(())
}

#[test]
fn only_the_binary_reads_the_environment() -> Result<()> {
    for file in sources() {
        let name = relative(&file);
        let is_library = name.starts_with("crates/") && name.contains("/src/");
        // The SDK has a composition of its own.
        let owners =
            ["crates/cli/", "crates/testkit/", "crates/bench/", "crates/agent/src/options/machine.rs"];
        let may = owners.iter().any(|owner| name.starts_with(owner));
        if !is_library || may {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        ensure!(!code.contains("env::var"), "{name} reads the environment");
        ensure!(!code.contains("process::exit"), "{name} ends the process");
    }
    Ok(())
}

/// `cargo xtask docs --check` compares the reference with the binary; here the README is compared with the reference.
#[test]
fn commands_of_the_readme_exist() -> Result<()> {
    let mut readme = fs::read_to_string(root().join("README.md")).context("README.md")?;
    readme.push_str(&fs::read_to_string(root().join("docs/sdk.md")).context("docs/sdk.md")?);
    let reference =
        fs::read_to_string(root().join("docs/cli.md")).context("docs/cli.md: run `cargo xtask docs`")?;
    let tasks = fs::read_to_string(root().join("xtask/src/main.rs"))?;
    let mut problems = Vec::new();
    for command in commands(&readme, "cargo xtask ") {
        let task = command.split_whitespace().next().unwrap_or_default();
        if !tasks.contains(&format!("\"{task}\" =>")) {
            problems.push(format!("cargo xtask {task}"));
        }
    }
    for command in commands(&readme, "toolway ") {
        let words: Vec<&str> = command.split(" -- ").next().unwrap_or_default().split_whitespace().collect();
        let Some(first) = words.first().filter(|word| !word.starts_with('-')) else { continue };
        let known = reference.contains(&format!("## toolway {first}\n"));
        let flags = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
        let unknown = flags.filter(|flag| !reference.contains(flag.split('=').next().unwrap_or(flag)));
        problems.extend(unknown.map(|flag| format!("toolway {first} {flag}")));
        if !known {
            problems.push(format!("toolway {first}"));
        }
    }
    ensure!(problems.is_empty(), "the README shows what does not exist: {}", problems.join(", "));
    Ok(())
}

/// What follows `program` on the lines of code blocks that begin with it.
fn commands(text: &str, program: &str) -> Vec<String> {
    let blocks = text.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).map(|line| line.trim_start_matches(['$', '>', ' ']));
    lines.filter_map(|line| line.strip_prefix(program)).map(str::to_owned).collect()
}

#[test]
fn links_between_documents_lead_somewhere() -> Result<()> {
    let mut broken = Vec::new();
    let documents = files(&root().join("docs"), "md").into_iter();
    let documents = documents
        .chain(children(&root()).into_iter().filter(|file| file.extension().is_some_and(|e| e == "md")));
    for document in documents {
        let text = fs::read_to_string(&document)?;
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let is_file = !target.is_empty() && !target.contains(':') && !target.contains(' ');
            if is_file && !document.with_file_name(target).exists() {
                broken.push(format!("{}: {link}", relative(&document)));
            }
        }
    }
    ensure!(broken.is_empty(), "links that lead nowhere: {}", broken.join(", "));
    Ok(())
}

/// A lock file of a machine with a mirror would send everyone else there.
#[test]
fn lock_files_of_the_peers_name_no_hosts() -> Result<()> {
    for lock in files(&root().join("interop/peers"), "json") {
        ensure!(!fs::read_to_string(&lock)?.contains("\"resolved\""), "{} names a host", relative(&lock));
    }
    for lock in files(&root().join("interop/peers"), "txt") {
        for line in fs::read_to_string(&lock)?.lines() {
            ensure!(
                line.contains("==") && !line.contains("://"),
                "{}: {line} is not pinned",
                relative(&lock)
            );
        }
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or_else(|| Path::new(".")).to_path_buf()
}

fn relative(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).to_string_lossy().replace('\\', "/")
}

/// The Rust files of the workspace and of its fuzz targets.
fn sources() -> Vec<PathBuf> {
    ["crates", "xtask", "fuzz"].iter().flat_map(|folder| files(&root().join(folder), "rs")).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let mut paths: Vec<PathBuf> = entries.unwrap_or_default();
    paths.sort();
    paths
}

/// Files below a folder by extension, without what is built or installed there.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in children(folder) {
        if path.is_dir() {
            let built = path.file_name().is_some_and(|name| name == "target" || name == "node_modules");
            found.extend(if built { Vec::new() } else { files(&path, extension) });
        } else if path.extension().is_some_and(|ending| ending == extension) {
            found.push(path);
        }
    }
    found
}

/// What docs/bridge.md numbers is tested under its number.
#[test]
fn every_statement_and_lesson_of_the_bridge_has_its_test() -> Result<()> {
    let mut sources = files(&root().join("crates/bridge"), "rs");
    sources.extend(files(&root().join("crates/cli/tests/bridge"), "rs"));
    let text: String = sources.iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
    let page = fs::read_to_string(root().join("docs/bridge.md"))?;
    let (statements, lessons) = page.split_once("\n## Lessons\n").context("the page has two lists")?;
    let mut missing = Vec::new();
    for (word, part, count) in [("statement", statements, 51), ("lesson", lessons, 40)] {
        for number in 1..=count {
            ensure!(part.contains(&format!("\n{number}. ")), "docs/bridge.md has no {word} {number}");
            let name = format!("fn {word}_{number:02}_");
            if !text.contains(&name) {
                missing.push(name);
            }
        }
    }
    ensure!(missing.is_empty(), "no test is named: {missing:?}");
    Ok(())
}

/// What docs/agents.md numbers is tested under its number. Signing in (23 to 26) is not there yet.
#[test]
fn every_statement_of_agents_has_its_test() -> Result<()> {
    let mut sources = files(&root().join("crates/agent"), "rs");
    sources.extend(files(&root().join("crates/cli/tests"), "rs"));
    let text: String = sources.iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
    let page = fs::read_to_string(root().join("docs/agents.md"))?;
    let mut missing = Vec::new();
    for number in (1..=47).filter(|number| !(23..=26).contains(number)) {
        ensure!(page.contains(&format!("\nA{number}. ")), "docs/agents.md has no statement A{number}");
        let name = format!("fn statement_a{number:02}_");
        if !text.contains(&name) {
            missing.push(name);
        }
    }
    ensure!(missing.is_empty(), "no test is named: {missing:?}");
    Ok(())
}
