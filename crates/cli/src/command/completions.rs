//! `toolway completions`: what makes a shell complete the commands.

use std::io::Write as _;

use clap_complete::Shell;

use crate::args::{self, CompletionsArgs};
use crate::compose::UsageError;
use crate::exit::Exit;

const SHELLS: [(&str, Shell); 4] =
    [("bash", Shell::Bash), ("zsh", Shell::Zsh), ("fish", Shell::Fish), ("powershell", Shell::PowerShell)];

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs) -> Result<Exit, UsageError> {
    let wanted = args.shell.to_ascii_lowercase();
    let shell =
        SHELLS.iter().find(|(name, _)| *name == wanted || (wanted == "pwsh" && *name == "powershell"));
    let Some((_, shell)) = shell else {
        let known = SHELLS.map(|(name, _)| name).join(", ");
        return Err(UsageError::new("SHELL", format!("{:?} is none of {known}", args.shell))
            .with_hint("for example: source <(toolway completions bash)"));
    };
    let script = script(*shell);
    let written = std::io::stdout().lock().write_all(&script);
    // Whoever reads our output may close it.
    Ok(if written.is_ok() { Exit::Done } else { Exit::Ended })
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&args::definition()), "toolway", &mut script);
    script
}

/// The command line without what is only for ourselves.
fn visible(definition: &clap::Command) -> clap::Command {
    let mut shown = clap::Command::new("toolway").version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = definition.get_about() {
        shown = shown.about(about.clone());
    }
    shown = shown.disable_help_subcommand(true).args(definition.get_arguments().cloned());
    shown.subcommands(definition.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_learns_every_command_and_no_hidden_one() {
        let commands: Vec<String> = args::definition()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        assert!(commands.len() > 10, "{commands:?}");
        for (name, shell) in SHELLS {
            let script = String::from_utf8(script(shell)).unwrap();
            for command in &commands {
                assert!(script.contains(command), "{name}: {command}");
            }
            assert!(script.contains("max-response-chars"), "{name}");
            assert!(!script.contains("__demo"), "{name}");
        }
    }
}
