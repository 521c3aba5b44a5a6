//! Owns the names by which tools are allowed and denied, alone and in groups. It knows no tool.

use super::LocalOptions;
use crate::error::Fault;

/// Every name that may stand in `tools` and `disallowedTools`. `mcp` is the group of all tools of servers, custom ones
/// and the gateway's own.
pub const TOOL_NAMES: [&str; 14] = [
    "shell",
    "read",
    "write",
    "edit",
    "delete",
    "grep",
    "glob",
    "ls",
    "task",
    "updateTodos",
    "readTodos",
    "webFetch",
    "askQuestion",
    "mcp",
];

/// Whether the model has tools of servers at all.
pub fn offers_mcp(options: &LocalOptions) -> bool {
    offers(options, "mcp")
}

/// Whether the model has the tool or group of that name. Deny stands above allow.
pub fn offers(options: &LocalOptions, name: &str) -> bool {
    let denied = options.disallowed_tools.iter().any(|one| one == name);
    !denied && options.tools.as_ref().is_none_or(|tools| tools.iter().any(|one| one == name))
}

/// What is wrong with the lists.
pub(super) fn check(options: &LocalOptions, faults: &mut Vec<Fault>) {
    let allowed = ("tools", options.tools.as_deref().unwrap_or_default());
    for (field, names) in [allowed, ("disallowedTools", options.disallowed_tools.as_slice())] {
        for (at, name) in names.iter().enumerate().filter(|(_, name)| !TOOL_NAMES.contains(&name.as_str())) {
            faults.push(Fault {
                subject: Some(name.clone()),
                field: format!("{field}.{at}"),
                message: format!("there is no tool {name:?}; there is {}", TOOL_NAMES.join(", ")),
            });
        }
    }
}
