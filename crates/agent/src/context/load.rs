//! Owns which folders are looked into for each chosen source, and what stands above what.

use std::path::{Path, PathBuf};

use toolway_config::{Node, PluginRoot, Problem, SettingSource, Value, plugin_roots};

use super::walk::Reader;
use super::{ContextSources, RuleText, rules, skills, subagents};
use crate::sources::Sources;

/// Folders of skills, below a project's top and below the user's home.
const SKILLS: [&str; 3] = [".toolway/skills", ".cursor/skills", ".agents/skills"];
/// Folders of subagents, in the same places.
const SUBAGENTS: [&str; 2] = [".toolway/agents", ".cursor/agents"];

impl ContextSources {
    /// Reads what the chosen sources have; nothing else is opened. It waits for the disk.
    pub fn load(sources: &Sources) -> Self {
        let mut this = Self::default();
        let mut reader = Reader::default();
        let mut of_plugins = Vec::new();
        // Of two with one name the project's counts before the user's, and that before a plugin's.
        if sources.has(SettingSource::Project) {
            this.project = Some(sources.root.clone());
            this.definitions(&sources.root, &mut reader);
        }
        let home = &sources.environment.home;
        if sources.has(SettingSource::User) && !home.as_os_str().is_empty() {
            this.definitions(home, &mut reader);
            let own = &sources.environment.config_dir;
            this.folders(&own.join("skills"), &own.join("agents"), &mut reader);
            this.rules.extend(rules::of_rules_folder(
                &home.join(".cursor/rules"),
                &sources.root,
                &mut reader,
            ));
        }
        if sources.has(SettingSource::Plugins) {
            let (plugins, problems) = plugin_roots(&sources.root, &sources.environment);
            this.diagnostics.extend(problems);
            for plugin in plugins {
                of_plugins.extend(this.plugin(&plugin, &sources.root, &mut reader));
            }
        }
        this.rules.extend(of_plugins);
        if sources.has(SettingSource::Project) {
            for folder in rules::folders_down(&sources.root, &sources.cwd) {
                this.rules.extend(rules::of_folder(&folder, folder == sources.root, &mut reader));
            }
        }
        this.diagnostics.append(&mut reader.problems);
        this
    }

    fn definitions(&mut self, base: &Path, reader: &mut Reader) {
        for folder in SKILLS {
            let found = skills::of_folder(&base.join(folder), reader);
            skills::add(&mut self.skills, found, &mut self.diagnostics);
        }
        for folder in SUBAGENTS {
            let found = subagents::of_folder(&base.join(folder), reader);
            subagents::add(&mut self.subagents, found, &mut self.diagnostics);
        }
    }

    fn folders(&mut self, of_skills: &Path, of_subagents: &Path, reader: &mut Reader) {
        let found = skills::of_folder(of_skills, reader);
        skills::add(&mut self.skills, found, &mut self.diagnostics);
        let found = subagents::of_folder(of_subagents, reader);
        subagents::add(&mut self.subagents, found, &mut self.diagnostics);
    }

    /// What a plugin brings, in the folders of the usual names or those that its manifest names.
    fn plugin(&mut self, plugin: &PluginRoot, project: &Path, reader: &mut Reader) -> Vec<RuleText> {
        for path in self.named(plugin, "skills") {
            let is_one = path.join("SKILL.md").is_file();
            let found = if is_one {
                skills::of_dir(&path, reader).into_iter().collect()
            } else {
                skills::of_folder(&path, reader)
            };
            let (inside, outside) =
                found.into_iter().partition(|skill| is_inside(plugin, Path::new(&skill.file_path)));
            self.refuse(outside, |skill: toolway_bridge::Skill| PathBuf::from(skill.file_path));
            skills::add(&mut self.skills, inside, &mut self.diagnostics);
        }
        for path in self.named(plugin, "agents") {
            let found = if path.is_dir() {
                subagents::of_folder(&path, reader)
            } else {
                subagents::of_file(&path, reader).into_iter().collect()
            };
            let (inside, outside) = found.into_iter().partition(|file| is_inside(plugin, &file.path));
            self.refuse(outside, |file: super::SubagentFile| file.path);
            subagents::add(&mut self.subagents, inside, &mut self.diagnostics);
        }
        let mut texts = Vec::new();
        for path in self.named(plugin, "rules") {
            let found = if path.is_dir() {
                rules::of_rules_folder(&path, project, reader)
            } else {
                rules::of_file(&path, project, reader).into_iter().collect()
            };
            let (inside, outside) = found.into_iter().partition(|rule| is_inside(plugin, &rule.path));
            self.refuse(outside, |rule: RuleText| rule.path);
            texts.extend::<Vec<RuleText>>(inside);
        }
        texts
    }

    fn refuse<T>(&mut self, outside: Vec<T>, path: impl Fn(T) -> PathBuf) {
        for item in outside {
            let problem = Problem::error("is a link that leads out of the plugin").file(path(item));
            self.diagnostics.push(problem);
        }
    }

    /// The folders and files that a manifest names; the folder of the usual name where it names none.
    fn named(&mut self, plugin: &PluginRoot, member: &str) -> Vec<PathBuf> {
        let named = plugin.manifest.as_ref().and_then(|(path, node)| Some((path, node.get(member)?)));
        let Some((manifest, node)) = named else { return plugin.inside(member).into_iter().collect() };
        let one = [node];
        let nodes: Vec<&Node> = match &node.value {
            Value::Array(items) => items.iter().collect(),
            _ => one.to_vec(),
        };
        let mut found = Vec::new();
        for node in nodes {
            let path = node.as_str().and_then(|text| plugin.inside(text.trim_end_matches('/')));
            if path.is_none() {
                let problem = Problem::error(format!(
                    "the path of the {member} leads to nothing in the plugin"
                ))
                .hint("it must be relative, without \"..\", and lead to a file or folder of the plugin");
                self.diagnostics.push(problem.file(manifest).at(node.at).field(member));
            }
            found.extend(path);
        }
        found
    }
}

fn is_inside(plugin: &PluginRoot, path: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| path.starts_with(&plugin.root))
}
