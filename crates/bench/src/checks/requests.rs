//! The client's requests as the upstream sees them, and ids of every kind.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Check, Going, WAIT, by_field, short};
use crate::front::Miss;
use crate::json as raw;
use crate::table::Row;

const IDS: [&str; 8] =
    ["\"str-1\"", "0", "-7", "9007199254740993", "1.5", "\"77\"", "\"\\u00e9\"", "12345678901234567890"];

impl Check<'_> {
    pub(super) fn request(&mut self) -> Going {
        let (id, prefix) = (self.run.id(), self.spec.prefix.clone());
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{{"com.example/t":1.0,"z":null}},"name":"{prefix}reflect","arguments":{{"z":1,"a":12345678901234567890,"one":1.0,"exp":1e2,"esc":"\u00e9\/","null":null}},"futureParam":{{"k":[1.0]}}}}}}"#
        );
        let answer = self.run.call_raw(line.as_bytes(), id.as_bytes(), Instant::now() + WAIT);
        let word: Value = match &answer {
            Err(miss) => json!(miss.to_string()),
            Ok(message) => match raw::first_text(message) {
                Some(seen) if seen == line => json!("identical"),
                Some(seen) => {
                    let part = |keys: &[&str]| {
                        let of = |m| raw::path(m, keys).unwrap_or(b"{}");
                        by_field(of(line.as_bytes()), of(seen.as_bytes()))
                    };
                    json!({"top": part(&[]), "params": part(&["params"]), "arguments": part(&["params", "arguments"])})
                }
                None => json!(short(message)),
            },
        };
        self.put("request", word);
        self.renew(answer.is_err())
    }

    pub(super) fn request_with_unknown_field(&mut self) -> Going {
        let (id, prefix) = (self.run.id(), self.spec.prefix.clone());
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","x-top":1.0,"params":{{"name":"{prefix}reflect","arguments":{{"k":1}}}}}}"#
        );
        let deadline = Instant::now() + Duration::from_secs(4);
        let answer = self.run.call_raw(line.as_bytes(), id.as_bytes(), deadline);
        let word = match &answer {
            Err(miss) => format!("no answer ({miss})"),
            Ok(message) => match raw::first_text(message) {
                Some(seen) if seen == line => "identical".to_owned(),
                Some(seen) if raw::get(seen.as_bytes(), "x-top").is_some() => "kept".to_owned(),
                Some(_) => "DROPPED".to_owned(),
                None => short(message),
            },
        };
        self.put("request_unknown_top_field", word);
        self.renew(answer.is_err())
    }

    /// What came of a request with this id.
    fn id_word(&self, id: &str, answer: Result<Vec<u8>, Miss>) -> String {
        let miss = match answer {
            Ok(m) if raw::get(&m, "error").is_some() => return format!("error {}", short(&m)),
            Ok(_) => return "identical".into(),
            Err(miss) => miss,
        };
        let Some(other) = self.run.extra.iter().find(|m| raw::get(m, "method").is_none()) else {
            return format!("no answer ({miss})");
        };
        match raw::get(other, "id") {
            Some(its) if raw::compare(id.as_bytes(), its) == "respelled" => "respelled".into(),
            Some(its) => {
                let what = if raw::get(other, "error").is_some() { "error" } else { "result" };
                format!("answered with id {} ({what})", short(its))
            }
            None => short(other),
        }
    }

    pub(super) fn ids(&mut self) -> Going {
        let mut words = Row::new();
        let mut going = Ok(());
        for id in IDS {
            self.run.extra.clear();
            let message = self.run.tool_message(id, "echo", r#"{"text":"x"}"#);
            let deadline = Instant::now() + Duration::from_secs(2);
            let answer = self.run.call_raw(message.as_bytes(), id.as_bytes(), deadline);
            let word = self.id_word(id, answer);
            let failed = word.starts_with("no answer");
            words.insert(id.to_owned(), json!(word));
            if let Some(how) = self.run.exited() {
                words.insert(format!("front after {id}"), json!(how));
            }
            going = self.renew(failed);
            if going.is_err() {
                break;
            }
        }
        self.put("ids", Value::Object(words));
        going
    }
}
