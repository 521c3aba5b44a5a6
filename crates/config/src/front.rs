//! Owns what tells an entry that starts Toolway's gateway, itself or by way of another program. Pure.

/// Names under which the program is installed.
const OURS: [&str; 2] = ["toolway", "cursor-mcp-response-proxy"];
/// Programs that start the one that stands among their arguments.
const WRAPPERS: [&str; 15] = [
    "env", "nice", "nohup", "setsid", "stdbuf", "time", "timeout", "sudo", "doas", "exec", "cmd", "wsl",
    "direnv", "mise", "command",
];
/// Programs that start what is in the text behind `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "ash"];
/// Commands of Toolway that stand in front of one server, whose own command line is behind `--`.
const RELAYS: [&str; 3] = ["stdio", "sse", "streamable-http"];
/// Command lines in one another are looked at so far.
const DEEPEST: usize = 8;

/// Whether a command line ends in `toolway serve`.
pub(crate) fn starts_gateway<S: AsRef<str>>(words: &[S]) -> bool {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    line(&words, 0)
}

fn line(words: &[&str], depth: usize) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    if depth > DEEPEST {
        return false;
    }
    let name = bare(program);
    if OURS.contains(&name.as_str()) {
        return of_toolway(rest, depth);
    }
    if SHELLS.contains(&name.as_str()) {
        return rest
            .windows(2)
            .any(|pair| matches!(pair, [flag, text] if is_script(flag) && script(text, depth)));
    }
    if WRAPPERS.contains(&name.as_str()) {
        return (0..rest.len()).any(|at| {
            let inner = rest.get(at..).unwrap_or_default();
            inner.first().is_some_and(|word| begins(word)) && line(inner, depth + 1)
        });
    }
    false
}

/// Whether a word among a wrapper's arguments may be the program that it starts.
fn begins(word: &str) -> bool {
    let name = bare(word);
    [&OURS[..], &SHELLS[..], &WRAPPERS[..]].iter().any(|names| names.contains(&name.as_str()))
}

/// What stands behind `toolway`.
fn of_toolway(words: &[&str], depth: usize) -> bool {
    let command = words.iter().position(|word| *word == "serve" || RELAYS.contains(word));
    match command.and_then(|at| words.get(at..)) {
        Some(["serve", ..]) => true,
        Some(relay) => {
            let behind = relay.iter().position(|word| *word == "--").and_then(|at| relay.get(at + 1..));
            behind.is_some_and(|behind| line(behind, depth + 1))
        }
        None => false,
    }
}

/// `-c`, `-lc` and the like.
fn is_script(flag: &str) -> bool {
    flag.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.ends_with('c'))
}

/// A text for a shell: simple commands one after the other.
fn script(text: &str, depth: usize) -> bool {
    text.split(['\n', ';', '&', '|', '(', ')']).any(|command| {
        let words = shlex::split(command).unwrap_or_default();
        let assigns = |word: &&String| {
            let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let words: Vec<&str> = words.iter().skip_while(assigns).map(String::as_str).collect();
        line(&words, depth + 1)
    })
}

/// `toolway` for `/opt/bin/toolway` and `C:\bin\Toolway.exe`.
fn bare(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    match name.rsplit_once('.') {
        Some((stem, "exe" | "cmd" | "bat" | "com")) => stem.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::starts_gateway;

    fn starts(line: &str) -> bool {
        starts_gateway(&shlex::split(line).unwrap())
    }

    #[test]
    fn the_gateway_is_known_through_what_starts_it() {
        for line in [
            "toolway serve",
            "/opt/bin/toolway serve --client cursor",
            r"'C:\Program Files\Toolway.EXE' serve",
            "cursor-mcp-response-proxy serve",
            "toolway --log debug serve --expose search",
            "toolway stdio --client codex -- /x/toolway serve",
            "env A=b PATH=/x toolway serve",
            "env -u X nice -n 5 toolway serve",
            "sh -c 'toolway serve'",
            "bash -lc 'cd /x && exec A=b toolway serve 2>/dev/null'",
            "bash -lc 'A=b toolway serve'",
            "cmd /c toolway.exe serve",
            "wsl -d Ubuntu -- bash -lc 'toolway serve'",
        ] {
            assert!(starts(line), "{line}");
        }
    }

    #[test]
    fn servers_that_only_sound_like_it_are_none() {
        for line in [
            "",
            "serve",
            "npx serve",
            "mytoolway serve",
            "toolway",
            "toolway list",
            "toolway stdio -- mytool serve",
            "toolway stdio -- npx -y serve",
            "toolway streamable-http --url https://h/serve",
            "node toolway serve",
            "docker run toolway serve",
            "env A=toolway mytool serve",
            "sh -c 'echo toolway serve'",
            "sh toolway.sh serve",
        ] {
            assert!(!starts(line), "{line}");
        }
    }
}
