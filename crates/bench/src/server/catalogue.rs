//! Tools as servers with many of them have: a verb, a noun, a sentence and a schema. The same at every start.

use std::fmt::Write as _;

const VERBS: [&str; 10] =
    ["create", "list", "update", "delete", "search", "export", "archive", "approve", "share", "compare"];
const NOUNS: [&str; 25] = [
    "invoice",
    "ticket",
    "branch",
    "calendar_event",
    "customer",
    "deployment",
    "database_row",
    "email_thread",
    "feature_flag",
    "git_tag",
    "incident",
    "job_posting",
    "knowledge_article",
    "lead",
    "metric",
    "notebook",
    "order",
    "pull_request",
    "query_plan",
    "release_note",
    "spreadsheet",
    "test_run",
    "user_group",
    "video_call",
    "webhook",
];

/// The result of `tools/list` with `echo` and so many more; those of another `server` are others.
pub(super) fn tools(n: usize, server: &str) -> String {
    let mut out = String::from(
        r#"{"tools":[{"name":"echo","description":"Returns its argument.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}"#,
    );
    let shift = server.bytes().fold(0_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 250);
    for i in 0..n {
        // Steps that meet all 250 before they come round.
        let place = (shift * 53 + i * 7) % (VERBS.len() * NOUNS.len());
        let (verb, noun) = (VERBS[place / NOUNS.len()], NOUNS[place % NOUNS.len()]);
        let words = noun.replace('_', " ");
        write!(
            out,
            r#",{{"name":"{verb}_{noun}","title":"{verb} {words}","description":"Use this to {verb} one {words} of {server}, by its identifier or by a filter. Gives the {words} as it is afterwards, with the time of its last change and the person who made it.","inputSchema":{{"type":"object","properties":{{"{noun}_id":{{"type":"string","description":"Identifier of the {words}."}},"filter":{{"type":"string","description":"An expression that selects by field, as in status=open."}},"limit":{{"type":"integer","minimum":1,"maximum":100,"default":20}},"dry_run":{{"type":"boolean","description":"Say what would be done, and do nothing."}}}},"required":["{noun}_id"]}}}}"#
        )
        .ok();
    }
    out.push_str("]}");
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tools_are_valid_and_have_different_names() {
        let list: serde_json::Value = serde_json::from_str(&tools(250, "s7")).expect("valid");
        let names: BTreeSet<&str> = list["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names.len(), 251);
        assert_ne!(tools(5, "s1"), tools(5, "s2"));
    }

    #[test]
    fn twenty_servers_have_every_verb_with_every_noun() {
        let all: String = (0..20).map(|i| tools(49, &format!("s{i}"))).collect();
        let missing =
            VERBS.iter().flat_map(|verb| NOUNS.iter().map(move |noun| format!("\"{verb}_{noun}\"")));
        assert_eq!(
            missing.filter(|name| !all.contains(name.as_str())).collect::<Vec<_>>(),
            Vec::<String>::new()
        );
    }
}
