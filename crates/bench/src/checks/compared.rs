//! Two messages side by side, field by field, in words.

use serde_json::{Map, Value, json};

use crate::json as raw;

pub(super) fn short(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.chars().count() > 160 {
        format!("{}…", text.chars().take(160).collect::<String>())
    } else {
        text.into_owned()
    }
}

/// `identical`, or one word for each field of `want`, and what `got` has besides (under `+`).
pub(super) fn by_field(want: &[u8], got: &[u8]) -> Value {
    if want == got {
        return json!("identical");
    }
    let mut out = Map::new();
    for (key, value) in raw::fields(want) {
        let word = match raw::fields(got).find(|(k, _)| *k == key) {
            None => "DROPPED".to_owned(),
            Some((_, its)) => match raw::compare(value, its) {
                "CHANGED" => format!("CHANGED {} -> {}", short(value), short(its)),
                word => word.to_owned(),
            },
        };
        out.insert(String::from_utf8_lossy(key).into_owned(), json!(word));
    }
    let wanted: Vec<&[u8]> = raw::fields(want).map(|x| x.0).collect();
    for (key, value) in raw::fields(got).filter(|(k, _)| !wanted.contains(k)) {
        out.insert(format!("+{}", String::from_utf8_lossy(key)), json!(short(value)));
    }
    let kept: Vec<&[u8]> = raw::fields(got).map(|x| x.0).filter(|k| wanted.contains(k)).collect();
    if wanted.iter().filter(|k| kept.contains(k)).ne(kept.iter()) {
        out.insert("(key order)".into(), json!("reordered"));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_dropped_changed_added_or_reordered() {
        let want = br#"{"a":1.0,"b":2,"c":"x","d":[1]}"#;
        assert_eq!(by_field(want, want), json!("identical"));
        let got = br#"{"b":3,"a":1,"d":[1],"e":true}"#;
        assert_eq!(
            by_field(want, got),
            json!({"a": "respelled", "b": "CHANGED 2 -> 3", "c": "DROPPED", "d": "identical", "+e": "true", "(key order)": "reordered"})
        );
    }
}
