//! `toolway man`: manual pages, made from the command line's own definition.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap_mangen::Man;

use super::shell::near;
use crate::args::{self, ManArgs};
use crate::compose::UsageError;
use crate::exit::Exit;

/// A page: the file's name, and its text in the language of man pages.
struct Page {
    file: String,
    text: Vec<u8>,
}

/// Prints a page, or writes all of them.
pub(super) fn run(args: &ManArgs) -> Result<Exit, UsageError> {
    let pages = pages().map_err(|error| UsageError::new("man", error.to_string()))?;
    if let Some(directory) = &args.dir {
        write_all(directory, &pages).map_err(|error| {
            UsageError::new("--dir", format!("cannot write {}: {error}", directory.display()))
        })?;
        let told = writeln!(io::stdout().lock(), "{} pages in {}", pages.len(), directory.display());
        return Ok(if told.is_ok() { Exit::Done } else { Exit::Ended });
    }
    let wanted = format!(
        "{}.1",
        std::iter::once("toolway")
            .chain(args.command.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("-")
    );
    let Some(page) = pages.iter().find(|page| page.file == wanted) else {
        let names = pages.iter().filter_map(|page| page.file.strip_prefix("toolway-")?.strip_suffix(".1"));
        let nearest = near(&args.command.join("-"), names).first().map(|name| name.replace('-', " "));
        let error = UsageError::new("COMMAND", format!("there is no command {:?}", args.command.join(" ")));
        return Err(match nearest {
            Some(nearest) => error.with_hint(format!("did you mean {nearest}?")),
            None => error,
        });
    };
    let written = io::stdout().lock().write_all(&page.text);
    Ok(if written.is_ok() { Exit::Done } else { Exit::Ended })
}

fn write_all(directory: &Path, pages: &[Page]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    pages.iter().try_for_each(|page| fs::write(directory.join(&page.file), &page.text))
}

/// All pages: the program's, and one for each command that is not hidden.
fn pages() -> io::Result<Vec<Page>> {
    let mut definition = args::definition();
    definition.build();
    let mut pages = Vec::new();
    collect(&definition, "toolway", &mut pages)?;
    Ok(pages)
}

fn collect(command: &clap::Command, name: &str, pages: &mut Vec<Page>) -> io::Result<()> {
    let source = format!("toolway {}", env!("CARGO_PKG_VERSION"));
    let titled = command.clone().display_name(name.to_owned()).disable_help_subcommand(true);
    let mut text = Vec::new();
    Man::new(titled).source(source).manual("Toolway").render(&mut text)?;
    pages.push(Page { file: format!("{name}.1"), text });
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
    shown.into_iter().try_for_each(|inner| collect(inner, &format!("{name}-{}", inner.get_name()), pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        for name in ["toolway.1", "toolway-call.1", "toolway-saved-list.1", "toolway-stdio.1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("__")), "{names:?}");
        let call = pages.iter().find(|page| page.file == "toolway-call.1").unwrap();
        let text = String::from_utf8(call.text.clone()).unwrap();
        assert!(text.contains(".TH toolway-call 1"), "{text}");
        assert!(text.contains("\\-\\-save\\-to"), "{text}");
    }
}
