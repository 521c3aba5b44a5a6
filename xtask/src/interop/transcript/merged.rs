//! Several servers behind one gateway: their scenarios as one, and its transcript beside those of each server alone.
//!
//! What may differ is what the gateway's manual names: the server's name before the names of tools and prompts, what
//! the gateway itself says of names that nobody has, and all that [`super::differences`] allows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{large, masked, name_of, restored, short, unexpected, unlike};

/// Tools of the gateway's own.
const OWN: [&str; 1] = ["toolway_saved"];
/// Messages of a server that must reach the client as they would alone.
const CARRIED: [&str; 4] = [
    "sampling/createMessage",
    "elicitation/create",
    "notifications/resources/updated",
    "notifications/elicitation/complete",
];
const LOGGED: &str = "notifications/message";

/// One server, what is tried with it, and what came of that without the gateway.
#[derive(Debug)]
pub(in crate::interop) struct Part {
    /// Its name in the configuration.
    pub(in crate::interop) server: String,
    pub(in crate::interop) scenario: Value,
    pub(in crate::interop) direct: Value,
}

impl Part {
    fn steps(&self) -> &[Value] {
        self.scenario["steps"].as_array().map_or(&[], Vec::as_slice)
    }

    fn exposed(&self, name: &str) -> String {
        format!("{}__{name}", self.server)
    }

    /// Names in the server's own list, which is the first step of that kind.
    fn names(&self, what: &str) -> BTreeSet<String> {
        let step = self.steps().iter().position(|step| step["do"] == "list" && step["what"] == what);
        let list = step.map(|index| &self.direct["steps"][index]["result"][what]);
        let items = list.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
    }

    /// Tools that no step calls: every one of them must be tried.
    fn untried(&self) -> Vec<String> {
        let several = self.steps().iter().flat_map(|step| step["calls"].as_array().into_iter().flatten());
        let called: BTreeSet<&str> =
            self.steps().iter().chain(several).filter_map(|call| call["tool"].as_str()).collect();
        let untried = self.names("tools").into_iter().filter(|tool| !called.contains(tool.as_str()));
        untried.map(|tool| format!("no step calls {}", self.exposed(&tool))).collect()
    }

    /// A step with the names that the gateway shows.
    fn renamed(&self, step: &Value) -> Value {
        let mut step = step.clone();
        let rename = |place: Option<&mut Value>| {
            if let Some(Value::String(name)) = place {
                *name = self.exposed(name);
            }
        };
        rename(step.get_mut("tool"));
        if step["do"] == "prompt" {
            rename(step.get_mut("name"));
        }
        rename(step.pointer_mut("/ref/name"));
        for call in step.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten() {
            rename(call.get_mut("tool"));
        }
        step
    }

    /// Whether the step names a tool or prompt that the server does not have, or asks for an error otherwise: then the
    /// gateway refuses it in its own words.
    fn is_refused(&self, step: &Value) -> bool {
        let lacks = |what: &str, name: &Value| name.as_str().is_some_and(|n| !self.names(what).contains(n));
        step["expect"] == "error"
            || lacks("tools", &step["tool"])
            || (step["do"] == "prompt" && lacks("prompts", &step["name"]))
    }

    /// The gateway's list without what is not this server's, under the server's own names.
    fn own(&self, what: &str, plain: &Value, relayed: &Value) -> Value {
        let mut relayed = restored(relayed);
        let key = match what {
            "resources" => "uri",
            "resourceTemplates" => "uriTemplate",
            _ => "name",
        };
        let known: BTreeSet<String> = plain["result"][what]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item[key].as_str().map(str::to_owned))
            .collect();
        let prefix = self.exposed("");
        // Two servers may have the same address; the gateway's list has it once or twice.
        let mut seen = BTreeSet::new();
        if let Some(items) = relayed["result"][what].as_array_mut() {
            items.retain_mut(|item| {
                let Some(Value::String(name)) = item.get_mut(key) else { return false };
                if key == "name" {
                    let own = name.strip_prefix(&prefix).map(str::to_owned);
                    own.is_some_and(|own| {
                        *name = own;
                        true
                    })
                } else {
                    known.contains(name) && seen.insert(name.clone())
                }
            });
        }
        relayed["result"][what].take()
    }

    /// Errors of the client's own name the tool as it knows it.
    fn unprefixed(&self, step: &Value) -> Value {
        let mut step = step.clone();
        if let Some(Value::String(message)) = step.pointer_mut("/error/message") {
            *message = message.replace(&self.exposed(""), "");
        }
        step
    }

    fn compare(&self, index: usize, step: &Value, relayed: &Value) -> Vec<String> {
        let plain = &self.direct["steps"][index];
        let relayed = &self.unprefixed(relayed);
        let name = format!("{} {}", self.server, name_of(index, step));
        if let Some(problem) = unexpected(step, plain) {
            return vec![format!("{name}: without Toolway already: {problem}")];
        }
        if step["do"] == "list" {
            let what = step["what"].as_str().unwrap_or_default();
            let own = self.own(what, plain, relayed);
            let same = masked(&plain["result"][what]) == masked(&own);
            return if same { vec![] } else { apart(&name, &plain["result"][what], &own) };
        }
        if self.is_refused(step) {
            let both = failed(plain) && failed(relayed);
            return if both { vec![] } else { vec![unlike(&name, plain, relayed)] };
        }
        if step["compare"] == "success" {
            let both = !failed(plain) && !failed(relayed);
            return if both { vec![] } else { vec![unlike(&name, plain, relayed)] };
        }
        if step["large"] == Value::Bool(true) {
            return large(plain, relayed).into_iter().map(|problem| format!("{name}: {problem}")).collect();
        }
        if masked(plain) == masked(&restored(relayed)) { vec![] } else { vec![unlike(&name, plain, relayed)] }
    }
}

/// The items of two lists that differ.
fn apart(name: &str, plain: &Value, own: &Value) -> Vec<String> {
    let (Some(plain), Some(own)) = (plain.as_array(), own.as_array()) else {
        return vec![unlike(name, plain, own)];
    };
    if plain.len() != own.len() {
        return vec![format!(
            "{name}: {} items alone, {} of them behind the gateway",
            plain.len(),
            own.len()
        )];
    }
    let pairs = plain.iter().zip(own).filter(|(plain, own)| masked(plain) != masked(own));
    pairs.take(3).map(|(plain, own)| unlike(name, plain, own)).collect()
}

fn failed(step: &Value) -> bool {
    !step["error"].is_null() || step["result"]["isError"] == true
}

/// One line for each tool that no step calls.
pub(in crate::interop) fn untried(parts: &[Part]) -> Vec<String> {
    parts.iter().flat_map(Part::untried).collect()
}

/// One scenario for all: it begins when the tools of every server are there.
pub(in crate::interop) fn scenario(parts: &[Part]) -> Value {
    let expected: Vec<String> = parts
        .iter()
        .flat_map(|part| part.names("tools").into_iter().map(|tool| part.exposed(&tool)))
        .collect();
    let first = json!({ "do": "list", "what": "tools", "until": expected });
    let rest = parts.iter().flat_map(|part| part.steps().iter().map(|step| part.renamed(step)));
    json!({ "steps": std::iter::once(first).chain(rest).collect::<Vec<_>>() })
}

/// One line for each difference that the client could see.
pub(in crate::interop) fn differences(parts: &[Part], through: &Value) -> Vec<String> {
    let mut found = strangers(parts, &through["steps"][0]);
    let mut place = 1;
    for part in parts {
        for (index, step) in part.steps().iter().enumerate() {
            found.extend(part.compare(index, step, &through["steps"][place]));
            place += 1;
        }
    }
    found.extend(events(parts, through));
    found
}

/// Tools that are missing in the gateway's list, and tools that belong to nobody.
fn strangers(parts: &[Part], first: &Value) -> Vec<String> {
    let mut expected: BTreeSet<String> = OWN.map(str::to_owned).into();
    for part in parts {
        expected.extend(part.names("tools").into_iter().map(|tool| part.exposed(&tool)));
    }
    let Some(tools) = first["result"]["tools"].as_array() else {
        return vec![format!("no list of tools: {}", short(first))];
    };
    let found: BTreeSet<String> =
        tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    let mut problems = Vec::new();
    if found.len() != tools.len() {
        problems.push("two tools have one name".to_owned());
    }
    let missing = expected.difference(&found).filter(|name| !OWN.contains(&name.as_str()));
    problems.extend(missing.map(|name| format!("tool lost: {name}")));
    problems.extend(found.difference(&expected).map(|name| format!("tool added: {name}")));
    problems
}

/// What servers sent by themselves: questions arrive once each, as they were; log messages are not lost.
fn events(parts: &[Part], through: &Value) -> Vec<String> {
    let mut alone = BTreeMap::new();
    for part in parts {
        count(&part.direct, |method| CARRIED.contains(&method), &mut alone);
    }
    let mut carried = BTreeMap::new();
    count(through, |method| CARRIED.contains(&method), &mut carried);
    let mut problems = Vec::new();
    for event in alone.keys().chain(carried.keys()).collect::<BTreeSet<_>>() {
        let (before, after) = (alone.get(event).unwrap_or(&0), carried.get(event).unwrap_or(&0));
        if before != after {
            problems.push(format!("event {before} times alone, {after} times behind the gateway: {event}"));
        }
    }
    let (mut said, mut heard) = (BTreeMap::new(), BTreeMap::new());
    for part in parts.iter().filter(|part| part.steps().iter().any(|step| step["tool"] == "chatty")) {
        count(&part.direct, |method| method == LOGGED, &mut said);
    }
    count(through, |method| method == LOGGED, &mut heard);
    let lost = said.iter().filter(|(event, times)| heard.get(*event).unwrap_or(&0) < *times);
    problems.extend(lost.map(|(event, _)| format!("log message lost: {event}")));
    problems
}

fn count(transcript: &Value, wanted: impl Fn(&str) -> bool, counts: &mut BTreeMap<String, usize>) {
    let events = transcript["events"].as_array().into_iter().flatten();
    for event in events.filter(|event| event["method"].as_str().is_some_and(&wanted)) {
        let mut event = masked(event);
        // Names of loggers are prefixed as names of tools are; a question's token is the gateway's own.
        for place in ["logger", "_meta"] {
            event["params"].as_object_mut().and_then(|params| params.remove(place));
        }
        *counts.entry(event.to_string()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(server: &str, result: &str) -> Part {
        Part {
            server: server.to_owned(),
            scenario: json!({ "steps": [
                { "do": "list", "what": "tools" },
                { "do": "call", "tool": "t" },
                { "do": "call", "tool": "none", "expect": "either" },
            ] }),
            direct: json!({
                "steps": [
                    { "result": { "tools": [{ "name": "t", "outputSchema": { "type": "object" } }] } },
                    { "result": { "content": [result] } },
                    { "error": { "code": -32602, "message": "no such tool" } },
                ],
                "events": [{ "method": "elicitation/create", "params": { "message": result } }],
            }),
        }
    }

    fn through() -> Value {
        let tool =
            |name: &str| json!({ "name": name, "_meta": { "toolway/outputSchema": { "type": "object" } } });
        let list =
            json!({ "result": { "tools": [tool("a__t"), tool("b__t"), { "name": "toolway_saved" }] } });
        let refused = json!({ "result": { "isError": true, "content": [] } });
        let event = |text: &str| json!({ "method": "elicitation/create", "params": { "message": text } });
        json!({
            "steps": [
                list,
                list, { "result": { "content": ["one"] } }, refused,
                list, { "result": { "content": ["two"] } }, refused,
            ],
            "events": [event("two"), event("one"), { "method": "notifications/tools/list_changed" }],
        })
    }

    #[test]
    fn names_are_the_gateways_and_the_rest_is_the_servers() {
        let parts = [part("a", "one"), part("b", "two")];
        let combined = scenario(&parts);
        assert_eq!(combined["steps"][0]["until"], json!(["a__t", "b__t"]));
        assert_eq!(combined["steps"][5]["tool"], "b__t");
        assert_eq!(differences(&parts, &through()), Vec::<String>::new());
    }

    #[test]
    fn what_is_lost_added_or_changed_is_told() {
        let parts = [part("a", "one"), part("b", "two")];
        let told = |change: &dyn Fn(&mut Value)| {
            let mut through = through();
            change(&mut through);
            differences(&parts, &through).len()
        };
        assert_eq!(told(&|t| t["steps"][2]["result"]["content"][0] = json!("two")), 1);
        assert_eq!(
            told(&|t| t["steps"][3] = json!({ "result": { "content": [] } })),
            1,
            "answered by someone"
        );
        assert_eq!(told(&|t| t["steps"][1]["result"]["tools"][0]["x"] = json!(1)), 1);
        assert_eq!(told(&|t| t["steps"][0]["result"]["tools"][1]["name"] = json!("c__t")), 2, "lost, added");
        assert_eq!(told(&|t| t["events"][0] = json!(null)), 1);
        assert_eq!(told(&|t| t["events"][2] = t["events"][0].clone()), 1, "asked twice");
    }

    #[test]
    fn a_tool_that_nobody_calls_is_told() {
        let mut part = part("a", "one");
        part.scenario["steps"][1]["tool"] = json!("u");
        assert_eq!(part.untried(), ["no step calls a__t"]);
    }
}
