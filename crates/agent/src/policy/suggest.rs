//! Owns which rule is offered to somebody who allows a command for longer: as narrow as it is useful.

use super::shell::Command;
use super::token::escaped;

/// Programs with commands of their own: the rule names both.
const FAMILIES: &[&str] = &[
    "git",
    "gh",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "go",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "make",
    "just",
    "apt",
    "apt-get",
    "brew",
    "systemctl",
    "terraform",
    "dotnet",
    "gradle",
    "mvn",
];
/// Programs of which every use is another matter: the rule names all that was said.
const SINGLE: &[&str] = &[
    "rm",
    "rmdir",
    "mv",
    "cp",
    "dd",
    "chmod",
    "chown",
    "kill",
    "killall",
    "pkill",
    "curl",
    "wget",
    "ssh",
    "scp",
    "rsync",
    "python",
    "python3",
    "node",
    "perl",
    "ruby",
    "php",
    "awk",
    "sed",
    "tee",
    "find",
    "fd",
    "npx",
    "pnpx",
    "bunx",
    "uvx",
    "sh",
    "bash",
    "zsh",
    "dash",
    "fish",
    "ksh",
    "eval",
    "exec",
    "command",
    "builtin",
    "env",
    "sudo",
    "doas",
    "su",
    "xargs",
    "nohup",
    "nice",
    "timeout",
    "time",
    "setsid",
    "watch",
    "parallel",
    "source",
    ".",
    "trap",
    "alias",
    "export",
    "osascript",
    "powershell",
    "pwsh",
    "cmd",
];

/// The rule for a command; none where no rule can allow it.
pub(super) fn rule(command: &Command) -> Option<String> {
    if command.assigns || command.words.iter().any(|word| !word.known) {
        return None;
    }
    let (first, rest) = command.words.split_first()?;
    let first = first.text.as_str();
    let is_plain = |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == ':');
    if !is_plain(first) {
        return None;
    }
    let own =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !text.starts_with('-');
    if FAMILIES.contains(&first) {
        let second = rest.first().map(|word| word.text.as_str()).filter(|text| !text.is_empty() && own(text));
        if let Some(second) = second {
            return Some(format!("Shell({first} {second})"));
        }
    } else if !SINGLE.contains(&first) && !first.contains('/') {
        return Some(format!("Shell({})", escaped(first)));
    }
    let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    let rest = rest.join(" ");
    // The end of the rule is found by its last bracket, and a line is a line.
    (!rest.contains('\n')).then(|| format!("Shell({}:{})", escaped(first), escaped(&rest)))
}
