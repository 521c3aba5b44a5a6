//! `cargo xtask docs`: writes the documents that are generated, or checks that they are in step.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Step;
use crate::workspace::Workspace;

const DOCUMENT: &str = "docs/cli.md";
const HEAD: &str = "# Command line reference\n\nWritten by `cargo xtask docs` from `toolway --help`.\n";

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => bail!("usage: cargo xtask docs [--check]"),
    };
    workspace.cargo(&["build", "--quiet", "--package", "toolway"]).run()?;
    let mut text = HEAD.to_owned();
    describe(&workspace.binary("toolway")?, &[], &mut text)?;
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

/// Appends the help of one command and, below it, of its subcommands.
fn describe(binary: &Path, command: &[String], text: &mut String) -> Result<()> {
    let help = Step::new(binary).args(command).arg("--help").output(Duration::from_secs(10))?;
    let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let title = [&["toolway".to_owned()], command].concat().join(" ");
    text.extend(["\n## ", &title, "\n\n```text\n", &help.join("\n"), "\n```\n"]);
    for name in subcommands(&help) {
        describe(binary, &[command, &[name]].concat(), text)?;
    }
    Ok(())
}

/// The names in the section "Commands:" of a help text.
fn subcommands(help: &[&str]) -> Vec<String> {
    let section = help.iter().skip_while(|line| **line != "Commands:").skip(1);
    let entries = section.take_while(|line| !line.is_empty());
    // An entry is indented by two; a longer indentation goes on with the entry above.
    let names = entries.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_read_from_the_help() {
        let help = ["What it is", "", "Commands:", "  one    First", "           and on", "  two    Second"];
        let help: Vec<&str> =
            help.into_iter().chain(["  help   Print this", "", "Options:", "  -h"]).collect();
        assert_eq!(subcommands(&help), ["one", "two"]);
        assert_eq!(subcommands(&["Usage: x", "", "Options:"]), Vec::<String>::new());
    }
}
