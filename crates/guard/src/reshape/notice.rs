//! Owns the words that a rewritten message begins with. Pure.

use super::{Detail, Facts, Plan, Whereabouts};
use crate::config::ReadBack;
use crate::policy::Shape;
use crate::preview::{Shown, grouped};
use crate::views::BlockKind;

/// Notice and preview.
pub(super) fn text(facts: &Facts<'_>, plan: Plan, shown: &Shown) -> String {
    let mut out = match &facts.saved {
        Ok(whereabouts) => saved(facts, plan, shown, whereabouts),
        Err(reason) => not_saved(facts, plan, shown, reason),
    };
    let left_out = left_out(facts, plan);
    if !left_out.is_empty() && plan.detail <= Detail::Least {
        let fate = if facts.saved.is_ok() { "Only in the file" } else { "Left out" };
        out.push_str(&format_args!("{fate}: {left_out}.\n").to_string());
    }
    if !shown.text.is_empty() {
        out.push_str(if shown.cut { "----- preview -----\n" } else { "----- text -----\n" });
        out.push_str(&shown.text);
    }
    out
}

fn saved(facts: &Facts<'_>, plan: Plan, shown: &Shown, at: &Whereabouts) -> String {
    let chars = grouped(facts.envelope.size().chars);
    let limit = grouped(facts.limit);
    let what = what(facts.shape);
    match plan.detail {
        Detail::Full => {
            let cut = if shown.cut { "It was cut: below is a preview. " } else { "" };
            let mut out = format!(
                "[Toolway] {what} was too large for this client: {chars} characters, the limit is {limit}. {cut}Nothing is lost, all of it was saved:\n"
            );
            out.push_str(
                &format_args!("- complete message: {} ({} bytes)\n", at.path, grouped(facts.bytes))
                    .to_string(),
            );
            if let Some(text) = &at.text_path {
                out.push_str(&format_args!("- text: {text} ({} lines)\n", grouped(facts.lines)).to_string());
            }
            if let Some((pretty, lines)) = &at.pretty {
                out.push_str(
                    &format_args!("- readable JSON: {pretty} ({} lines)\n", grouped(*lines)).to_string(),
                );
            }
            out.push_str(
                &format_args!("- to read on: {} show {} --lines 1-200\n", facts.saved_command, at.id)
                    .to_string(),
            );
            if facts.read_back != ReadBack::Off {
                out.push_str(
                    &format_args!(
                        "- or call the tool toolway_saved with {{\"id\":\"{}\",\"lines\":\"1-200\"}}\n",
                        at.id
                    )
                    .to_string(),
                );
            }
            out
        }
        Detail::Short => format!(
            "[Toolway] Cut: {chars} characters, {} lines, the limit is {limit}. Complete: {}. Read on: {} show {} --lines 1-200\n",
            grouped(facts.lines),
            at.path,
            facts.saved_command,
            at.id
        ),
        Detail::Least => {
            format!("[Toolway] Cut: {chars} characters, all saved as {} (id {})\n", at.path, at.id)
        }
        Detail::NoPathInText | Detail::NoPath => {
            format!("[Toolway] Cut: {chars} characters; saved, id {}\n", at.id)
        }
    }
}

fn not_saved(facts: &Facts<'_>, plan: Plan, shown: &Shown, reason: &str) -> String {
    let chars = grouped(facts.envelope.size().chars);
    let reason: String = super::short_reason(reason, plan.detail);
    if plan.detail == Detail::Full {
        let cut = if shown.cut { "It was cut, and the rest is lost" } else { "It is shown in part" };
        return format!(
            "[Toolway] {} was too large for this client: {chars} characters, the limit is {}. {cut}: not saved: {reason}\n",
            what(facts.shape),
            grouped(facts.limit)
        );
    }
    format!("[Toolway] Cut: {chars} characters; not saved: {reason}\n")
}

fn what(shape: Shape) -> &'static str {
    match shape {
        Shape::Resource => "This resource",
        Shape::Prompt => "This prompt",
        Shape::Error => "This error",
        Shape::LogMessage => "This log message",
        Shape::Tool | Shape::TaskTool | Shape::UnknownResult => "This result",
    }
}

/// The upstream's blocks that are not in the rewritten message, by kind.
fn left_out(facts: &Facts<'_>, plan: Plan) -> String {
    let missing =
        facts.items.iter().enumerate().filter(|(index, item)| *index >= plan.items || item.json.is_none());
    let missing: Vec<BlockKind> = missing.map(|(_, item)| item.kind).collect();
    let mut parts = Vec::new();
    for (kind, one, many) in [
        (BlockKind::Media, "image or audio block", "image or audio blocks"),
        (BlockKind::Binary, "binary resource", "binary resources"),
        (BlockKind::Text, "text resource", "text resources"),
        (BlockKind::Link, "resource link", "resource links"),
        (BlockKind::Other, "other block", "other blocks"),
    ] {
        let count = missing.iter().filter(|other| **other == kind).count();
        if count > 0 {
            parts.push(format!("{} {}", grouped(count as u64), if count == 1 { one } else { many }));
        }
    }
    parts.join(", ")
}
