//! Owns how a report reads on a terminal: a line for each server, and under it what is not well with its fix.

use std::fmt::Write;

use super::report::{Check, CloudReport, Report, ServerReport, Verdict};
use crate::render::plain;

/// The longest finding that is shown, in characters.
const LONGEST: usize = 600;

/// The whole report. With `all`, what is well is shown too.
pub(super) fn text(report: &Report, all: bool) -> String {
    let mut out = String::new();
    for file in &report.files {
        let shown: Vec<&Check> = shown(&file.checks, all).collect();
        if all || !shown.is_empty() {
            let missing = if file.read || !file.checks.is_empty() { "" } else { "  (not there)" };
            line(&mut out, format_args!("{} ({}){missing}", plain(&file.path, LONGEST), file.source));
            checks(&mut out, shown);
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    for server in &report.servers {
        one(&mut out, server, all);
    }
    if report.servers.is_empty() {
        line(
            &mut out,
            format_args!("no server is configured: `toolway import` takes over those of your clients"),
        );
    }
    if let Some(client) = &report.client {
        line(&mut out, format_args!("\nfor {}", client.client));
        checks(&mut out, shown(&client.checks, true));
    }
    for entry in report.cloud.iter().flatten() {
        cloud(&mut out, entry);
    }
    let usable = report.servers.iter().filter(|server| server.usable == Some(true)).count();
    let wanted = report.servers.iter().filter(|server| server.usable.is_some()).count();
    line(&mut out, format_args!("\n{usable} of {wanted} enabled servers usable"));
    out
}

fn one(out: &mut String, server: &ServerReport, all: bool) {
    let mark = match server.usable {
        Some(true) => "ok   ",
        Some(false) => "FAULT",
        None => "off  ",
    };
    let name = plain(&server.name, 80);
    let offers = server.tools.as_ref().map_or_else(String::new, |tools| {
        let cut = if tools.renamed.is_empty() {
            String::new()
        } else {
            format!(", {} renamed", tools.renamed.len())
        };
        let held = match tools.quarantined.len() {
            0 => String::new(),
            n => format!(", {n} held back"),
        };
        format!(", {} tools{cut}{held}, about {} tokens", tools.count, tools.tokens)
    });
    line(out, format_args!("{mark} {name}  {}{offers}  [{}]", server.state, plain(&server.source, LONGEST)));
    checks(out, shown(&server.checks, all));
}

fn cloud(out: &mut String, entry: &CloudReport) {
    let name = plain(&entry.name, 80);
    line(out, format_args!("\nin the cloud: {name}  {}; secrets: {}", entry.placement, entry.secrets));
    checks(out, shown(&entry.checks, true));
}

fn shown(checks: &[Check], all: bool) -> impl Iterator<Item = &Check> {
    checks.iter().filter(move |check| all || check.verdict != Verdict::Ok)
}

fn checks<'a>(out: &mut String, checks: impl IntoIterator<Item = &'a Check>) {
    for check in checks {
        let mark = match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Fault => "fault",
        };
        let mut lines = check.finding.lines();
        let first = plain(lines.next().unwrap_or_default(), LONGEST);
        line(out, format_args!("      {:<10} {mark}: {first}", check.layer.name()));
        for more in lines {
            line(out, format_args!("                 | {}", plain(more, LONGEST)));
        }
        if let Some(fix) = &check.fix {
            line(out, format_args!("                 fix: {}", plain(fix, LONGEST)));
        }
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(out, "{text}").ok();
}
