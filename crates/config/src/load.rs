//! Owns the way from options to entries: which files are read, in which order, and what comes out of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::entry::{Entry, FileReport, FileStatus};
use crate::environment::Environment;
use crate::locate::{self, Candidate, Found};
use crate::merge::{Judge, Layer, merge};
use crate::plugins;
use crate::policy::Policy;
use crate::problem::Problem;
use crate::servers::{ServerMap, read_inline};
use crate::settled;
use crate::source::{SettingSource, Source};
use crate::trust::TrustStore;

use understand::{Content, understand};

mod understand;

#[cfg(test)]
mod tests;

/// What is to be loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Which sources; none by default.
    pub sources: Vec<SettingSource>,
    /// Files named by the user. If there is one, then no source is read; the administrator's policy holds all the same.
    /// Of equal names that of the later file wins.
    pub files: Vec<PathBuf>,
    /// Definitions given by a program: the map that stands under `mcpServers`.
    pub inline: serde_json::Map<String, serde_json::Value>,
    /// The same, for one run only: stands above all.
    pub per_send: serde_json::Map<String, serde_json::Value>,
    /// Whether projects and plugins must be approved.
    pub trust: TrustMode,
    /// The team's document where `TOOLWAY_TEAM_CONFIG` is a URL (see [`crate::team_url`]), as the caller fetched it, or
    /// why it could not.
    pub team_document: Option<Result<Vec<u8>, String>>,
}

/// Whether projects and plugins must be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustMode {
    /// Yes, by content: see [`TrustStore`].
    #[default]
    Ask,
    /// The program that names the sources has approved them.
    Given,
}

/// What came out of all files.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    /// All entries, also those that lost, those that stand highest first.
    pub entries: Vec<Entry>,
    /// All that is wrong, in the order of the files.
    pub problems: Vec<Problem>,
    /// The files that were looked at.
    pub files: Vec<FileReport>,
    /// What the administrator allows.
    pub policy: Policy,
    /// The project's directory.
    pub root: PathBuf,
    /// The file of approvals.
    pub trust_file: PathBuf,
}

impl Resolved {
    /// The entry of that name that is not shadowed, if there is one.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        use crate::entry::Standing::{Invalid, Shadowed};
        let named = || self.entries.iter().filter(|entry| entry.name == name);
        let lost = |entry: &&Entry| matches!(entry.standing, Shadowed { .. } | Invalid);
        named().find(|entry| !lost(entry)).or_else(|| named().next())
    }

    /// The files whose change changes the result: those that were looked at, whether they are there or not, the files
    /// of variables, and the approvals.
    pub fn watched(&self) -> Vec<PathBuf> {
        let files = self.files.iter().map(|file| file.path.clone());
        let env_files = self.entries.iter().filter_map(|entry| entry.env_file.clone());
        let mut paths: Vec<PathBuf> = files.chain(env_files).chain([self.trust_file.clone()]).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// Loads once. See [`Loader`] for what is loaded again and again.
pub fn load(options: &LoadOptions, environment: &Environment) -> Resolved {
    Loader::default().load(options, environment)
}

/// Loads, and remembers what each file said when it could last be understood: a file that is bad at a later load keeps
/// that, and says so.
#[derive(Debug, Default)]
pub struct Loader {
    good: HashMap<PathBuf, Content>,
}

/// What is put together by one load.
#[derive(Debug, Default)]
struct Loading {
    layers: Vec<Layer>,
    problems: Vec<Problem>,
    files: Vec<FileReport>,
    /// Real path of each file that was read, and the path it was read by.
    seen: HashMap<PathBuf, PathBuf>,
}

impl Loader {
    /// Reads all that the options name.
    pub fn load(&mut self, options: &LoadOptions, environment: &Environment) -> Resolved {
        let root = locate::project_root(&environment.cwd);
        let mut loading = Loading::default();
        let (policy, managed) = self.policy(options, environment, &mut loading);
        for (source, map) in [(Source::PerSend, &options.per_send), (Source::Inline, &options.inline)] {
            let map = read_inline(map);
            loading.layer(source, PathBuf::new(), Dialect::Inline, map);
        }
        loading.layers.extend(managed);
        for path in options.files.iter().rev() {
            self.file(locate::named_file(path, &root, environment), true, &mut loading);
        }
        if options.files.is_empty() {
            self.sources(options, &root, environment, &mut loading);
        }
        let trust_file = environment.config_dir.join("trust.json");
        let trust = match options.trust {
            TrustMode::Given => None,
            TrustMode::Ask => Some(TrustStore::read(&trust_file).unwrap_or_else(|error| {
                let problem = Problem::error(format!("the approvals are not used: {error}"));
                let hint = "mend it or remove it, then approve again: toolway trust";
                loading.problems.push(problem.file(&trust_file).hint(hint));
                TrustStore::empty(&trust_file)
            })),
        };
        let judge = Judge { environment, root: &root, policy: Arc::new(policy.clone()), trust };
        let (entries, problems) = merge(&loading.layers, &judge);
        let Loading { problems: mut all, files, .. } = loading;
        all.extend(problems);
        Resolved { entries, problems: all, files, policy, root, trust_file }
    }

    /// The administrator's policy, which holds whatever is loaded, and the servers beside it where they are asked for.
    /// A file that cannot be read closes everything.
    fn policy(
        &mut self,
        options: &LoadOptions,
        environment: &Environment,
        loading: &mut Loading,
    ) -> (Policy, Option<Layer>) {
        let Some(path) = locate::managed_file(environment) else { return (Policy::default(), None) };
        let candidate = Candidate {
            path: path.clone(),
            source: Source::Mdm,
            dialect: Dialect::Toolway,
            own: true,
            client: None,
        };
        let mut own = Loading::default();
        let content = self.read(&candidate, false, &mut own);
        let failed = own.files.iter().find_map(|report| match &report.status {
            FileStatus::Failed(problem) => Some(problem.clone()),
            _ => None,
        });
        let wanted = options.files.is_empty() && options.sources.contains(&SettingSource::Mdm);
        // What is absent is only told where it was asked for.
        if wanted || own.files.iter().any(|report| report.status != FileStatus::Absent) {
            loading.files.append(&mut own.files);
        }
        loading.problems.append(&mut own.problems);
        if let Some(problem) = failed {
            return (Policy::closed(&path, &problem), None);
        }
        let Some(content) = content else { return (Policy::default(), None) };
        let entries = content.map.entries;
        let layer = Layer { source: Source::Mdm, file: path, dialect: Dialect::Toolway, entries };
        (content.policy.unwrap_or_default(), wanted.then_some(layer))
    }

    fn sources(
        &mut self,
        options: &LoadOptions,
        root: &Path,
        environment: &Environment,
        loading: &mut Loading,
    ) {
        let wants = |source| options.sources.contains(&source);
        if wants(SettingSource::Plugins) {
            loading.plugins(root, environment);
        }
        // A file that is the user's own by one path needs no approval because a project leads to it as well.
        let users: Vec<PathBuf> = locate::files_of(SettingSource::User, root, environment)
            .iter()
            .filter_map(|candidate| candidate.path.canonicalize().ok())
            .collect();
        for source in [SettingSource::Project, SettingSource::User, SettingSource::Team] {
            for candidate in locate::files_of(source, root, environment).into_iter().filter(|_| wants(source))
            {
                let real = candidate.path.canonicalize().ok();
                let is_users = source == SettingSource::Project
                    && wants(SettingSource::User)
                    && real.is_some_and(|real| users.contains(&real));
                if is_users {
                    let Candidate { path, source, dialect, .. } = candidate;
                    let status = FileStatus::Same { of: path.canonicalize().unwrap_or_default() };
                    loading.files.push(FileReport { path, source, dialect, status });
                } else {
                    // Who names a team's file means one that is there.
                    self.file(candidate, source == SettingSource::Team, loading);
                }
            }
        }
        if let Some(url) = locate::team_url(environment).filter(|_| wants(SettingSource::Team)) {
            self.team(url, options.team_document.as_ref(), loading);
        }
    }

    fn file(&mut self, candidate: Candidate, required: bool, loading: &mut Loading) {
        if let Some(content) = self.read(&candidate, required, loading) {
            loading.layer(candidate.source, candidate.path, candidate.dialect, content.map);
        }
    }

    /// Reads a file, or gives what it said before, and reports what became of it.
    fn read(&mut self, candidate: &Candidate, required: bool, loading: &mut Loading) -> Option<Content> {
        let Candidate { path, source, dialect, .. } = candidate;
        let mut report = FileReport {
            path: path.clone(),
            source: source.clone(),
            dialect: *dialect,
            status: FileStatus::Absent,
        };
        let found = match locate::find(path) {
            Ok(Found::Absent) if required => Err(Problem::error("there is no such file").file(path)),
            found => found,
        };
        let real = match found {
            Ok(Found::Absent) => {
                self.good.remove(path);
                loading.files.push(report);
                return None;
            }
            Ok(Found::File(real)) => Ok(real),
            Err(problem) => Err(problem),
        };
        if let Ok(real) = &real {
            if let Some(of) = loading.seen.get(real) {
                report.status = FileStatus::Same { of: of.clone() };
                loading.files.push(report);
                return None;
            }
            loading.seen.insert(real.clone(), path.clone());
        }
        let read = real.and_then(|_| settled::read(path)).and_then(|bytes| understand(&bytes, candidate));
        let content = match read {
            Ok(content) => {
                loading
                    .problems
                    .extend(content.map.problems.iter().map(|problem| problem.clone().file(path)));
                report.status = FileStatus::Read { servers: content.map.entries.len() };
                self.good.insert(path.clone(), content.clone());
                Some(content)
            }
            Err(problem) => {
                let kept = self.good.get(path).cloned();
                let told = match &kept {
                    Some(_) => problem.clone().hint("what it said before stays in force"),
                    None => problem.clone(),
                };
                loading.problems.push(told);
                report.status =
                    if kept.is_some() { FileStatus::Kept(problem) } else { FileStatus::Failed(problem) };
                kept
            }
        };
        loading.files.push(report);
        content
    }

    /// The document behind the team's URL.
    fn team(&mut self, url: &str, document: Option<&Result<Vec<u8>, String>>, loading: &mut Loading) {
        let path = PathBuf::from(locate::without_secrets(url));
        let candidate = Candidate {
            path: path.clone(),
            source: Source::Team,
            dialect: Dialect::Toolway,
            own: true,
            client: None,
        };
        let read = match document {
            Some(Ok(bytes)) => understand(bytes, &candidate),
            Some(Err(reason)) => {
                let problem = Problem::error(format!("cannot be fetched: {reason}")).file(&path);
                Err(problem.hint("TOOLWAY_TEAM_CONFIG names it"))
            }
            None => Err(Problem::error("was not fetched").file(&path)),
        };
        let status = match read {
            Ok(content) => {
                let servers = content.map.entries.len();
                self.good.insert(path.clone(), content.clone());
                loading
                    .problems
                    .extend(content.map.problems.iter().map(|problem| problem.clone().file(&path)));
                loading.layer(Source::Team, path.clone(), Dialect::Toolway, content.map);
                FileStatus::Read { servers }
            }
            Err(problem) => {
                loading.problems.push(problem.clone());
                match self.good.get(&path).cloned() {
                    Some(kept) => {
                        loading.layer(Source::Team, path.clone(), Dialect::Toolway, kept.map);
                        FileStatus::Kept(problem)
                    }
                    None => FileStatus::Failed(problem),
                }
            }
        };
        loading.files.push(FileReport { path, source: Source::Team, dialect: Dialect::Toolway, status });
    }
}

impl Loading {
    fn layer(&mut self, source: Source, file: PathBuf, dialect: Dialect, map: ServerMap) {
        if !map.entries.is_empty() {
            self.layers.push(Layer { source, file, dialect, entries: map.entries });
        }
    }

    fn plugins(&mut self, root: &Path, environment: &Environment) {
        let plugins = plugins::read(root, environment);
        self.problems.extend(plugins.problems);
        for file in plugins.files {
            let status = FileStatus::Read { servers: file.entries.len() };
            self.files.push(FileReport {
                path: file.path.clone(),
                source: file.source.clone(),
                dialect: Dialect::Plugin,
                status,
            });
            let map = ServerMap { entries: file.entries, problems: Vec::new() };
            self.layer(file.source, file.path, Dialect::Plugin, map);
        }
    }
}
