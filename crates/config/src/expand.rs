//! Owns the replacement of placeholders by values, in a single pass: what comes in place of one is not looked at again.
//! Everything that fails, fails by name.

mod remote;
mod stdio;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use toolway_secret::Secret;

use crate::definition::{Definition, Target, Text};
use crate::dialect::{Dialect, Field};
use crate::environment::{Environment, Platform};
use crate::expanded::{Expanded, ExpandedTarget};
use crate::problem::Problem;
use crate::sensitive::{secret_name, secret_value};
use crate::source::Source;
use crate::template::{self, Known, Piece};
use crate::{command, digest};

/// The most bytes of a file that is a value, or holds variables.
const LONGEST_FILE: u64 = 1 << 20;
/// Values shorter than this are no use as secrets, and would spoil every text they were looked for in.
const SHORTEST_SECRET: usize = 4;

/// What placeholders stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) environment: &'a Environment,
    /// `${workspaceFolder}`.
    pub(crate) workspace: &'a Path,
    /// Whose definition it is.
    pub(crate) source: &'a Source,
    /// The file it stands in.
    pub(crate) file: &'a Path,
    /// What may be done for a value. What may not be done gives empty ones.
    pub(crate) depth: Depth,
}

/// What may be done for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// Nothing is touched.
    Names,
    /// Files are read.
    Files,
    /// Commands are run too, and the keyring is asked.
    Commands,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) expanded: Expanded,
    /// Errors, those of unset variables and of inputs among them; the warnings are with `expanded`.
    pub(crate) errors: Vec<Problem>,
    pub(crate) unset: Vec<String>,
    pub(crate) inputs: Vec<String>,
    /// Where the file of variables is.
    pub(crate) env_file: Option<PathBuf>,
}

/// Replaces every placeholder of a definition.
pub(crate) fn expand(name: &str, definition: &Definition, context: Context<'_>) -> Outcome {
    let mut resolver = Resolver::new(name, definition.dialect, context);
    let target = match &definition.target {
        Target::Stdio(target) => ExpandedTarget::Stdio(stdio::expand(&mut resolver, target)),
        Target::Remote(target) => ExpandedTarget::Remote(remote::expand(&mut resolver, target)),
    };
    let roots = definition.options.roots.as_ref().map(|roots| resolver.roots(roots));
    let Resolver { errors, warnings, unset, inputs, mut secrets, env_file, .. } = resolver;
    secrets.sort_by(|a, b| a.expose().cmp(b.expose()));
    secrets.dedup_by(|a, b| a.expose() == b.expose());
    let mut expanded = Expanded {
        name: name.to_owned(),
        target,
        options: definition.options.clone(),
        roots,
        digest: String::new(),
        secrets,
        warnings,
    };
    expanded.digest = digest::of_expanded(&expanded);
    Outcome { expanded, errors, unset, inputs, env_file }
}

/// A text with its placeholders replaced.
#[derive(Debug)]
struct Value {
    text: String,
    /// Something in it came from a place that may hold a secret.
    secret: bool,
}

/// Replaces the placeholders of one definition's texts.
struct Resolver<'a> {
    server: &'a str,
    dialect: Dialect,
    context: Context<'a>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    unset: Vec<String>,
    inputs: Vec<String>,
    secrets: Vec<Secret>,
    env_file: Option<PathBuf>,
}

impl<'a> Resolver<'a> {
    fn new(server: &'a str, dialect: Dialect, context: Context<'a>) -> Self {
        Self {
            server,
            dialect,
            context,
            errors: Vec::new(),
            warnings: Vec::new(),
            unset: Vec::new(),
            inputs: Vec::new(),
            secrets: Vec::new(),
            env_file: None,
        }
    }

    fn placed(&self, problem: Problem, text: &Text, field: &str) -> Problem {
        problem.file(self.context.file).at(text.at).server(self.server).field(field)
    }

    fn error(&mut self, problem: Problem, text: &Text, field: &str) {
        let problem = self.placed(problem, text, field);
        self.errors.push(problem);
    }

    fn warn(&mut self, problem: Problem, text: &Text, field: &str) {
        let problem = self.placed(problem, text, field);
        self.warnings.push(problem);
    }

    /// Notes a value that must not be seen.
    fn hide(&mut self, value: &str) {
        if value.len() >= SHORTEST_SECRET {
            self.secrets.push(Secret::in_use(value));
        }
    }

    /// The text with its values in place; `name` is the field, dotted.
    fn value(&mut self, text: &Text, field: Field, name: &str) -> Value {
        let pieces = match template::parse(text.raw(), self.dialect, field) {
            Ok(pieces) => pieces,
            Err(fault) => {
                self.error(Problem::error(fault.message).hint(fault.hint), text, name);
                Vec::new()
            }
        };
        let mut value = Value { text: String::with_capacity(text.raw().len()), secret: false };
        for piece in pieces {
            let (part, secret) = self.piece(piece, text, name);
            if secret {
                self.hide(&part);
            }
            value.secret |= secret;
            value.text.push_str(&part);
        }
        let at_home = self.dialect.expands_home() && text.raw().starts_with('~');
        if at_home && matches!(field, Field::Command | Field::Args | Field::Cwd) {
            value.text = self.context.environment.expand_home(&value.text).to_string_lossy().into_owned();
        }
        if value.text.contains('\0') {
            self.error(Problem::error("the value holds a NUL character"), text, name);
        }
        value
    }

    /// What stands for a piece, and whether it may be a secret.
    fn piece(&mut self, piece: Piece, text: &Text, field: &str) -> (String, bool) {
        match piece {
            Piece::Literal(literal) => (literal, false),
            Piece::Known(known) => (self.known(known), false),
            Piece::Variable { name, default } => self.variable(&name, default, text, field),
            Piece::Input(id) => {
                let answer = self.context.environment.set_var(&input_variable(&id)).map(str::to_owned);
                if answer.is_none() {
                    let problem = Problem::error(format!("needs input {id}"));
                    let hint = format!("set the variable {}", input_variable(&id));
                    self.error(problem.hint(hint), text, field);
                    if !self.inputs.contains(&id) {
                        self.inputs.push(id);
                    }
                }
                (answer.unwrap_or_default(), true)
            }
            Piece::Command(_) | Piece::Keyring(_) if self.context.depth < Depth::Commands => {
                (String::new(), true)
            }
            Piece::File(_) if self.context.depth < Depth::Files => (String::new(), true),
            Piece::Command(line) => {
                let value = command::output(&line, self.context.environment, self.context.workspace);
                (self.or_error(value, text, field), true)
            }
            Piece::File(path) => {
                let path = self.beside_file(&path);
                let value = read_text(&path).map(|value| value.trim().to_owned());
                (self.or_error(value, text, field), true)
            }
            Piece::Keyring(name) => (self.of_keyring(&name, text, field), true),
        }
    }

    fn of_keyring(&mut self, name: &str, text: &Text, field: &str) -> String {
        let (reason, hint) = match &self.context.environment.keyring {
            Some(keyring) => match keyring(name) {
                Ok(value) => return value.expose().to_owned(),
                Err(reason) => (
                    format!("${{keyring:{name}}} cannot be read: {reason}"),
                    "keep one under this name, or take the value from a variable",
                ),
            },
            None => (
                format!("${{keyring:{name}}} cannot be read: no keyring is at hand here"),
                "take the value from a variable, as ${NAME}, or from an envFile",
            ),
        };
        self.error(Problem::error(reason).hint(hint), text, field);
        String::new()
    }

    fn or_error(&mut self, value: Result<String, String>, text: &Text, field: &str) -> String {
        value.unwrap_or_else(|reason| {
            self.error(Problem::error(reason), text, field);
            String::new()
        })
    }

    fn variable(&mut self, name: &str, default: Option<String>, text: &Text, field: &str) -> (String, bool) {
        let found = self.context.environment.var(name);
        let value = match (found, default) {
            (Some(value), _) if !value.is_empty() => value.to_owned(),
            (_, Some(default)) => default,
            (Some(_), None) => {
                let problem = Problem::warning(format!("the variable {name} is set, and empty"));
                self.warn(problem, text, field);
                String::new()
            }
            (None, None) => {
                let problem = Problem::error(format!("the variable {name} is not set"));
                let hint = format!("set it, or write ${{{name}:-DEFAULT}} where the client knows that");
                self.error(problem.hint(hint), text, field);
                if !self.unset.iter().any(|unset| unset == name) {
                    self.unset.push(name.to_owned());
                }
                String::new()
            }
        };
        let secret = secret_name(name) || secret_value(&value);
        (value, secret)
    }

    fn known(&self, known: Known) -> String {
        let workspace = self.context.workspace;
        let path = match (known, self.context.source) {
            (Known::UserHome, _) => self.context.environment.home.clone(),
            (Known::WorkspaceFolderBasename, _) => {
                workspace.file_name().map(PathBuf::from).unwrap_or_default()
            }
            (Known::PathSeparator, _) => match self.context.environment.platform {
                Platform::Windows => PathBuf::from("\\"),
                Platform::Linux | Platform::MacOs => PathBuf::from("/"),
            },
            (Known::PluginRoot, Source::Plugin { root, .. }) => root.clone(),
            (Known::PluginData, Source::Plugin { plugin, .. }) => {
                self.context.environment.config_dir.join("plugin-data").join(plugin)
            }
            (Known::WorkspaceFolder | Known::PluginRoot | Known::PluginData, _) => workspace.to_path_buf(),
        };
        path.to_string_lossy().into_owned()
    }

    /// The directory that relative paths of the definition start from.
    fn base(&self) -> PathBuf {
        match self.context.source {
            Source::Plugin { root, .. } => root.clone(),
            _ => self.context.workspace.to_path_buf(),
        }
    }

    fn beside_file(&self, path: &str) -> PathBuf {
        let path = self.context.environment.expand_home(path);
        self.context.file.parent().unwrap_or(self.context.workspace).join(path)
    }

    /// Roots as file URLs.
    fn roots(&mut self, roots: &[Text]) -> Vec<String> {
        let mut urls = Vec::new();
        for (index, root) in roots.iter().enumerate() {
            let field = format!("roots.{index}");
            let value = self.value(root, Field::Cwd, &field);
            if value.text.starts_with("file://") {
                urls.push(value.text);
                continue;
            }
            match url::Url::from_directory_path(self.base().join(&value.text)) {
                Ok(url) => urls.push(url.as_str().trim_end_matches('/').to_owned()),
                Err(()) => self.error(Problem::error("is no path of a directory"), root, &field),
            }
        }
        urls
    }
}

/// The variable by which a person answers `${input:ID}`.
fn input_variable(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TOOLWAY_INPUT_{}", id.chars().map(letter).collect::<String>())
}

/// A small text file.
fn read_text(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let told = |reason: &dyn std::fmt::Display| format!("{} cannot be read: {reason}", path.display());
    let kind = std::fs::metadata(path).map_err(|error| told(&error))?;
    if !kind.is_file() {
        return Err(told(&"it is no regular file"));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| told(&error))?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(|error| told(&error))?;
    if text.len() as u64 > LONGEST_FILE { Err(told(&"it is larger than 1 MiB")) } else { Ok(text) }
}
