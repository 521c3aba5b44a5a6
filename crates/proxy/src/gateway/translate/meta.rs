//! Owns what else `params._meta` leads to: capabilities, and levels of log messages. What the members are, and how a
//! request is checked, stands in `toolway_wire::request`.

use toolway_wire::find::{Step, find};
use toolway_wire::push_string;

/// `capabilities` (raw JSON) has a member of that name that is not `null`.
pub fn declares(capabilities: &[u8], name: &str) -> bool {
    find(capabilities, &[Step::Key(name)])
        .and_then(|at| capabilities.get(at))
        .is_some_and(|raw| raw != b"null")
}

/// How urgent a level of log messages is, from 0 (`debug`) to 7 (`emergency`), as RFC 5424 orders them.
pub fn log_rank(level: &str) -> Option<u8> {
    const LEVELS: [&str; 8] =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    LEVELS.iter().position(|name| *name == level).and_then(|rank| u8::try_from(rank).ok())
}

/// `logging/setLevel` for a legacy server. `id` is raw JSON.
pub fn set_level(id: &[u8], level: &str) -> Vec<u8> {
    let mut out =
        [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"method\":\"logging/setLevel\",\"params\":{\"level\":"]
            .concat();
    push_string(level, &mut out);
    out.extend_from_slice(b"}}");
    out
}
