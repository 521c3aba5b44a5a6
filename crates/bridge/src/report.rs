//! Owns the text of the debug command. Pure, and of every part it can do without. Nothing in it comes from a value that
//! could be a secret: no endpoints, no arguments, no results.

use std::fmt::Write as _;

use crate::deadline::Deadlines;
use crate::manifest::{ManifestOptions, manifest, manifest_without_snapshot};
use crate::naming::quoted;
use crate::profile::Profile;
use crate::settings::{Settings, Warning};
use crate::snapshot::Snapshot;

/// Rows of one table.
const MOST_ROWS: usize = 200;
/// Names in the line of setting sources.
const MOST_SOURCES: usize = 50;
/// Diagnostics, the last ones.
const MOST_DIAGNOSTICS: usize = 20;
/// Characters of one line that came from elsewhere.
const LINE: usize = 240;

/// What the report can say. Only the profile has to be there.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// The names.
    pub profile: &'a Profile,
    /// The user file, or the defaults that stand for it.
    pub settings: Option<&'a Settings>,
    /// What is to be said about it.
    pub warnings: &'a [Warning],
    /// Of this moment, not the one of a run.
    pub snapshot: Option<&'a Snapshot>,
    /// The deadlines as they count.
    pub deadlines: Option<Deadlines>,
    /// The run that lives.
    pub run: Option<ReportedRun<'a>>,
    /// Lines of diagnostics, scrubbed, the last one last.
    pub diagnostics: &'a [String],
}

/// What is known of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedRun<'a> {
    /// Its id, which says nothing of its endpoint.
    pub id: &'a str,
    /// Calls that wait for the host.
    pub pending: usize,
    /// Tools that it exposes.
    pub exposed: usize,
    /// A client has connected.
    pub connected: bool,
    /// A client has asked for the list.
    pub listed: bool,
    /// A client has called a tool.
    pub called: bool,
}

/// The report.
pub fn report(input: &ReportInput<'_>) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    head(&mut text, input).unwrap_or_default();
    tables(&mut text, input).unwrap_or_default();
    state(&mut text, input).unwrap_or_default();
    text.truncate(text.trim_end().len());
    text
}

/// The three settings and the manifest.
fn head(text: &mut String, input: &ReportInput<'_>) -> std::fmt::Result {
    let defaults = Settings::default();
    let settings = input.settings.unwrap_or(&defaults);
    let switch = |is_on: bool| if is_on { "enabled" } else { "disabled" };
    let sources = match settings.local.setting_sources.as_slice() {
        [] => "none".to_owned(),
        sources => {
            let shown = sources.iter().take(MOST_SOURCES).map(|source| line(source));
            let more = sources.len().saturating_sub(MOST_SOURCES);
            let more = (more > 0).then(|| format!("and {more} more"));
            shown.chain(more).collect::<Vec<_>>().join(", ")
        }
    };
    writeln!(text, "Tool surfaces of the current session ({})", input.profile.debug_command)?;
    writeln!(text, "tools.bridge.enabled: {}", switch(settings.tools.bridge.enabled))?;
    writeln!(text, "tools.manifest: {}", switch(settings.tools.manifest))?;
    writeln!(text, "local.settingSources: {sources}")?;
    if let Some(snapshot) = input.snapshot {
        writeln!(text, "{}", manifest(input.profile, snapshot, &ManifestOptions { in_prompt: false }))
    } else {
        writeln!(text, "No snapshot: the tools of {} could not be read.", input.profile.host)?;
        writeln!(text, "{}", manifest_without_snapshot(input.profile))
    }
}

/// What is exposed under which name, what is not and why.
fn tables(text: &mut String, input: &ReportInput<'_>) -> std::fmt::Result {
    let Some(snapshot) = input.snapshot else { return Ok(()) };
    let exposed = snapshot.exposed();
    writeln!(text, "\nExposed: {}", exposed.len())?;
    for tool in exposed.iter().take(MOST_ROWS) {
        write!(text, "  {} = {}", tool.mcp_name, quoted(&tool.tool.name))?;
        match tool.odd_schema {
            Some(odd) => writeln!(text, ", listed with an empty object schema: {odd}")?,
            None => writeln!(text)?,
        }
    }
    more(text, exposed.len())?;
    let hidden = snapshot.hidden();
    writeln!(text, "\nHidden: {}", hidden.len())?;
    for tool in hidden.iter().take(MOST_ROWS) {
        writeln!(text, "  {}: {}", quoted(&tool.name), tool.reason)?;
    }
    more(text, hidden.len())
}

/// What lives, and what went wrong.
fn state(text: &mut String, input: &ReportInput<'_>) -> std::fmt::Result {
    if let Some(Deadlines { tool, bridge, connect }) = input.deadlines {
        let [tool, bridge, connect] = [tool, bridge, connect].map(|time| time.as_millis());
        writeln!(
            text,
            "\nDeadlines: MCP tool calls {tool} ms, calls through the bridge {bridge} ms, connecting {connect} ms"
        )?;
    }
    if let Some(run) = input.run {
        let yes = |is_so: bool| if is_so { "yes" } else { "not yet" };
        writeln!(text, "\nRun {}: {} pending", line(run.id), run.pending)?;
        writeln!(
            text,
            "  exposed: {}, connected: {}, listed: {}, called: {}",
            run.exposed,
            yes(run.connected),
            yes(run.listed),
            yes(run.called)
        )?;
    }
    let skipped = input.diagnostics.len().saturating_sub(MOST_DIAGNOSTICS);
    list(text, "Last diagnostics", input.diagnostics.iter().skip(skipped).map(|entry| line(entry)))?;
    list(text, "Warnings about settings", input.warnings.iter().map(|warning| line(&warning.to_string())))
}

fn list(text: &mut String, title: &str, lines: impl Iterator<Item = String>) -> std::fmt::Result {
    for (place, entry) in lines.enumerate() {
        if place == 0 {
            writeln!(text, "\n{title}:")?;
        }
        writeln!(text, "  {entry}")?;
    }
    Ok(())
}

fn more(text: &mut String, rows: usize) -> std::fmt::Result {
    match rows.saturating_sub(MOST_ROWS) {
        0 => Ok(()),
        more => writeln!(text, "  and {more} more"),
    }
}

/// Text from elsewhere as one line without control characters, cut.
fn line(text: &str) -> String {
    let mut shown: String =
        text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).take(LINE).collect();
    if text.chars().nth(LINE).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests;
