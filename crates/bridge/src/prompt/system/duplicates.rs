//! Owns the removal of instruction files that the agent loads itself, by exact match of the block in which they stand.

use super::InstructionFile;

const TAGGED: (&str, &str) = ("<project_context>", "</project_context>");
const PLAIN: &str = "# Project Context";
const INTRODUCTION: &str = "Project-specific instructions and guidelines:";
/// The ends of lines that a host may write.
const BREAKS: [&str; 2] = ["\n", "\r\n"];

/// The system prompt without the blocks of these files. A block that differs in any character stays.
pub(super) fn without(text: &str, files: &[&InstructionFile]) -> String {
    let mut text = text.to_owned();
    let mut is_changed = false;
    for InstructionFile { path, content, .. } in files {
        let blocks = BREAKS.iter().flat_map(|end| {
            [
                format!("<project_instructions path=\"{path}\">{end}{content}{end}</project_instructions>"),
                format!("## {path}{end}{end}{content}{end}{end}"),
            ]
        });
        for block in blocks {
            if let Some(left) = cut(&text, &block) {
                text = left;
                is_changed = true;
            }
        }
    }
    if is_changed { without_empty_section(&text) } else { text }
}

/// The text without the first such block in the section of instruction files, and without the empty lines after it.
fn cut(text: &str, block: &str) -> Option<String> {
    let section = [TAGGED.0, PLAIN].into_iter().filter_map(|opening| whole_line(text, opening)).min()?;
    let start = line_start(text, block, section)?;
    let before = text.get(..start)?;
    let after = text.get(start + block.len()..)?;
    // In the plain form nothing but what follows tells that the file ends there: another paragraph would be more of it.
    let is_whole = after.is_empty()
        || after.starts_with(['\n', '\r'])
        || (block.ends_with('\n') && after.starts_with("## "));
    is_whole.then(|| format!("{before}{}", after.trim_start_matches(['\n', '\r'])))
}

/// Where the text stands at the beginning of a line.
fn line_start(text: &str, wanted: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let found = rest.match_indices(wanted).map(|(at, _)| from + at);
    found.into_iter().find(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'))
}

/// Where a line is just that.
fn whole_line(text: &str, wanted: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r']) == wanted && line.ends_with('\n') {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// The section of instruction files goes if nothing is left in it.
fn without_empty_section(text: &str) -> String {
    let tagged = whole_line(text, TAGGED.0).and_then(|start| {
        let inner = text.get(start + TAGGED.0.len()..)?;
        let end = inner.find(TAGGED.1)?;
        let is_empty = inner.get(..end)?.trim() == INTRODUCTION;
        is_empty.then_some((start, start + TAGGED.0.len() + end + TAGGED.1.len()))
    });
    let plain = || {
        let start = whole_line(text, PLAIN)?;
        let inner = text.get(start + PLAIN.len()..)?;
        let rest = inner.trim_start().strip_prefix(INTRODUCTION)?.trim_start();
        (!rest.starts_with("## ")).then_some((start, text.len() - rest.len()))
    };
    let Some((start, end)) = tagged.or_else(plain) else { return text.to_owned() };
    let (before, after) = (text.get(..start).unwrap_or_default(), text.get(end..).unwrap_or_default());
    format!("{}\n\n{}", before.trim_end(), after.trim_start_matches(['\n', '\r'])).trim().to_owned()
}
