//! Owns which command lines stand in a command line: behind wrappers, shells and relays; and which of them starts
//! Toolway's gateway. Pure.

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
/// Texts for a shell in one another are looked at so far.
const DEEPEST: usize = 8;

/// Whether a command line ends in `toolway serve`.
pub(crate) fn starts_gateway<S: AsRef<str>>(words: &[S]) -> bool {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    any(&words, &mut |line| {
        let [program, rest @ ..] = line else { return false };
        OURS.contains(&bare(program).as_str()) && command_of(rest) == Some("serve")
    })
}

/// Whether any of the command lines that this one starts, itself among them, is as asked. What stands behind a wrapper
/// may begin at each of its arguments.
pub(crate) fn any(words: &[&str], asked: &mut dyn FnMut(&[&str]) -> bool) -> bool {
    within(words, 0, asked)
}

fn within(words: &[&str], depth: usize, asked: &mut dyn FnMut(&[&str]) -> bool) -> bool {
    // Each place is looked at once, however often the same word stands there.
    let mut waiting = vec![0];
    let (mut seen, mut read) = (vec![false; words.len()], vec![false; words.len()]);
    while let Some(at) = waiting.pop() {
        let Some((program, rest)) = words.get(at..).and_then(<[&str]>::split_first) else { continue };
        if seen.get_mut(at).is_none_or(|seen| std::mem::replace(seen, true)) {
            continue;
        }
        if asked(words.get(at..).unwrap_or_default()) {
            return true;
        }
        let name = bare(program);
        if OURS.contains(&name.as_str()) && command_of(rest).is_some_and(|command| RELAYS.contains(&command))
        {
            let behind = rest.iter().position(|word| *word == "--");
            waiting.extend(behind.map(|behind| at + behind + 2));
        } else if WRAPPERS.contains(&name.as_str()) {
            waiting.extend(at + 1..words.len());
        } else if SHELLS.contains(&name.as_str()) && depth < DEEPEST {
            for (place, word) in words.iter().enumerate().skip(at + 2) {
                let is_text = words.get(place - 1).is_some_and(|flag| is_script(flag));
                let is_new =
                    is_text && read.get_mut(place).is_some_and(|read| !std::mem::replace(read, true));
                if is_new && script(word, depth, asked) {
                    return true;
                }
            }
        }
    }
    false
}

/// Toolway's own command among its words.
fn command_of<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().copied().find(|word| *word == "serve" || RELAYS.contains(word))
}

/// `-c`, `-lc` and the like.
fn is_script(flag: &str) -> bool {
    flag.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.ends_with('c'))
}

/// A text for a shell: simple commands one after the other.
fn script(text: &str, depth: usize, asked: &mut dyn FnMut(&[&str]) -> bool) -> bool {
    text.split(['\n', ';', '&', '|', '(', ')']).any(|command| {
        let words = shlex::split(command).unwrap_or_default();
        let assigns = |word: &&String| {
            let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let words: Vec<&str> = words.iter().skip_while(assigns).map(String::as_str).collect();
        within(&words, depth + 1, asked)
    })
}

/// `toolway` for `/opt/bin/toolway` and `C:\bin\Toolway.exe`.
pub(crate) fn bare(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    match name.rsplit_once('.') {
        Some((stem, "exe" | "cmd" | "bat" | "com")) => stem.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{any, starts_gateway};

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

    #[test]
    fn a_line_of_wrappers_without_end_is_walked_once() {
        let words = vec!["env"; 2000];
        let mut looks = 0;
        assert!(!any(&words, &mut |_| {
            looks += 1;
            false
        }));
        assert_eq!(looks, 2000);
        let mut text = "true".to_owned();
        for _ in 0..12 {
            text = format!("sh -c {}", shlex::try_quote(&text).unwrap());
        }
        assert!(!starts_gateway(&["sh", "-c", &text, "-c", &text]));
    }
}
