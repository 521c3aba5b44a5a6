//! `cargo xtask docs`: writes the documents that are generated, or checks that they are in step.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Step;
use crate::workspace::Workspace;

/// Subcommands in the order of the reference, each as typed after `toolway`.
const COMMANDS: [&str; 11] = [
    "",
    "stdio",
    "sse",
    "streamable-http",
    "quickstart",
    "saved",
    "saved list",
    "saved show",
    "saved search",
    "saved query",
    "saved purge",
];
const DOCUMENT: &str = "docs/cli.md";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => bail!("usage: cargo xtask docs [--check]"),
    };
    workspace.cargo(&["build", "--quiet", "--package", "toolway"]).run()?;
    let text = reference(workspace)?;
    let path = workspace.root().join(DOCUMENT);
    if check {
        let present = fs::read_to_string(&path).with_context(|| format!("{DOCUMENT} is missing"))?;
        if present != text {
            bail!("{DOCUMENT} is out of step: run `cargo xtask docs`");
        }
        println!("{DOCUMENT} is in step");
        return Ok(());
    }
    fs::create_dir_all(workspace.root().join("docs"))?;
    fs::write(&path, text).with_context(|| format!("cannot write {DOCUMENT}"))?;
    println!("wrote {DOCUMENT}");
    Ok(())
}

fn reference(workspace: &Workspace) -> Result<String> {
    let binary = workspace.binary("toolway")?;
    let mut text =
        String::from("# Command line reference\n\nWritten by `cargo xtask docs` from `toolway --help`.\n");
    for command in COMMANDS {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = Step::new(&binary).args(&words).output(Duration::from_secs(10))?;
        let title = if command.is_empty() { "toolway".to_owned() } else { format!("toolway {command}") };
        let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        text.extend(["\n## ", &title, "\n\n```text\n", &help.join("\n"), "\n```\n"]);
    }
    Ok(text)
}
