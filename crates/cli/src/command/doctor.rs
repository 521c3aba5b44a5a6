//! `toolway doctor`: why an agent does not have a tool, layer by layer from the file to the list, with the fix of each.

mod causes;
mod client;
mod cloud;
mod diagnosis;
mod entries;
mod offers;
mod probe;
mod report;
mod sign_ins;
mod text;

use std::io::Write as _;

use super::shell::{Refusal, Shell, told};
use crate::args::DoctorArgs;
use crate::border;
use crate::exit::Exit;
use crate::show::safe;
use diagnosis::{Asked, diagnose, schema};
use text::text;

/// Looks, tells, and ends with 0 only where every enabled server is usable.
pub(super) fn run(args: &DoctorArgs) -> Exit {
    told(doctor(args))
}

fn doctor(args: &DoctorArgs) -> Result<Exit, Refusal> {
    let mut out = std::io::stdout().lock();
    if args.schema {
        writeln!(out, "{:#}", schema())?;
        return Ok(Exit::Done);
    }
    let shell = Shell::new(&args.talk)?;
    let servers = shell.servers(&args.sources)?;
    let asked = Asked::new(args, &servers)?;
    let report = diagnose(&shell, &servers, &asked)?;
    if shell.json {
        let report = serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?;
        writeln!(out, "{}", border::json(&report))?;
    } else {
        let page = text(&report, args.talk.verbose > 0);
        let page = border::page(&page);
        let page = if shell.terminal.out { safe(&page) } else { page.as_ref().into() };
        out.write_all(page.as_bytes())?;
    }
    Ok(if report.usable { Exit::Done } else { Exit::Ended })
}
