//! Owns who wins among definitions of one name, and whether the winner may start. Whole entries, never single fields.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::definition::{Content, Definition, Target};
use crate::dialect::Dialect;
use crate::digest;
use crate::entry::{Entry, Place, Standing};
use crate::environment::Environment;
use crate::expand::{Depth, Outcome, expand};
use crate::policy::Policy;
use crate::problem::Problem;
use crate::servers::NamedEntry;
use crate::source::Source;
use crate::trust::{TrustStore, Verdict};

/// The servers of one file, or of one program.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) source: Source,
    /// Empty for what was given by a program.
    pub(crate) file: PathBuf,
    pub(crate) dialect: Dialect,
    pub(crate) entries: Vec<NamedEntry>,
}

/// What judges the winners.
#[derive(Debug)]
pub(crate) struct Judge<'a> {
    pub(crate) environment: &'a Environment,
    /// The project's directory.
    pub(crate) root: &'a Path,
    pub(crate) policy: Arc<Policy>,
    /// `None`: all is approved.
    pub(crate) trust: Option<TrustStore>,
}

/// One entry and the layer it stands in.
type Placed<'l> = (&'l Layer, &'l NamedEntry);

/// Merges layers, the first of which stands highest. Gives the entries in the order of the layers.
pub(crate) fn merge(layers: &[Layer], judge: &Judge<'_>) -> (Vec<Entry>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut groups: BTreeMap<&str, Vec<Placed<'_>>> = BTreeMap::new();
    let mut order = Vec::new();
    for layer in layers {
        for entry in &layer.entries {
            problems.extend(entry.read.problems.iter().map(|problem| problem.clone().file(&layer.file)));
            let group = groups.entry(&entry.name).or_default();
            if group.is_empty() {
                order.push(entry.name.as_str());
            }
            group.push((layer, entry));
        }
    }
    let mut entries = Vec::new();
    let mut plugin_urls: BTreeMap<String, Place> = BTreeMap::new();
    for name in order {
        let group = groups.get(name).map(Vec::as_slice).unwrap_or_default();
        entries.extend(judge.group(group, &mut plugin_urls, &mut problems));
    }
    (entries, problems)
}

fn place(layer: &Layer, entry: &NamedEntry) -> Place {
    Place { file: layer.file.clone(), at: entry.at }
}

impl Judge<'_> {
    /// All entries of one name, those that stand highest first.
    fn group(
        &self,
        group: &[Placed<'_>],
        plugin_urls: &mut BTreeMap<String, Place>,
        problems: &mut Vec<Problem>,
    ) -> Vec<Entry> {
        let is_definition = |(_, entry): &Placed<'_>| matches!(entry.read.content, Content::Definition(_));
        let winner = group.iter().position(is_definition);
        let switched = switch(group, winner);
        let mut entries = Vec::new();
        for (index, (layer, entry)) in group.iter().enumerate() {
            let mut made = self.entry(layer, entry);
            match (&entry.read.content, winner) {
                (Content::Switch(_), Some(_)) => continue,
                (Content::Switch(on), None) => {
                    let told = "switches a server that nobody defines";
                    problems.push(made.problem(Problem::warning(told)));
                    if *on || !entries.is_empty() {
                        continue;
                    }
                    made.standing = Standing::Disabled { by: made.place.clone() };
                }
                (Content::Invalid, _) => {}
                (Content::Definition(_), Some(first)) if first != index => {
                    let (layer, winner) = group.get(first).copied().unwrap_or((layer, entry));
                    let by = place(layer, winner);
                    problems.push(made.problem(Problem::warning(format!("is shadowed by {by}"))));
                    made.standing = Standing::Shadowed { by };
                }
                (Content::Definition(definition), _) => {
                    self.judge(&mut made, definition, switched.as_ref(), plugin_urls, problems);
                }
            }
            entries.push(made);
        }
        entries
    }

    fn entry(&self, layer: &Layer, entry: &NamedEntry) -> Entry {
        let fields = entry.read.fields.iter();
        let fields = fields.map(|(field, at)| (field.clone(), Place { file: layer.file.clone(), at: *at }));
        let mut made = Entry {
            name: entry.name.clone(),
            source: layer.source.clone(),
            place: place(layer, entry),
            dialect: layer.dialect,
            standing: Standing::Invalid,
            definition: None,
            provenance: fields.collect(),
            digest: String::new(),
            workspace: self.root.to_path_buf(),
            policy: Arc::clone(&self.policy),
            env_file: None,
        };
        if let Content::Definition(definition) = &entry.read.content {
            let outcome = expand(&entry.name, definition, made.context(self.environment, Depth::Names));
            let root = match &layer.source {
                Source::Plugin { root, .. } => Some(root.as_path()),
                Source::Project => Some(self.root),
                _ => None,
            };
            made.digest =
                digest::of_meaning(definition, &outcome.expanded, outcome.env_file.as_deref(), root);
            made.definition = Some((**definition).clone());
            made.env_file = outcome.env_file;
        }
        made
    }

    /// Sets the standing of an entry that nobody shadows.
    fn judge(
        &self,
        entry: &mut Entry,
        definition: &Definition,
        switched: Option<&(bool, Place)>,
        plugin_urls: &mut BTreeMap<String, Place>,
        problems: &mut Vec<Problem>,
    ) {
        if let Some(by) = doubled_url(entry, definition, plugin_urls) {
            problems.push(
                entry.problem(Problem::warning(format!("has the url of another plugin's server, at {by}"))),
            );
            entry.standing = Standing::Shadowed { by };
            return;
        }
        let outcome = expand(&entry.name, definition, entry.context(self.environment, Depth::Names));
        if let Some(policy) = self.policy.forbids(&entry.name, &outcome.expanded) {
            problems.push(entry.problem(Problem::error(format!("blocked by {policy}"))));
            entry.standing = Standing::Blocked { policy };
            return;
        }
        if let Some((false, by)) = switched {
            entry.standing = Standing::Disabled { by: by.clone() };
            return;
        }
        if !entry.source.is_explicit() && definition.starts_gateway() {
            entry.standing = Standing::Itself;
            return;
        }
        if let Some(reason) = self.untrusted(entry, definition) {
            entry.standing = Standing::Untrusted { reason };
            return;
        }
        let outcome = expand(&entry.name, definition, entry.context(self.environment, Depth::Files));
        if let Some(policy) = self.policy.forbids(&entry.name, &outcome.expanded) {
            // What a file of variables says may be forbidden too.
            problems.push(entry.problem(Problem::error(format!("blocked by {policy}"))));
            entry.standing = Standing::Blocked { policy };
            return;
        }
        let Outcome { expanded, errors, unset, inputs, .. } = outcome;
        let missing = unset.len() + inputs.len();
        problems.extend(expanded.warnings);
        entry.standing = if errors.is_empty() {
            Standing::Ready
        } else if missing == 0 {
            Standing::Invalid
        } else if unset.is_empty() {
            Standing::NeedsInput { inputs }
        } else {
            Standing::Unset { variables: unset }
        };
        problems.extend(errors);
    }

    /// Why it has to be approved first.
    fn untrusted(&self, entry: &Entry, definition: &Definition) -> Option<String> {
        let store = self.trust.as_ref()?;
        // A command is asked about wherever it stands; the keyring is the user's own, and so are the user's own files.
        let reads = definition.reads_keyring() && entry.source != Source::User;
        let asks = !entry.source.is_explicit()
            && (entry.source.needs_approval() || definition.runs_commands() || reads);
        if !asks {
            return None;
        }
        let whose = if entry.source.needs_approval() {
            "comes from"
        } else if reads {
            "reads your keyring, from"
        } else {
            "runs a command for a value, from"
        };
        let place = match &entry.source {
            Source::Plugin { plugin, .. } => format!("the plugin {plugin}"),
            source => format!("a {source} file"),
        };
        match store.verdict(entry) {
            Verdict::Approved => None,
            Verdict::Changed => Some("it has changed since it was approved".to_owned()),
            Verdict::New => Some(format!("it {whose} {place}, and was never approved")),
        }
    }
}

/// What was said last about whether the server is on: by a switch above the winner, by the winner itself, or by a
/// switch of the user's own below it. A project or a plugin switches nothing on that is not its own.
fn switch(group: &[Placed<'_>], winner: Option<usize>) -> Option<(bool, Place)> {
    let winner = winner?;
    let explicit = group.get(winner).is_some_and(|(layer, _)| layer.source.is_explicit());
    for (index, (layer, entry)) in group.iter().enumerate() {
        let said = match &entry.read.content {
            Content::Switch(on) if index < winner => {
                (!on || !layer.source.needs_approval()).then(|| (*on, place(layer, entry)))
            }
            Content::Switch(false) if layer.source == Source::User && !explicit => {
                Some((false, place(layer, entry)))
            }
            Content::Definition(definition) if index == winner => definition.options.enabled.map(|on| {
                let at = ["enabled", "disabled"]
                    .iter()
                    .find_map(|name| entry.read.fields.get(*name))
                    .copied()
                    .flatten();
                (on, Place { file: layer.file.clone(), at: at.or(entry.at) })
            }),
            _ => None,
        };
        // A server that says it is on is still switched off by the user below it.
        if let Some(said) = said.filter(|(on, _)| !on || index < winner) {
            return Some(said);
        }
    }
    None
}

/// Where another plugin has the same url.
fn doubled_url(entry: &Entry, definition: &Definition, urls: &mut BTreeMap<String, Place>) -> Option<Place> {
    let (Source::Plugin { .. }, Target::Remote(target)) = (&entry.source, &definition.target) else {
        return None;
    };
    let url = target.url.raw().trim_end_matches('/').to_owned();
    let known = urls.get(&url).cloned();
    if known.is_none() {
        urls.insert(url, entry.place.clone());
    }
    known
}
