//! Answers spelled in ways that a parse and a print change.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Check, Going, WAIT, by_field, short};
use crate::json as raw;
use crate::server::probe_result;

const KINDS: [&str; 11] = [
    "numbers",
    "strings",
    "shape",
    "unknown_fields",
    "unknown_content",
    "resource_link",
    "is_error",
    "duplicate_key",
    "lone_surrogate",
    "toplevel",
    "error",
];

/// The message that the upstream sends.
fn sent(kind: &str, id: &str) -> String {
    match kind {
        "error" => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32042,"message":"bench error","data":{{"z":1.0,"a":null}}}}}}"#
        ),
        "toplevel" => format!(
            r#"{{"jsonrpc":"2.0","x-top":{{"z":1.0}},"id":{id},"result":{{"content":[{{"type":"text","text":"t"}}]}}}}"#
        ),
        kind => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, probe_result(kind)),
    }
}

fn compare(kind: &str, want: &[u8], got: &[u8]) -> Value {
    if want == got {
        return json!("identical");
    }
    let (its_error, its_result) = (raw::get(got, "error"), raw::get(got, "result").unwrap_or(b"{}"));
    match (kind, its_error) {
        ("toplevel", _) => by_field(want, got),
        ("error", Some(error)) => by_field(raw::get(want, "error").unwrap_or(b"{}"), error),
        ("error", None) => json!(format!("became a result: {}", short(got))),
        (_, Some(error)) => json!(format!("error {}", short(error))),
        (kind, None) => {
            let want = probe_result(kind).as_bytes();
            let mut fields = by_field(want, its_result);
            let inner = |of| raw::get(of, "structuredContent");
            if let (Some(a), Some(b), Some(fields)) = (inner(want), inner(its_result), fields.as_object_mut())
            {
                fields.insert("structuredContent".into(), by_field(a, b));
            }
            fields
        }
    }
}

impl Check<'_> {
    pub(super) fn answers(&mut self) -> Going {
        for kind in KINDS {
            let id = self.run.id();
            let message = self.run.tool_message(&id, "probe", &format!(r#"{{"kind":"{kind}"}}"#));
            let answer = self.run.call_raw(message.as_bytes(), id.as_bytes(), Instant::now() + WAIT);
            let word = match &answer {
                Err(miss) => json!(miss.to_string()),
                Ok(got) => compare(kind, sent(kind, &id).as_bytes(), got),
            };
            self.put(&format!("answer:{kind}"), word);
            self.renew(answer.is_err())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parse_and_a_print_are_found_out() {
        let want = sent("numbers", "1");
        assert_eq!(compare("numbers", want.as_bytes(), want.as_bytes()), json!("identical"));
        let printed = want.replace(":12345678901234567890,", ":12345678901234567000,").replace("1.0,", "1,");
        let found = compare("numbers", want.as_bytes(), printed.as_bytes());
        let content = &found["structuredContent"];
        assert_eq!((&content["one"], &content["huge"]), (&json!("respelled"), &json!("identical")));
        assert!(content["big"].as_str().is_some_and(|w| w.starts_with("CHANGED")));
    }
}
