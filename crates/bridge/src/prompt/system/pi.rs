//! Owns the recognition of the sections that pi writes for models it drives itself: tools, general rules, documentation.
//!
//! pi writes them in two forms. Plain (0.x): paragraphs with a heading and bullets, one after the other. Tagged (1.x): an
//! element for each. They are recognised by their order and their shape together, and only before anything that a user or a
//! project wrote, so that a heading of the same name in somebody's own text stays.

use std::ops::Range;

/// The system prompt without these sections. A text in which they are not recognised stays as it is.
pub(super) fn without_host_sections(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut gone = tagged(&lines);
    if gone.is_empty() {
        gone = plain(&lines);
    }
    if gone.is_empty() {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut at = 0;
    for range in gone {
        kept.push_str(&lines.get(at..range.start).unwrap_or_default().concat());
        kept.truncate(kept.trim_end().len());
        if !kept.is_empty() {
            kept.push_str("\n\n");
        }
        at = skip_blank(&lines, range.end);
    }
    kept.push_str(&lines.get(at..).unwrap_or_default().concat());
    kept
}

/// The sections as paragraphs.
fn plain(lines: &[&str]) -> Vec<Range<usize>> {
    let end = first(lines, |line| {
        matches!(line, "# Project Context" | "<project_context>" | "<available_skills>")
            || line.starts_with("The following skills provide")
    });
    let lines = lines.get(..end).unwrap_or(lines);
    let mut gone: Vec<Range<usize>> = Vec::new();
    let start = first(lines, |line| line == "Available tools:");
    let catalogue = paragraph(lines, start);
    if begins_paragraph(lines, start) && has_entries(lines, &catalogue) {
        let mut next = skip_blank(lines, catalogue.end);
        let mut section = catalogue;
        let mut is_recognised = false;
        if line_at(lines, next).starts_with("In addition to the tools above") {
            section.end = next + 1;
            is_recognised = true;
            next = skip_blank(lines, section.end);
        }
        if line_at(lines, next) == "Guidelines:" {
            section.end = rules_end(lines, next);
            is_recognised = true;
        }
        if is_recognised {
            gone.push(section);
        }
    }
    let from = gone.last().map_or(0, |section| section.end);
    let start = from + first(lines.get(from..).unwrap_or_default(), is_documentation);
    let documentation = start..bullets(lines, start + 1);
    if begins_paragraph(lines, start) && documentation.len() > 1 {
        gone.push(documentation);
    }
    gone
}

/// Where the rules end that begin here. A rule may have several lines and paragraphs, so all up to the documentation belongs
/// to the rules, if it ends as a rule and nothing between looks like a heading. Else it is the bullets alone.
fn rules_end(lines: &[&str], start: usize) -> usize {
    let documentation = start + first(lines.get(start..).unwrap_or_default(), is_documentation);
    let inside = lines.get(start + 1..documentation).unwrap_or_default();
    let Some(last) = inside.iter().rposition(|line| !line.trim_end().is_empty()) else { return start + 1 };
    let is_heading = |at: usize| {
        let line = line_at(lines, at);
        begins_paragraph(lines, at) && (line.ends_with(':') || line.starts_with(['#', '<']))
    };
    let is_whole = begins_paragraph(lines, documentation)
        && inside.get(last).is_some_and(|line| line.starts_with("- "))
        && !(start + 1..documentation).any(is_heading);
    if is_whole { start + last + 2 } else { bullets(lines, start + 1) }
}

/// The sections as elements.
fn tagged(lines: &[&str]) -> Vec<Range<usize>> {
    let end = first(lines, |line| matches!(line, "<addendum>" | "<project_context>" | "<skills>" | "<cwd>"));
    let lines = lines.get(..end).unwrap_or(lines);
    let tools = element(lines, "tools", 0).filter(|tools| is_catalogue(lines, tools));
    let from = tools.as_ref().map_or(0, |tools| tools.end);
    let rules =
        element(lines, "rules", from).filter(|rules| line_at(lines, rules.start + 1).starts_with("- "));
    let from = rules.as_ref().map_or(from, |rules| rules.end);
    let docs = element(lines, "docs", from).filter(|docs| {
        is_documentation(line_at(lines, docs.start + 1)) && bullets(lines, docs.start + 2) == docs.end - 1
    });
    let follows = |one: &Option<Range<usize>>, other: &Option<Range<usize>>| match (one, other) {
        (Some(one), Some(other)) => skip_blank(lines, one.end) == other.start,
        _ => false,
    };
    let rules_stand = follows(&tools, &rules) || follows(&rules, &docs);
    let tools_stand = follows(&tools, &rules) || follows(&tools, &docs);
    [tools.filter(|_| tools_stand), rules.filter(|_| rules_stand), docs].into_iter().flatten().collect()
}

/// An element: its opening tag alone in a line, to its closing tag alone in a line.
fn element(lines: &[&str], name: &str, from: usize) -> Option<Range<usize>> {
    let (opening, closing) = (format!("<{name}>"), format!("</{name}>"));
    let start = from + first(lines.get(from..)?, |line| line == opening);
    let length = first(lines.get(start..)?, |line| line == closing);
    (start + length < lines.len()).then_some(start..start + length + 1)
}

/// Between the tags stand entries and at most one paragraph more, which speaks of tools.
fn is_catalogue(lines: &[&str], element: &Range<usize>) -> bool {
    let entries = paragraph(lines, element.start);
    let inside = entries.start + 1..entries.end.min(element.end - 1);
    let after = skip_blank(lines, inside.end);
    let is_all =
        after == element.end - 1 || (after == element.end - 2 && line_at(lines, after).contains("tools"));
    is_all && lines.get(inside).unwrap_or_default().iter().all(|line| is_entry(line.trim_end()))
}

/// A paragraph of which every line but the first is an entry of a list of tools, or goes on with one.
fn has_entries(lines: &[&str], paragraph: &Range<usize>) -> bool {
    paragraph.len() > 1 && is_entry(line_at(lines, paragraph.start + 1))
}

/// `- name: what it does`, or that there is none.
fn is_entry(line: &str) -> bool {
    let name = line.strip_prefix("- ").and_then(|entry| entry.split_once(':')).map(|(name, _)| name);
    line == "(none)" || name.is_some_and(|name| !name.is_empty() && !name.contains(char::is_whitespace))
}

fn is_documentation(line: &str) -> bool {
    line.starts_with("Pi documentation") && line.ends_with(':')
}

/// There is such a line, and an empty one or none before it.
fn begins_paragraph(lines: &[&str], start: usize) -> bool {
    start < lines.len() && start.checked_sub(1).is_none_or(|before| line_at(lines, before).is_empty())
}

/// From a line to the next empty one.
fn paragraph(lines: &[&str], start: usize) -> Range<usize> {
    let rest = lines.get(start..).unwrap_or_default();
    start..start + first(rest, str::is_empty)
}

/// Where the bullets end that begin here.
fn bullets(lines: &[&str], start: usize) -> usize {
    start
        + first(lines.get(start..).unwrap_or_default(), |line| {
            !line.starts_with("- ") && !line.starts_with("  ")
        })
}

fn skip_blank(lines: &[&str], start: usize) -> usize {
    start + first(lines.get(start..).unwrap_or_default(), |line| !line.is_empty())
}

fn line_at<'a>(lines: &[&'a str], place: usize) -> &'a str {
    lines.get(place).copied().unwrap_or_default().trim_end()
}

/// The first line of which it is true, or how many there are.
fn first(lines: &[&str], is_wanted: impl Fn(&str) -> bool) -> usize {
    lines.iter().position(|line| is_wanted(line.trim_end())).unwrap_or(lines.len())
}
