//! Owns what is particular to a server that is started: its command line, its variables, its directory.

use std::collections::HashMap;
use std::path::Path;

use toolway_secret::Secret;

use crate::definition::{StdioTarget, Text, env_name_fault};
use crate::dialect::{Dialect, Field};
use crate::envfile;
use crate::environment::Platform;
use crate::expanded::ExpandedStdio;
use crate::problem::Problem;
use crate::sensitive::{secret_in_argument, secret_name, secret_value};

use super::{Depth, Resolver, read_text};

pub(super) fn expand(resolver: &mut Resolver<'_>, target: &StdioTarget) -> ExpandedStdio {
    let cwd = match &target.cwd {
        Some(cwd) => {
            let cwd = resolver.value(cwd, Field::Cwd, "cwd");
            resolver.base().join(cwd.text)
        }
        None => resolver.context.environment.cwd.clone(),
    };
    let (command, args) = command_line(resolver, target);
    let command = absolute(&resolver.value(&command, Field::Command, "command").text, &cwd);
    let before = std::iter::once(None).chain(args.iter().map(Some));
    let args = args.iter().zip(before).enumerate();
    let args = args.map(|(index, (arg, before))| argument(resolver, arg, before, index)).collect();
    let env = variables(resolver, target);
    ExpandedStdio { command, args, env, inherit_env: target.inherit_env.clone(), cwd }
}

/// The program and its arguments; without `args` the command is split as a shell would, unless it is a file as a whole.
fn command_line(resolver: &mut Resolver<'_>, target: &StdioTarget) -> (Text, Vec<Text>) {
    let command = &target.command;
    let whole = || (command.clone(), target.args.clone().unwrap_or_default());
    let splits = target.args.is_none()
        && resolver.dialect != Dialect::Codex
        && command.raw().trim().contains([' ', '\t'])
        && !resolver.context.environment.expand_home(command.raw()).is_file();
    if !splits {
        return whole();
    }
    let words = match resolver.context.environment.platform {
        Platform::Windows => split_windows(command.raw()),
        Platform::Linux | Platform::MacOs => shlex::split(command.raw()),
    };
    if words.is_none() {
        let problem = Problem::error("has a quote that is never closed");
        resolver.error(
            problem.hint("write program and arguments apart, in command and args"),
            command,
            "command",
        );
    }
    let mut words = words.unwrap_or_default().into_iter().map(|word| Text::placed(word, command.at));
    match words.next() {
        Some(program) => (program, words.collect()),
        None => whole(),
    }
}

/// Words between blanks, double quotes around them; a backslash is nothing special.
fn split_windows(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut inside, mut begun) = (Vec::new(), String::new(), false, false);
    for letter in text.chars() {
        match letter {
            '"' => (inside, begun) = (!inside, true),
            ' ' | '\t' if !inside => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(letter);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    (!inside).then_some(words)
}

/// A name without a separator is looked up in `PATH` by whoever starts it; anything else is a path.
fn absolute(command: &str, cwd: &Path) -> String {
    let is_path = command.contains('/') || (cfg!(windows) && command.contains('\\'));
    if is_path { cwd.join(command).to_string_lossy().into_owned() } else { command.to_owned() }
}

fn argument(resolver: &mut Resolver<'_>, arg: &Text, before: Option<&Text>, index: usize) -> Secret {
    let field = format!("args.{index}");
    let value = resolver.value(arg, Field::Args, &field);
    let secret = secret_in_argument(before.map(Text::raw), &value.text);
    if let Some(secret) = secret {
        resolver.hide(secret);
    }
    if value.secret || secret.is_some() {
        let problem =
            Problem::warning("a secret in an argument can be seen by every process of this machine");
        resolver.warn(problem.hint("hand it over in env, if the server takes it from there"), arg, &field);
    }
    Secret::new(value.text)
}

/// The variables of `envFile`, and those of `env` above them.
fn variables(resolver: &mut Resolver<'_>, target: &StdioTarget) -> Vec<(String, Secret)> {
    let mut env: Vec<(String, Secret)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut set = |name: String, value: String| {
        let place = *places.entry(name.clone()).or_insert(env.len());
        match env.get_mut(place) {
            Some(known) => known.1 = Secret::new(value),
            None => env.push((name, Secret::new(value))),
        }
    };
    if let Some(file) = &target.env_file {
        for (name, value) in from_file(resolver, file) {
            if secret_name(&name) || secret_value(&value) {
                resolver.hide(&value);
            }
            set(name, value);
        }
    }
    for (name, text) in &target.env {
        let value = resolver.value(text, Field::Env, &format!("env.{name}"));
        if value.secret || secret_name(name) || secret_value(&value.text) {
            resolver.hide(&value.text);
        }
        set(name.clone(), value.text);
    }
    env
}

fn from_file(resolver: &mut Resolver<'_>, file: &Text) -> Vec<(String, String)> {
    let path = resolver.value(file, Field::Cwd, "envFile");
    if path.text.is_empty() {
        return Vec::new();
    }
    let path = resolver.base().join(path.text);
    resolver.env_file = Some(path.clone());
    if resolver.context.depth < Depth::Files {
        return Vec::new();
    }
    let read = read_text(&path).map_err(Problem::error).and_then(|text| {
        envfile::parse(&text).map_err(|problem| {
            let line = problem.at.map_or(0, |at| at.line);
            Problem { message: format!("{}:{line} {}", path.display(), problem.message), ..problem }
        })
    });
    match read {
        Ok(variables) => {
            let good = |(name, _): &(String, String)| env_name_fault(name).is_none();
            variables.into_iter().filter(good).collect()
        }
        Err(problem) => {
            resolver.error(problem, file, "envFile");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_command_lines_keep_their_backslashes() {
        let split = |text| split_windows(text).unwrap_or_default();
        assert_eq!(split(r#""C:\Program Files\x.exe" -y  C:\a"#), [r"C:\Program Files\x.exe", "-y", r"C:\a"]);
        assert_eq!(split_windows("\"a"), None);
    }
}
