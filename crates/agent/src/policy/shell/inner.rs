//! Owns commands inside of commands: those that run another one which their arguments name.

use super::parser::DEPTH;
use super::{Command, Limits, Script, Word};

/// They run what their arguments name, after options of their own.
const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "su",
    "runuser",
    "pkexec",
    "env",
    "nohup",
    "nice",
    "ionice",
    "timeout",
    "time",
    "command",
    "builtin",
    "exec",
    "setsid",
    "stdbuf",
    "xargs",
    "chroot",
    "busybox",
    "toybox",
    "unshare",
    "nsenter",
    "strace",
    "ltrace",
    "watch",
    "parallel",
    "flock",
    "script",
    "coproc",
    "chrt",
    "taskset",
    "systemd-run",
    "caffeinate",
    "entr",
    "unbuffer",
    "fakeroot",
    "firejail",
    "bwrap",
    "noglob",
    "nocorrect",
];
/// No more scripts inside of one.
const MOST: usize = 200;
/// The most words of an inner command that are looked at.
const WORDS: usize = 128;
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh"];
/// Behind these `find` and its kin run a command.
const EXEC: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Finds what the commands of a script run in their turn.
pub(super) fn reveal(script: &mut Script, limits: Limits<'_>) {
    if limits.depth > DEPTH {
        script.unclear("its commands are too deep in one another");
        return;
    }
    let mut inner = Vec::new();
    for command in &script.commands {
        look(command, limits, &mut inner);
    }
    // What is found again and again in wrappers of wrappers is not looked into for ever.
    let mut next = 0;
    while next < inner.len() && inner.len() < MOST {
        let mut more = Vec::new();
        if let Some(found) = inner.get(next).filter(|found: &&Script| found.inner.is_empty()) {
            let commands = found.commands.clone();
            let is_candidate = commands.len() == 1;
            for command in commands.iter().filter(|_| is_candidate) {
                look(command, limits, &mut more);
            }
        }
        more.retain(|found| !inner.contains(found));
        inner.extend(more);
        next += 1;
    }
    if inner.len() >= MOST {
        script.unclear("it has too many commands");
    }
    script.inner = inner;
}

fn look(command: &Command, limits: Limits<'_>, inner: &mut Vec<Script>) {
    let Some(name) = command.name() else { return };
    let arguments = command.words.get(1..).unwrap_or_default();
    if WRAPPERS.contains(&name.as_str()) {
        wrapped(arguments, command.fed, inner);
        texts(arguments.iter().filter(|word| word.text.contains(char::is_whitespace)), limits, inner);
    } else if SHELLS.contains(&name.as_str()) {
        shell(command, arguments, limits, inner);
    } else if matches!(name.as_str(), "find" | "fd" | "fdfind" | "gfind") {
        for (index, _) in arguments.iter().enumerate().filter(|(_, word)| EXEC.contains(&word.text.as_str()))
        {
            candidate(arguments.get(index + 1..).unwrap_or_default(), command.fed, inner);
        }
    } else if name == "eval" {
        let known = arguments.iter().all(|word| word.known);
        let text: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        parsed(&Word { text: text.join(" "), known, ..Word::default() }, limits, inner);
    } else if name == "trap" {
        texts(arguments.iter().take(1), limits, inner);
    } else if name == "alias" {
        for word in arguments {
            let text = word.text.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or_default();
            parsed(&Word { text, ..word.clone() }, limits, inner);
        }
    }
}

/// Every argument that is no option may be the command: which options take a value is not known here.
fn wrapped(arguments: &[Word], fed: bool, inner: &mut Vec<Script>) {
    let mut others = 0;
    for (index, word) in arguments.iter().enumerate() {
        let is_option = word.text.starts_with('-') || word.assigns;
        if is_option && word.known {
            continue;
        }
        if word.known || others <= 1 {
            candidate(arguments.get(index..).unwrap_or_default(), fed, inner);
        }
        others += 1;
    }
}

fn candidate(words: &[Word], fed: bool, inner: &mut Vec<Script>) {
    if words.is_empty() || inner.len() >= MOST {
        return;
    }
    let mut words = words.to_vec();
    if words.len() > WORDS {
        words.truncate(WORDS);
        words.push(Word::default());
    }
    let command = Command { words, assigns: false, fed };
    inner.push(Script { commands: vec![command], ..Script::default() });
}

fn shell(command: &Command, arguments: &[Word], limits: Limits<'_>, inner: &mut Vec<Script>) {
    let is_command = |word: &&Word| {
        let text = word.text.as_str();
        text == "--command" || (text.starts_with(['-', '+']) && !text.starts_with("--") && text.contains('c'))
    };
    if let Some(at) = arguments.iter().position(|word| is_command(&word)) {
        // Options may stand between `-c` and the text.
        let text =
            arguments.iter().skip(at + 1).find(|word| !word.text.starts_with(['-', '+']) || !word.known);
        return texts(text, limits, inner);
    }
    let mut script = Script::default();
    let operand = arguments.iter().find(|word| !word.text.starts_with(['-', '+']));
    if arguments.iter().any(|word| !word.known) {
        script.unclear("what a shell runs is not known");
    } else if command.fed && operand.is_none() {
        script.unclear("a shell runs what it reads");
    }
    if script.unclear.is_some() {
        inner.push(script);
    }
}

fn texts<'w>(words: impl IntoIterator<Item = &'w Word>, limits: Limits<'_>, inner: &mut Vec<Script>) {
    for word in words {
        parsed(word, limits, inner);
    }
}

fn parsed(word: &Word, limits: Limits<'_>, inner: &mut Vec<Script>) {
    if inner.len() >= MOST {
        return;
    }
    let mut script = Script::within(&word.text, Limits { depth: limits.depth + 1, ..limits });
    if !word.known {
        script.unclear("a part of what it runs is not known");
    }
    inner.push(script);
}
