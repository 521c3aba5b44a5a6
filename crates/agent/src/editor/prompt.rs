//! Owns the reading of an editor's prompt: texts, resources and pictures. It opens no file.

use serde_json::Value;

use crate::acp::frame::{INVALID_PARAMS, RpcError};
use crate::options::{Prompt, PromptImage};

/// The blocks of `session/prompt` as what a user says. A resource is its text between marks that name it; one that is only
/// named stays a link, which the agent reads with its own tools.
pub(super) fn read(params: &Value) -> Result<Prompt, RpcError> {
    let mut prompt = Prompt::default();
    let mut parts = Vec::new();
    let blocks = params.get("prompt").and_then(Value::as_array);
    let blocks = blocks.ok_or_else(|| refused("prompt is no list of blocks"))?;
    for (at, block) in blocks.iter().enumerate() {
        let wrong = |what: &str| refused(&format!("prompt[{at}]: {what}"));
        let part = |name: &str| block.get(name).and_then(Value::as_str);
        match part("type") {
            Some("text") => parts.push(part("text").ok_or_else(|| wrong("text is missing"))?.to_owned()),
            Some("image") => {
                let image = part("mimeType").zip(part("data"));
                let (mime_type, data) = image.ok_or_else(|| wrong("mimeType or data is missing"))?;
                prompt.images.push(PromptImage { mime_type: mime_type.to_owned(), data: data.to_owned() });
            }
            Some("resource_link") => {
                let uri = part("uri").ok_or_else(|| wrong("uri is missing"))?;
                parts.push(format!("[{}]({})", part("name").unwrap_or(uri), shown(uri)));
            }
            Some("resource") => {
                let inner = |name: &str| block.get("resource")?.get(name)?.as_str();
                let uri = inner("uri").unwrap_or_default();
                match (inner("text"), inner("blob"), inner("mimeType")) {
                    (Some(text), ..) => {
                        parts.push(format!("<resource uri={:?}>\n{text}\n</resource>", shown(uri)));
                    }
                    (None, Some(data), Some(mime_type)) if mime_type.starts_with("image/") => {
                        prompt
                            .images
                            .push(PromptImage { mime_type: mime_type.to_owned(), data: data.to_owned() });
                    }
                    _ => return Err(wrong("a resource is taken as text or as a picture")),
                }
            }
            Some(other) => return Err(wrong(&format!("a block of type {other:?} is not taken"))),
            None => return Err(wrong("type is missing")),
        }
    }
    prompt.text = parts.join("\n");
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(refused("the prompt is empty"));
    }
    Ok(prompt)
}

/// A file is named by its path, as tools take it.
fn shown(uri: &str) -> String {
    let path = url::Url::parse(uri).ok().filter(|url| url.scheme() == "file").and_then(|url| {
        let lines = url.fragment().map(|lines| format!("#{lines}")).unwrap_or_default();
        Some(format!("{}{lines}", url.to_file_path().ok()?.display()))
    });
    path.unwrap_or_else(|| uri.to_owned())
}

fn refused(what: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, what)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_become_one_text_and_pictures() {
        let params = json!({"prompt": [
            {"type": "text", "text": "Look:"},
            {"type": "resource", "resource": {"uri": "zed:///a", "text": "inside"}},
            {"type": "resource_link", "name": "b", "uri": "zed:///b%20c"},
            {"type": "image", "mimeType": "image/png", "data": "AA=="},
            {"type": "resource", "resource": {"uri": "zed:///p", "mimeType": "image/gif", "blob": "BB=="}},
        ]});
        let prompt = read(&params).unwrap();
        assert_eq!(prompt.text, "Look:\n<resource uri=\"zed:///a\">\ninside\n</resource>\n[b](zed:///b%20c)");
        assert_eq!(prompt.images.len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_named_by_their_paths() {
        assert_eq!(shown("file:///w/a%20b.rs#L3:9"), "/w/a b.rs#L3:9");
        assert_eq!(shown("https://x/y"), "https://x/y");
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        let table = [
            (json!({}), "prompt is no list"),
            (json!({"prompt": []}), "the prompt is empty"),
            (json!({"prompt": [{"type": "text", "text": " "}]}), "the prompt is empty"),
            (json!({"prompt": [{"type": "text"}]}), "prompt[0]: text is missing"),
            (json!({"prompt": [{"type": "audio", "data": ""}]}), "\"audio\" is not taken"),
            (json!({"prompt": [3]}), "prompt[0]: type is missing"),
            (
                json!({"prompt": [{"type": "resource", "resource": {"blob": "AA=="}}]}),
                "as text or as a picture",
            ),
        ];
        for (params, told) in table {
            let error = read(&params).unwrap_err();
            assert!(error.message.contains(told) && error.code == INVALID_PARAMS, "{params}: {error:?}");
        }
    }
}
