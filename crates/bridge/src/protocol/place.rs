//! Finds where in a JSON text a reader stopped, as a path: `tools[3].parameters`. Pure; the text is well-formed up to
//! that place.

/// The path of the value that ends, or is being read, at `offset`; empty for the root.
pub(super) fn place(text: &[u8], offset: usize) -> String {
    let read = text.get(..offset).unwrap_or(text);
    let (mut steps, mut at): (Vec<Step>, usize) = (Vec::new(), 0);
    while let Some(byte) = read.get(at) {
        match byte {
            b'{' => steps.push(Step::Member { name: None, value: false }),
            b'[' => steps.push(Step::Element(0)),
            b'}' | b']' => drop(steps.pop()),
            b',' => match steps.last_mut() {
                Some(Step::Element(index)) => *index += 1,
                Some(member) => *member = Step::Member { name: None, value: false },
                None => {}
            },
            b':' => {
                if let Some(Step::Member { value, .. }) = steps.last_mut() {
                    *value = true;
                }
            }
            b'"' => {
                let end = end_of_string(read, at);
                if let Some(Step::Member { name, value: false }) = steps.last_mut() {
                    let spelled = read.get(at..end).unwrap_or_default();
                    *name = serde_json::from_slice(spelled).ok();
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    spell(&steps)
}

enum Step {
    /// In an object: the member's name, and whether its value has begun.
    Member { name: Option<String>, value: bool },
    /// In a list.
    Element(usize),
}

/// The index after the closing quote.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn spell(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Member { name: Some(name), value: true } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            // The name itself is what is wrong, or the object: its place is the object's.
            Step::Member { .. } => break,
            Step::Element(index) => path.extend(["[", &index.to_string(), "]"]),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Sample {
        #[serde(default)]
        list: Vec<Item>,
        #[serde(default)]
        flag: bool,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Item {
        name: String,
        #[serde(default)]
        parts: Vec<u8>,
    }

    fn found(text: &str) -> String {
        let error = serde_json::from_str::<Sample>(text).unwrap_err();
        place(text.as_bytes(), error.column())
    }

    #[test]
    fn the_place_of_an_error_is_named() {
        for (text, path) in [
            (r#"{"flag":"yes","list":[]}"#, "flag"),
            (r#"{"list":[{"name":"a"},{"name":5}]}"#, "list[1].name"),
            (r#"{"list":[{"name":"a\"]}"},{"parts":[]}]}"#, "list[1]"),
            (r#"{"list":[{"name":"a","parts":[1,2,300]}]}"#, "list[0].parts[2]"),
            (r#"{"list":[{"name":"a","part":[1]}]}"#, "list[0]"),
            (r#"{"list":{}}"#, "list"),
            (r#"{"flags":1}"#, ""),
            (r#"{"flag":null}"#, "flag"),
        ] {
            assert_eq!(found(text), path, "{text}");
        }
    }
}
