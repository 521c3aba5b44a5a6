//! Owns whether a command is one that a rule names. A denial looks at every way to name a program; a permission at the
//! plain one.

use super::{Command, Script};
use crate::policy::token::ShellPattern;

/// What a denial says about a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) enum Denial {
    /// It names a command of it.
    Yes(String),
    /// It may: why that is not known.
    Perhaps(&'static str),
    /// It does not.
    No,
}

/// Whether a rule denies a script.
pub(in crate::policy) fn denies(pattern: &ShellPattern, script: &Script) -> Denial {
    if pattern.all {
        return Denial::Yes("it".to_owned());
    }
    let mut perhaps = None;
    for script in script.all() {
        if let Some(why) = script.unclear {
            perhaps.get_or_insert(why);
        }
        for command in &script.commands {
            match denied(pattern, command) {
                Some(true) => return Denial::Yes(command.shown()),
                Some(false) => {}
                None => {
                    perhaps.get_or_insert("a word of it is known when it runs alone");
                }
            }
        }
    }
    perhaps.map_or(Denial::No, Denial::Perhaps)
}

/// `None`: not known.
fn denied(pattern: &ShellPattern, command: &Command) -> Option<bool> {
    let (Some(first), Some((program, others))) = (command.words.first(), pattern.words.split_first()) else {
        return Some(false);
    };
    if !first.known {
        return None;
    }
    let name = command.name().unwrap_or_default();
    let is_named = [first.text.as_str(), first.text.rsplit('/').next().unwrap_or_default(), &name]
        .into_iter()
        .any(|name| program.is_match(name));
    if !is_named {
        return Some(false);
    }
    // Options, with values, may stand before a command's own command: `git -C x push`.
    let arguments = command.words.get(1..).unwrap_or_default();
    let mut start = 0;
    let mut unknown = false;
    loop {
        let rest = arguments.get(start..).unwrap_or_default();
        let pairs = || others.iter().zip(rest);
        let enough = rest.len() >= others.len();
        let may = pairs().all(|(pattern, word)| !word.known || pattern.is_match(&word.text));
        let does = pairs().all(|(pattern, word)| word.known && pattern.is_match(&word.text));
        let last = pattern.rest.as_ref().map(|pattern| {
            let rest = rest.get(others.len()..).unwrap_or_default();
            let text: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
            (pattern.is_match(&text.join(" ")), rest.iter().all(|word| word.known))
        });
        let fits = match last {
            None => true,
            Some((fits, known)) => fits || !known,
        };
        if enough && may && fits {
            if does && last.is_none_or(|(fits, _)| fits) {
                return Some(true);
            }
            unknown = true;
        }
        let skipped = rest.first().is_some_and(|word| !word.known || word.text.starts_with('-'));
        let is_value = start > 0 && arguments.get(start - 1).is_some_and(|word| word.text.starts_with('-'));
        if others.is_empty() || !(skipped || is_value) {
            break;
        }
        start += 1;
    }
    if unknown { None } else { Some(false) }
}

/// Whether a rule allows one command.
pub(in crate::policy) fn allows(pattern: &ShellPattern, command: &Command) -> bool {
    if pattern.all {
        return true;
    }
    if command.assigns || command.words.len() < pattern.words.len() || command.words.is_empty() {
        return false;
    }
    let named = pattern.words.iter().zip(&command.words);
    if !named.into_iter().all(|(pattern, word)| word.known && pattern.is_match(&word.text)) {
        return false;
    }
    let rest = command.words.get(pattern.words.len()..).unwrap_or_default();
    let text: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    match &pattern.rest {
        None => true,
        Some(pattern) if pattern.fits_all() => true,
        Some(pattern) => rest.iter().all(|word| word.known) && pattern.is_match(&text.join(" ")),
    }
}
