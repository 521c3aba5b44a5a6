//! Owns the members of an entry that are the same for both kinds of server. Reads no file.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::problem::Problem;
use crate::tree::Node;

use super::read::given;
use super::reader::Reader;
use super::{Options, Placement, Protocol, Share, Text, ToolOptions};

/// The most of `startupTimeoutSec`.
const LONGEST_START: Duration = Duration::from_mins(5);

pub(super) const KNOWN: [&str; 14] = [
    "enabled",
    "tools",
    "startupTimeoutMs",
    "listTimeoutMs",
    "callIdleTimeoutMs",
    "callMaxMs",
    "required",
    "lazy",
    "share",
    "maxResponseChars",
    "roots",
    "protocol",
    "startupTimeoutSec",
    "disabled",
];
/// Other clients' spellings, understood in files.
pub(super) const ALIASES: [&str; 6] =
    ["enabledTools", "enabled_tools", "includeTools", "disabledTools", "disabled_tools", "excludeTools"];

/// `enabled`, or the opposite of `disabled`.
pub(super) fn enabled(reader: &mut Reader<'_>, node: &Node) -> Option<bool> {
    let on = given(node, "enabled").and_then(|value| reader.boolean(value, "enabled"));
    let off = given(node, "disabled").and_then(|value| reader.boolean(value, "disabled"));
    if let (Some(on), Some(off), Some(place)) = (on, off, node.get("disabled"))
        && on == off
    {
        reader.error(place.at, "disabled", "contradicts enabled");
    }
    on.or(off.map(|off| !off))
}

pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Options {
    let millis = |reader: &mut Reader<'_>, name: &str| {
        given(node, name).and_then(|value| reader.time(value, name, false))
    };
    let truth =
        |reader: &mut Reader<'_>, name: &str| given(node, name).and_then(|value| reader.boolean(value, name));
    let share = [("auto", Share::Auto), ("always", Share::Always), ("never", Share::Never)];
    let protocol = [("auto", Protocol::Auto), ("legacy", Protocol::Legacy), ("modern", Protocol::Modern)];
    let placement = [("server", Placement::Server), ("client", Placement::Client)];
    Options {
        enabled: enabled(reader, node),
        tools: tools(reader, node),
        startup_timeout: startup_timeout(reader, node),
        list_timeout: millis(reader, "listTimeoutMs"),
        call_idle_timeout: millis(reader, "callIdleTimeoutMs"),
        call_max: millis(reader, "callMaxMs"),
        required: truth(reader, "required"),
        lazy: truth(reader, "lazy"),
        share: given(node, "share").and_then(|value| match value.as_bool() {
            Some(true) => Some(Share::Always),
            Some(false) => Some(Share::Never),
            None => reader.choice(value, "share", &share),
        }),
        max_response_chars: given(node, "maxResponseChars")
            .and_then(|value| reader.count(value, "maxResponseChars")),
        roots: given(node, "roots").map(|value| reader.texts(value, "roots")),
        protocol: given(node, "protocol").and_then(|value| reader.choice(value, "protocol", &protocol)),
        placement: given(node, "placement").and_then(|value| reader.choice(value, "placement", &placement)),
    }
}

fn startup_timeout(reader: &mut Reader<'_>, node: &Node) -> Option<Duration> {
    let millis =
        given(node, "startupTimeoutMs").and_then(|value| reader.time(value, "startupTimeoutMs", false));
    let Some(value) = given(node, "startupTimeoutSec") else { return millis };
    let seconds = reader.time(value, "startupTimeoutSec", true);
    if seconds.is_some_and(|seconds| seconds > LONGEST_START) {
        reader.error(value.at, "startupTimeoutSec", "must not be more than 300");
    }
    if millis.is_some() {
        reader.error(value.at, "startupTimeoutSec", "stands beside startupTimeoutMs: which one is meant?");
    }
    millis.or(seconds)
}

fn tools(reader: &mut Reader<'_>, node: &Node) -> ToolOptions {
    let mut tools = ToolOptions::default();
    if let Some(value) = given(node, "tools") {
        if value.items().is_some() && !reader.is_inline() {
            tools.allow = Some(reader.strings(value, "tools"));
        } else {
            let members = reader.members(value, "tools");
            reader.unknown(members, "tools", &["allow", "deny", "rename", "describe"]);
            tools.allow = given(value, "allow").map(|list| reader.strings(list, "tools.allow"));
            tools.deny =
                given(value, "deny").map(|list| reader.strings(list, "tools.deny")).unwrap_or_default();
            tools.rename = words(reader, value, "rename");
            tools.describe = words(reader, value, "describe");
        }
    }
    if !reader.is_inline() {
        let [allow @ .., _, _, _] = &ALIASES;
        for name in allow {
            if let Some(value) = given(node, name) {
                let list = reader.strings(value, name);
                tools.allow.get_or_insert_default().extend(list);
            }
        }
        for name in ALIASES.iter().skip(3) {
            if let Some(value) = given(node, name) {
                tools.deny.extend(reader.strings(value, name));
            }
        }
    }
    tools
}

fn words(reader: &mut Reader<'_>, tools: &Node, name: &str) -> BTreeMap<String, String> {
    let Some(map) = given(tools, name) else { return BTreeMap::new() };
    let field = format!("tools.{name}");
    let read: Vec<_> = reader.map(map, &field);
    let mut words = BTreeMap::new();
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for (key, value) in &read {
        let place = value.at.unwrap_or(map.at);
        if name == "rename" && value.raw().is_empty() {
            reader.error(place, &format!("{field}.{}", key.name), "the new name is empty");
        }
        let other = taken.insert(value.raw().to_owned(), &key.name);
        if let Some(other) = other.filter(|_| name == "rename") {
            let problem = Problem::error(format!("has the new name of {other}"));
            reader.note(problem, place, &format!("{field}.{}", key.name));
        }
        words.insert(key.name.clone(), Text::raw(value).to_owned());
    }
    words
}
