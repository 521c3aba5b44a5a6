//! Owns plugins: which are enabled, what their manifests say, and the servers they bring. A plugin reaches nothing
//! outside its own directory by its manifest.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::dialect::Dialect;
use crate::environment::Environment;
use crate::problem::Problem;
use crate::servers::{NamedEntry, Rules, ServerMap, read_file};
use crate::settled;
use crate::source::Source;
use crate::tree::{Format, Node, Value, read_tolerant};

#[cfg(test)]
mod tests;

/// Where a plugin's manifest may be.
const MANIFESTS: [&str; 3] = [".cursor-plugin/plugin.json", ".claude-plugin/plugin.json", "plugin.json"];
/// Files of servers beside the manifest.
const BESIDE: [&str; 2] = [".mcp.json", "mcp.json"];
/// How a manifest may name its own directory.
const ROOTS: [&str; 3] = ["${CURSOR_PLUGIN_ROOT}/", "${CLAUDE_PLUGIN_ROOT}/", "${PLUGIN_ROOT}/"];

/// The servers of one file of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginFile {
    pub(crate) source: Source,
    pub(crate) path: PathBuf,
    /// Their names are whole: `plugin-PLUGIN-NAME`.
    pub(crate) entries: Vec<NamedEntry>,
}

/// What plugins bring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plugins {
    /// Within a plugin, those that stand higher first.
    pub(crate) files: Vec<PluginFile>,
    pub(crate) problems: Vec<Problem>,
}

/// A plugin that is enabled.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginRoot {
    /// Its name, as its manifest or else its directory has it.
    pub name: String,
    /// Where it is installed, behind all links.
    pub root: PathBuf,
    /// Its manifest and what it says, if there is one that can be read.
    pub manifest: Option<(PathBuf, Node)>,
}

impl PluginRoot {
    /// A file or directory of the plugin, by a path as its manifest may name it: relative, without `..`, not by a link
    /// out of the plugin.
    pub fn inside(&self, named: &str) -> Option<PathBuf> {
        named_inside(&self.root, named)
    }
}

/// The plugins that are enabled for this user and this project, whatever they bring, and what is wrong with them.
pub fn plugin_roots(root: &Path, environment: &Environment) -> (Vec<PluginRoot>, Vec<Problem>) {
    let mut plugins = Plugins::default();
    let mut roots = Vec::new();
    for dir in plugins.discover(root, environment) {
        let (name, manifest) = plugins.manifest(&dir);
        roots.push(PluginRoot { name, root: dir, manifest });
    }
    (roots, plugins.problems)
}

/// Reads the plugins that are enabled for this user and this project.
pub(crate) fn read(root: &Path, environment: &Environment) -> Plugins {
    let mut plugins = Plugins::default();
    for dir in plugins.discover(root, environment) {
        plugins.add(&dir);
    }
    plugins
}

impl Plugins {
    /// The directories of the enabled plugins.
    fn discover(&mut self, root: &Path, environment: &Environment) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let plugins = self;
        let all = environment.home.join(".cursor/plugins");
        let local = all.join("local");
        for dir in children(&local) {
            match inside(&local, &dir) {
                Some(dir) => found.push(dir),
                None => plugins.problems.push(
                    Problem::error("the plugin is a link that leads out of the directory of plugins")
                        .file(dir),
                ),
            }
        }
        let marketplaces = all.join("marketplaces");
        for name in enabled(root, environment, &mut plugins.problems) {
            let (plugin, marketplace) = name.rsplit_once('@').unwrap_or((&name, "*"));
            let places: Vec<PathBuf> = children(&marketplaces)
                .into_iter()
                .filter(|dir| marketplace == "*" || dir.file_name().is_some_and(|name| name == marketplace))
                .flat_map(|dir| [dir.join("plugins").join(plugin), dir.join(plugin)])
                .collect();
            match places.iter().filter(|_| is_plain(plugin)).find_map(|dir| inside(&marketplaces, dir)) {
                Some(dir) => found.push(dir),
                None if local.join(plugin).is_dir() => {}
                None => plugins.problems.push(
                    Problem::warning(format!("the plugin {name:?} is enabled, and not installed"))
                        .file(marketplaces.clone()),
                ),
            }
        }
        found
    }

    /// A plugin's name, and its manifest.
    fn manifest(&mut self, dir: &Path) -> (String, Option<(PathBuf, Node)>) {
        let manifest = MANIFESTS.iter().map(|name| dir.join(name)).find(|path| path.is_file());
        let manifest = manifest.and_then(|path| self.tree(&path).map(|node| (path, node)));
        let own_name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let named = manifest.as_ref().and_then(|(_, node)| node.get("name")).and_then(Node::as_str);
        (named.filter(|name| is_plain(name)).unwrap_or(&own_name).to_owned(), manifest)
    }

    fn add(&mut self, dir: &Path) {
        let (plugin, manifest) = self.manifest(dir);
        let source = Source::Plugin { plugin: plugin.clone(), root: dir.to_path_buf() };
        let mut place = Placing { plugins: self, source, dir, plugin };
        if let Some((path, node)) = &manifest
            && let Some(servers) = node.get("mcpServers")
        {
            place.manifest(servers, path);
        }
        for name in BESIDE {
            let path = dir.join(name);
            if path.is_file() {
                place.file(&path);
            }
        }
    }

    fn tree(&mut self, path: &Path) -> Option<Node> {
        let read = settled::read(path).and_then(|bytes| {
            let first = |mut problems: Vec<Problem>| {
                problems.pop().unwrap_or_else(|| Problem::error("cannot be read"))
            };
            read_tolerant(&bytes, Format::Jsonc).map_err(|problems| first(problems).file(path))
        });
        match read {
            Ok((node, doubled)) => {
                self.problems.extend(doubled.into_iter().map(|problem| problem.file(path)));
                Some(node)
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }
}

/// Reads the servers of one plugin.
struct Placing<'a> {
    plugins: &'a mut Plugins,
    source: Source,
    dir: &'a Path,
    plugin: String,
}

impl Placing<'_> {
    /// `mcpServers` of a manifest: a path, an object, or a list of those.
    fn manifest(&mut self, servers: &Node, path: &Path) {
        match &servers.value {
            Value::String(named) => {
                if let Some(file) = self.inside(named) {
                    self.file(&file);
                } else {
                    let problem = Problem::error("the path of the servers leads out of the plugin")
                        .hint("it must be relative, without \"..\", and lead to a file of the plugin");
                    self.plugins.problems.push(problem.file(path).at(servers.at).field("mcpServers"));
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.manifest(item, path);
                }
            }
            Value::Object(_) => self.servers(servers, &[], path),
            _ => {
                let problem =
                    Problem::error(format!("must be a path or an object, and is {}", servers.kind()));
                self.plugins.problems.push(problem.file(path).at(servers.at).field("mcpServers"));
            }
        }
    }

    /// The file of a relative path that stays inside the plugin.
    fn inside(&self, named: &str) -> Option<PathBuf> {
        named_inside(self.dir, named).filter(|file| file.is_file())
    }

    fn file(&mut self, path: &Path) {
        let Some(path) = inside(self.dir, path) else {
            let problem = Problem::error("is a link that leads out of the plugin").file(path);
            self.plugins.problems.push(problem);
            return;
        };
        let before = self.plugins.problems.len();
        let Some(node) = self.plugins.tree(&path) else { return };
        let doubled = self.plugins.problems.split_off(before);
        self.servers(&node, &doubled, &path);
    }

    fn servers(&mut self, node: &Node, doubled: &[Problem], path: &Path) {
        let rules = Rules { dialect: Dialect::Plugin, strict_names: false, bare: true };
        // What a manifest names is the map itself.
        let map = match read_file(node, doubled, rules) {
            Ok(map) => map,
            Err(problem) => {
                self.plugins.problems.push(problem.file(path));
                return;
            }
        };
        let ServerMap { entries, problems } = map;
        self.plugins.problems.extend(problems.into_iter().map(|problem| problem.file(path)));
        let entries = entries.into_iter().map(|entry| self.named(entry)).collect();
        self.plugins.files.push(PluginFile {
            source: self.source.clone(),
            path: path.to_path_buf(),
            entries,
        });
    }

    fn named(&self, mut entry: NamedEntry) -> NamedEntry {
        entry.name = format!("plugin-{}-{}", self.plugin, entry.name);
        for problem in &mut entry.read.problems {
            problem.server = Some(entry.name.clone());
        }
        entry
    }
}

/// The names of the plugins that settings enable, `NAME` or `NAME@MARKETPLACE`. What the project says stands above
/// what the user says.
fn enabled(root: &Path, environment: &Environment, problems: &mut Vec<Problem>) -> Vec<String> {
    let mut said: Vec<(String, bool)> = Vec::new();
    for path in [root.join(".cursor/settings.json"), environment.home.join(".cursor/settings.json")] {
        if !path.is_file() {
            continue;
        }
        let mut reading = Plugins::default();
        let node = reading.tree(&path);
        problems.append(&mut reading.problems);
        let Some(members) = node.as_ref().and_then(|node| node.get("enabledPlugins")).and_then(Node::members)
        else {
            continue;
        };
        for (key, value) in members {
            if !said.iter().any(|(name, _)| *name == key.name) {
                said.push((key.name.clone(), value.as_bool() == Some(true)));
            }
        }
    }
    said.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()
}

/// What a manifest names by a relative path that stays inside the plugin.
fn named_inside(dir: &Path, named: &str) -> Option<PathBuf> {
    let named = ROOTS.iter().find_map(|root| named.strip_prefix(root)).unwrap_or(named);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let relative = Path::new(named);
    let good = !named.is_empty()
        && !named.contains(':')
        && !named.contains('\\')
        && relative.components().all(plain);
    good.then(|| inside(dir, &dir.join(relative))).flatten()
}

/// The real path, if it is below the directory.
fn inside(dir: &Path, path: &Path) -> Option<PathBuf> {
    let (dir, path) = (dir.canonicalize().ok()?, path.canonicalize().ok()?);
    (path.starts_with(&dir) && path != dir).then_some(path)
}

/// Whether a name can be part of a path and of a server's name.
fn is_plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(fits)
}

/// The directories in a directory, in the order of their names.
fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let mut paths: Vec<PathBuf> = entries.unwrap_or_default();
    paths.retain(|path| path.is_dir());
    paths.sort();
    paths
}
