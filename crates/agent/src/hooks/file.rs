//! Owns `hooks.json`: where it is for each source, and what it says. What it says and nobody here does is told.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use toolway_bridge::Scrubber;
use toolway_config::{
    Format, Node, PluginRoot, Problem, SettingSource, Value, plugin_roots, read_bytes, read_tolerant,
};
use toolway_secret::Secret;

use super::{Hook, HookEvent, Hooks};
use crate::sources::Sources;

/// How long a hook may take that names no time.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The longest time that a hook may name.
const LONGEST_TIMEOUT: f64 = 3600.0;
/// No more hooks of one file.
const MOST: usize = 200;
/// What may be done about a hook that could not be used.
const CLOSED: &str = "it fails closed: until it is mended, the calls it watches are refused";

/// A file of hooks and how they run.
struct HookFile {
    path: PathBuf,
    cwd: PathBuf,
    env: BTreeMap<OsString, OsString>,
    /// What cannot be understood closes everything.
    is_policy: bool,
}

/// What is read from the files.
#[derive(Default)]
struct Read {
    hooks: Vec<Hook>,
    problems: Vec<Problem>,
}

impl Hooks {
    /// Reads the hooks of the chosen sources. It waits for the disk. `supervise` is this program's own binary, where its
    /// `main` begins with [`toolway_transport::supervisor::run`].
    pub fn load(sources: &Sources, supervise: Option<PathBuf>) -> Self {
        let mut read = Read::default();
        let mut seen: Vec<PathBuf> = Vec::new();
        for file in files(sources) {
            let identity = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
            if file.path.symlink_metadata().is_ok() && !seen.contains(&identity) {
                seen.push(identity);
                read.file(&file);
            }
        }
        let project = sources.root.join(".cursor/hooks.json");
        if sources.has(SettingSource::Project) && !sources.trust_project && project.exists() {
            let problem = Problem::warning("the project's hooks do not run until it is trusted");
            read.problems.push(problem.file(project));
        }
        if sources.has(SettingSource::Plugins) {
            let (plugins, problems) = plugin_roots(&sources.root, &sources.environment);
            read.problems.extend(problems);
            for plugin in plugins {
                read.plugin(&plugin, sources);
            }
        }
        let vars = &sources.environment.vars;
        let mut scrubber = Scrubber::new();
        for (_, value) in vars.iter().filter(|(name, value)| is_secret_name(name) && value.len() >= 8) {
            scrubber.add(&Secret::in_use(value.as_str()));
        }
        Self {
            all: read.hooks.into(),
            diagnostics: read.problems.into(),
            env: Arc::new(vars.iter().map(|(name, value)| (name.into(), value.into())).collect()),
            supervise,
            scrubber: Arc::new(scrubber),
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "CREDENTIAL", "PRIVATE_KEY"]
        .iter()
        .any(|part| name.contains(part))
}

fn files(sources: &Sources) -> Vec<HookFile> {
    let mut files = Vec::new();
    if sources.has(SettingSource::Mdm) {
        for dir in &sources.system_dirs {
            let path = dir.join("hooks.json");
            files.push(HookFile { path, cwd: dir.clone(), env: project_env(sources), is_policy: true });
        }
    }
    if sources.has(SettingSource::Project) && sources.trust_project {
        let path = sources.root.join(".cursor/hooks.json");
        files.push(HookFile { path, cwd: sources.root.clone(), env: project_env(sources), is_policy: false });
    }
    if let Some(dir) = sources.user_dir().filter(|_| sources.has(SettingSource::User)) {
        let path = dir.join("hooks.json");
        files.push(HookFile { path, cwd: dir, env: project_env(sources), is_policy: false });
    }
    files
}

/// What hooks written for other programs look for.
fn project_env(sources: &Sources) -> BTreeMap<OsString, OsString> {
    let root = sources.root.as_os_str();
    ["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"].map(|name| (name.into(), root.to_owned())).into()
}

impl Read {
    fn file(&mut self, file: &HookFile) {
        let read = read_bytes(&file.path).map_err(|problem| vec![problem]);
        match read.and_then(|bytes| read_tolerant(&bytes, Format::Jsonc)) {
            Ok((node, doubled)) => {
                let is_doubled = !doubled.is_empty();
                self.problems.extend(doubled.into_iter().map(|problem| problem.file(&file.path)));
                self.document(&node, file);
                if is_doubled && file.is_policy {
                    self.close(file, "it names something twice");
                }
            }
            Err(problems) => {
                self.problems.extend(problems.into_iter().map(|problem| problem.file(&file.path)));
                if file.is_policy {
                    self.close(file, "it cannot be read");
                }
            }
        }
    }

    /// An administrator's file that cannot be understood lets nothing through.
    fn close(&mut self, file: &HookFile, why: &str) {
        for event in [HookEvent::PreToolUse, HookEvent::BeforeMcpExecution] {
            self.hooks.push(Hook {
                event,
                command: Err(why.to_owned()),
                matcher: None,
                timeout: TIMEOUT,
                fail_closed: true,
                cwd: file.cwd.clone(),
                env: BTreeMap::new(),
                place: file.path.display().to_string(),
            });
        }
    }

    fn plugin(&mut self, plugin: &PluginRoot, sources: &Sources) {
        let mut env = project_env(sources);
        for name in ["CURSOR_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT"] {
            env.insert(name.into(), plugin.root.as_os_str().to_owned());
        }
        let file =
            |path: PathBuf| HookFile { path, cwd: plugin.root.clone(), env: env.clone(), is_policy: false };
        let named = plugin.manifest.as_ref().and_then(|(path, node)| Some((path, node.get("hooks")?)));
        let Some((manifest, named)) = named else {
            if let Some(path) = plugin.inside("hooks/hooks.json").filter(|path| path.is_file()) {
                self.file(&file(path));
            }
            return;
        };
        match &named.value {
            Value::String(text) => match plugin.inside(text).filter(|path| path.is_file()) {
                Some(path) => self.file(&file(path)),
                None => self.problems.push(
                    Problem::error("the path of the hooks leads to no file of the plugin")
                        .hint("it must be relative, without \"..\", and lead to a file of the plugin")
                        .file(manifest)
                        .at(named.at)
                        .field("hooks"),
                ),
            },
            Value::Object(_) => {
                let file = file(manifest.clone());
                let events = named.get("hooks").unwrap_or(named);
                self.events(events, &file);
            }
            _ => self.problems.push(
                Problem::error("must be a path or an object").file(manifest).at(named.at).field("hooks"),
            ),
        }
    }

    fn document(&mut self, node: &Node, file: &HookFile) {
        let fault = |message: &str, node: &Node| Problem::error(message).file(&file.path).at(node.at);
        if let Some(version) = node.get("version").filter(|version| version.to_json() != 1) {
            self.problems.push(fault("is of a version that is not known; 1 is", version).field("version"));
        }
        if let Some(events) = node.get("hooks") {
            self.events(events, file);
            return;
        }
        self.problems.push(fault("has no hooks", node).field("hooks"));
        if file.is_policy {
            self.close(file, "it has no hooks");
        }
    }

    fn events(&mut self, node: &Node, file: &HookFile) {
        let Some(members) = node.members() else {
            self.problems
                .push(Problem::error("must be an object").file(&file.path).at(node.at).field("hooks"));
            if file.is_policy {
                self.close(file, "its hooks are no object");
            }
            return;
        };
        for (key, list) in members {
            let field = format!("hooks.{}", key.name);
            let Some(event) = HookEvent::ALL.into_iter().find(|event| event.name() == key.name) else {
                let problem = Problem::warning("hooks of this event are not run here");
                let problem =
                    problem.hint("preToolUse, postToolUse, beforeMCPExecution and afterMCPExecution are");
                self.problems.push(problem.file(&file.path).at(key.at).field(field));
                continue;
            };
            let Some(items) = list.items().filter(|items| items.len() <= MOST) else {
                let problem = Problem::error(format!("must be a list of at most {MOST} hooks"));
                self.problems.push(problem.file(&file.path).at(list.at).field(field));
                if file.is_policy {
                    self.close(file, "its hooks are no list");
                }
                continue;
            };
            for (index, item) in items.iter().enumerate() {
                self.hook(event, item, &format!("{field}.{index}"), file);
            }
        }
    }

    fn hook(&mut self, event: HookEvent, node: &Node, field: &str, file: &HookFile) {
        let fail_closed = node.get("failClosed").and_then(Node::as_bool).unwrap_or(file.is_policy);
        let mut fault = None;
        let mut wrong = |message: String, at: &Node| {
            fault.get_or_insert_with(|| Problem::error(message).file(&file.path).at(at.at).field(field));
        };
        if node.members().is_none() {
            wrong("a hook is an object".to_owned(), node);
        }
        if let Some(kind) = node.get("type").filter(|kind| kind.as_str() != Some("command")) {
            wrong("only hooks of the type command are run here".to_owned(), kind);
        }
        let command = node.get("command").and_then(Node::as_str).filter(|command| !command.trim().is_empty());
        if command.is_none() {
            wrong("has no command".to_owned(), node);
        }
        let matcher = match node.get("matcher").map(|node| (node, node.as_str())) {
            None | Some((_, Some("" | "*" | ".*"))) => None,
            Some((at, text)) => {
                let matcher = text.and_then(matcher);
                if matcher.is_none() {
                    wrong("the matcher is no regular expression that can be used".to_owned(), at);
                }
                matcher
            }
        };
        let mut timeout = TIMEOUT;
        if let Some(node) = node.get("timeout") {
            match node.to_json().as_f64().filter(|seconds| *seconds > 0.0) {
                Some(seconds) => timeout = Duration::from_secs_f64(seconds.min(LONGEST_TIMEOUT)),
                None => wrong("the timeout is a number of seconds above 0".to_owned(), node),
            }
        }
        let usable = fault.is_none();
        let why = fault.as_ref().map(ToString::to_string).unwrap_or_default();
        self.problems.extend(fault.map(|fault| if fail_closed { fault.hint(CLOSED) } else { fault }));
        if !usable && !fail_closed {
            return;
        }
        self.hooks.push(Hook {
            event,
            command: command.filter(|_| usable).map(ToOwned::to_owned).ok_or(why),
            matcher,
            timeout,
            fail_closed,
            cwd: file.cwd.clone(),
            env: file.env.clone(),
            place: format!("{}:{}", file.path.display(), node.at.line),
        });
    }
}

fn matcher(text: &str) -> Option<Regex> {
    RegexBuilder::new(text).size_limit(1 << 20).build().ok()
}
