//! Owns the files that hold permission rules, of every chosen source: `permissions` with `allow` and `deny`, and the two
//! allow lists of `permissions.json`. What cannot be read never opens anything.

use std::path::{Path, PathBuf};

use toolway_config::{Environment, Format, Node, Problem, SettingSource, read_bytes, read_tolerant};

use super::rule::{PermissionRules, Rule};
use crate::sources::Sources;

/// No more rules of one file.
const MOST: usize = 2000;

/// Toolway's own file of the user's rules, to which lasting answers are written.
pub(super) fn user_file(environment: &Environment) -> PathBuf {
    environment.config_dir.join("permissions.json")
}

impl PermissionRules {
    /// Reads the rules of the chosen sources. It waits for the disk.
    ///
    /// The project's: `.toolway/permissions.json`, `.cursor/cli.json` from the project's top to the agent's folder,
    /// `.cursor/permissions.json`. The user's: Toolway's own `permissions.json`, `~/.cursor/cli-config.json` (also below
    /// `$XDG_CONFIG_HOME/cursor`), `~/.cursor/permissions.json`. The administrator's: `permissions.json`.
    pub fn load(sources: &Sources) -> Self {
        let mut rules = Self::default();
        let mut seen = Vec::new();
        for (path, source) in candidates(sources) {
            let identity = path.canonicalize().unwrap_or_else(|_| path.clone());
            if path.symlink_metadata().is_err() || seen.contains(&identity) {
                continue;
            }
            seen.push(identity);
            let mut read = Self::default();
            read.file(&path);
            if source == SettingSource::Project && !sources.trust_project && !read.allow.is_empty() {
                read.allow.clear();
                let problem = Problem::warning("what the project allows does not count until it is trusted");
                read.warnings.push(problem.file(&path));
            }
            rules = rules.and(read);
        }
        rules
    }

    fn file(&mut self, path: &Path) {
        let bytes = match read_bytes(path) {
            Ok(bytes) => bytes,
            Err(problem) => return self.doubts.push(problem.file(path)),
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match read_tolerant(&bytes, Format::Jsonc) {
            Ok((node, doubled)) => {
                let of_rules = |problem: &Problem| {
                    problem.field.as_deref().is_some_and(|at| at.starts_with("/permissions"))
                };
                self.doubts.extend(doubled.into_iter().filter(of_rules).map(|problem| problem.file(path)));
                self.node(&node, path);
            }
            Err(problems) => self.doubts.extend(problems.into_iter().map(|problem| problem.file(path))),
        }
    }

    fn node(&mut self, node: &Node, path: &Path) {
        if node.members().is_none() {
            self.doubts.push(Problem::error("must be an object").file(path).at(node.at));
            return;
        }
        if let Some(permissions) = node.get("permissions") {
            self.permissions(permissions, path);
        }
        for (name, kind) in [("mcpAllowlist", "Mcp"), ("terminalAllowlist", "Shell")] {
            let items = node.get(name).and_then(Node::items).unwrap_or_default();
            for item in items.iter().take(MOST) {
                // Items that are no strings count for nothing there.
                let Some(text) = item.as_str() else { continue };
                self.allowed(&format!("{kind}({text})"), item, path, name);
            }
        }
        if let Some(guidance) = node.get("autoRun") {
            let problem = Problem::warning("is not used: no model judges calls here").field("autoRun");
            self.warnings.push(problem.file(path).at(guidance.at).hint("write rules to allow and deny"));
        }
    }

    fn permissions(&mut self, node: &Node, path: &Path) {
        let fault = |message: &str, node: &Node, field: &str| {
            Problem::error(message).file(path).at(node.at).field(field)
        };
        let Some(members) = node.members() else {
            return self.doubts.push(fault("must be an object", node, "permissions"));
        };
        for (key, value) in members {
            let field = format!("permissions.{}", key.name);
            let is_deny = key.name == "deny";
            if !is_deny && key.name != "allow" {
                let problem = Problem::warning("is not known").file(path).at(key.at).field(field);
                self.warnings.push(problem.hint("permissions has allow and deny"));
                continue;
            }
            let items = value.items().filter(|items| items.len() <= MOST);
            let Some(items) = items else {
                let problem = fault("must be a list of at most 2000 rules", value, &field);
                if is_deny {
                    self.doubts.push(problem);
                } else {
                    self.warnings.push(problem);
                }
                continue;
            };
            for item in items {
                match item.as_str() {
                    Some(text) if is_deny => match Rule::parse(text, &place(path, item)) {
                        Ok(rule) => self.deny.push(rule),
                        Err(message) => {
                            self.doubts.push(fault(&format!("{text:?}: {message}"), item, &field));
                        }
                    },
                    Some(text) => self.allowed(text, item, path, &field),
                    None if is_deny => self.doubts.push(fault("a rule is a string", item, &field)),
                    None => self.warnings.push(fault("a rule is a string", item, &field)),
                }
            }
        }
    }

    fn allowed(&mut self, text: &str, item: &Node, path: &Path, field: &str) {
        match Rule::parse(text, &place(path, item)) {
            Ok(rule) => self.allow.push(rule),
            Err(message) => {
                let problem = Problem::warning(format!("{text:?}: {message}"));
                self.warnings.push(problem.file(path).at(item.at).field(field));
            }
        }
    }
}

fn place(path: &Path, node: &Node) -> String {
    format!("{}:{}", path.display(), node.at.line)
}

fn candidates(sources: &Sources) -> Vec<(PathBuf, SettingSource)> {
    let mut files = Vec::new();
    if sources.has(SettingSource::Mdm) {
        let dirs = &sources.environment.managed_dirs;
        files.extend(dirs.iter().map(|dir| (dir.join("permissions.json"), SettingSource::Mdm)));
    }
    if sources.has(SettingSource::Project) {
        let mut paths = vec![sources.root.join(".toolway/permissions.json")];
        let mut folders: Vec<&Path> =
            sources.cwd.ancestors().take_while(|folder| folder.starts_with(&sources.root)).collect();
        folders.reverse();
        paths.extend(folders.into_iter().map(|folder| folder.join(".cursor/cli.json")));
        paths.push(sources.root.join(".cursor/permissions.json"));
        files.extend(paths.into_iter().map(|path| (path, SettingSource::Project)));
    }
    if sources.has(SettingSource::User) {
        let mut paths = vec![user_file(&sources.environment)];
        if let Some(xdg) = sources.environment.set_var("XDG_CONFIG_HOME").map(PathBuf::from) {
            paths.extend(xdg.is_absolute().then(|| xdg.join("cursor/cli-config.json")));
        }
        if let Some(dir) = sources.user_dir() {
            paths.extend([dir.join("cli-config.json"), dir.join("permissions.json")]);
        }
        files.extend(paths.into_iter().map(|path| (path, SettingSource::User)));
    }
    files
}
