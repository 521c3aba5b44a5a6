//! Owns what people are told of a server's definitions that clients do get: names that were changed, repairs, schemas
//! that not every model takes, settings that fit nothing. Changes nothing.

use super::definition::Definition;
use crate::gateway::config::ToolFilter;
use crate::gateway::lists::ListKind;
use crate::gateway::naming::Naming;

/// Definitions that one remark names.
const NAMED: usize = 5;
/// At the root of an `inputSchema` some model APIs refuse these, and with them the whole request.
const REFUSED_AT_ROOT: [&str; 3] = ["anyOf", "oneOf", "allOf"];
/// Too common to be worth a word: tools without arguments.
const COMMON: &str = "inputSchema had no properties";

/// Remarks on one list.
pub(super) fn of_list(
    kind: ListKind,
    server: &str,
    list: &[Definition],
    naming: Naming,
    filter: &ToolFilter,
) -> Vec<String> {
    let noun = kind.noun();
    let mut remarks = Vec::new();
    if matches!(kind, ListKind::Tools | ListKind::Prompts) {
        let shown = |one: &Definition| {
            if kind == ListKind::Tools { filter.shown(&one.own).to_owned() } else { one.own.clone() }
        };
        let changed = list.iter().filter(|one| naming.is_changed(server, &shown(one)));
        let changed = changed.map(|one| format!("{:?} is {:?}", one.own, one.exposed));
        remarks.extend(joined(&format!("{noun} names that not every client takes"), changed));
    }
    let repaired = list.iter().filter_map(|one| {
        let repairs: Vec<&str> =
            one.repairs.iter().map(String::as_str).filter(|repair| *repair != COMMON).collect();
        (!repairs.is_empty()).then(|| format!("{:?}: {}", one.own, repairs.join(", ")))
    });
    remarks.extend(joined(&format!("{noun} definitions that were repaired"), repaired));
    if kind == ListKind::Tools {
        let odd = list.iter().filter_map(|one| at_root(one).map(|word| format!("{:?}: {word}", one.own)));
        remarks.extend(joined(
            "tools that some models refuse for what is at the root of their inputSchema",
            odd,
        ));
    }
    remarks
}

/// Names in the settings that the server does not have.
pub(super) fn of_filter(filter: &ToolFilter, own: &[&str]) -> Vec<String> {
    let unused = filter.unused(own).into_iter();
    unused.map(|name| format!("the settings name a tool {name:?}, which it does not have")).collect()
}

fn at_root(tool: &Definition) -> Option<&'static str> {
    let schema = tool.member("inputSchema")?;
    let members = super::members::Members::of(&schema)?;
    REFUSED_AT_ROOT.into_iter().find(|word| members.get(word).is_some())
}

/// One sentence for all of a kind; `None`: there are none.
fn joined(what: &str, each: impl Iterator<Item = String>) -> Option<String> {
    let mut all: Vec<String> = each.collect();
    if all.is_empty() {
        return None;
    }
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Some(format!("{what}: {}{more}", all.join("; ")))
}
