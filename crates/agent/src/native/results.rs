//! Owns how results of tools are read: what the model gets of them, and what events show. Pure.

use serde::Deserialize;
use serde_json::value::RawValue;
use toolway_bridge::RawJson;

use super::model::UserPart;
use crate::generation::McpResult;
use crate::tools::ToolOutput;

/// A `CallToolResult`, as far as a model is concerned.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResult<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    Image,
    Audio,
    ResourceLink,
    Resource,
    #[serde(other)]
    Other,
}

/// A block of content. Members of other kinds of blocks are not looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBlock {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    resource: Option<RawResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResource {
    #[serde(default)]
    uri: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
}

/// What the model gets of a server's result: every kind of block, in order.
pub(super) fn of_server(result: &McpResult) -> Vec<UserPart> {
    let raw: RawResult<'_> = match serde_json::from_slice(result.content.bytes()) {
        Ok(raw) => raw,
        Err(_) => return vec![UserPart::Text(result.content.text().to_owned())],
    };
    let blocks = raw.content.unwrap_or_default();
    let mut parts: Vec<UserPart> = blocks.iter().map(|block| part(block)).collect();
    let says = |part: &UserPart| match part {
        UserPart::Text(text) => !text.trim().is_empty(),
        UserPart::Image { .. } => true,
    };
    if let Some(structured) = raw.structured_content
        && !parts.iter().any(says)
        && structured.get() != "null"
    {
        parts.push(UserPart::Text(structured.get().to_owned()));
    }
    if !parts.iter().any(says) {
        let text =
            if result.is_error { "The tool failed and said nothing." } else { "The tool answered nothing." };
        return vec![UserPart::Text(text.to_owned())];
    }
    parts
}

fn part(raw: &RawValue) -> UserPart {
    let as_it_is = || UserPart::Text(raw.get().to_owned());
    let Ok(block) = serde_json::from_str::<RawBlock>(raw.get()) else { return as_it_is() };
    match (block.kind, block) {
        (Kind::Text, RawBlock { text: Some(text), .. }) => UserPart::Text(text),
        (Kind::Image, RawBlock { data: Some(data), mime_type, .. }) => {
            UserPart::Image { mime_type: mime_type.unwrap_or_else(|| "image/png".to_owned()), data }
        }
        (Kind::Audio, RawBlock { data, mime_type, .. }) => UserPart::Text(format!(
            "[A sound of type {} and about {} bytes: it cannot be given to you.]",
            mime_type.as_deref().unwrap_or("unknown"),
            decoded(data.as_deref())
        )),
        (Kind::ResourceLink, RawBlock { uri: Some(uri), name, description, .. }) => {
            let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
            let description = description.map(|text| format!(": {text}")).unwrap_or_default();
            UserPart::Text(format!("[Resource {uri}{name}{description}]"))
        }
        (Kind::Resource, RawBlock { resource: Some(resource), .. }) => of_resource(resource),
        _ => as_it_is(),
    }
}

fn of_resource(resource: RawResource) -> UserPart {
    let RawResource { uri, mime_type, text, blob } = resource;
    match (text, blob, mime_type) {
        (Some(text), ..) => UserPart::Text(format!("[Resource {uri}]\n{text}")),
        (None, Some(data), Some(mime_type)) if mime_type.starts_with("image/") => {
            UserPart::Image { mime_type, data }
        }
        (None, blob, mime_type) => UserPart::Text(format!(
            "[Resource {uri} of type {} and about {} bytes: it cannot be given to you.]",
            mime_type.as_deref().unwrap_or("unknown"),
            decoded(blob.as_deref())
        )),
    }
}

fn decoded(base64: Option<&str>) -> usize {
    base64.map_or(0, |data| data.len() / 4 * 3)
}

/// What events show of a server's result: `{content, isError}`, with the server's bytes.
pub(super) fn shown_of_server(result: &McpResult) -> RawJson {
    let raw: Result<RawResult<'_>, _> = serde_json::from_slice(result.content.bytes());
    let Ok(raw) = raw else { return error(result.content.text()) };
    let blocks: Vec<&str> = raw.content.unwrap_or_default().into_iter().map(RawValue::get).collect();
    let structured =
        raw.structured_content.map(|it| format!(r#","structuredContent":{it}"#)).unwrap_or_default();
    let json = format!(r#"{{"content":[{}],"isError":{}{structured}}}"#, blocks.join(","), result.is_error);
    RawJson::new(json.into_bytes()).unwrap_or_else(|_| RawJson::empty_object())
}

/// Whether a server's result stands for a larger one, which is saved: who saved it says so.
pub(super) fn is_saved(result: &McpResult) -> bool {
    #[derive(Deserialize)]
    struct Noted<'a> {
        #[serde(borrow, rename = "_meta", default)]
        meta: Option<Meta<'a>>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "toolway/saved", default)]
        saved: Option<&'a RawValue>,
    }
    let noted: Result<Noted<'_>, _> = serde_json::from_slice(result.content.bytes());
    noted.is_ok_and(|noted| noted.meta.is_some_and(|meta| meta.saved.is_some()))
}

/// What the model gets of a built-in tool's answer, with the text that stands for it where that was too long.
pub(super) fn of_built_in(output: &ToolOutput, text: String) -> Vec<UserPart> {
    let mut parts = vec![UserPart::Text(text)];
    parts.extend(
        output
            .images
            .iter()
            .map(|image| UserPart::Image { mime_type: image.mime_type.clone(), data: image.data.clone() }),
    );
    parts
}

/// What events show of it: `{text, isError, details?}`.
pub(super) fn shown_of_built_in(output: &ToolOutput, text: &str) -> RawJson {
    let text = serde_json::Value::String(text.to_owned());
    let details =
        output.details.as_ref().map(|it| format!(r#","details":{}"#, it.text())).unwrap_or_default();
    let json = format!(r#"{{"text":{text},"isError":{}{details}}}"#, output.is_error);
    RawJson::new(json.into_bytes()).unwrap_or_else(|_| RawJson::empty_object())
}

/// What events show of a call that was not made.
pub(super) fn error(text: &str) -> RawJson {
    RawJson::of(&serde_json::json!({ "error": text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(json: &str, is_error: bool) -> McpResult {
        McpResult { content: RawJson::new(json.as_bytes().to_vec()).unwrap(), is_error }
    }

    fn lines(parts: &[UserPart]) -> String {
        let lines = parts.iter().map(|part| match part {
            UserPart::Text(text) => text.clone(),
            UserPart::Image { mime_type, data } => format!("<{mime_type} {data}>"),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_kind_of_block_reaches_the_model() {
        let parts = of_server(&result(
            r#"{"content":[
                {"type":"text","text":"a"},
                {"type":"image","data":"QUJD","mimeType":"image/gif"},
                {"type":"audio","data":"QUJDRA==","mimeType":"audio/wav"},
                {"type":"resource_link","uri":"file:///x","name":"x","description":"about x"},
                {"type":"resource","resource":{"uri":"file:///y","text":"why"}},
                {"type":"resource","resource":{"uri":"file:///z","mimeType":"image/png","blob":"QUJD"}},
                {"type":"resource","resource":{"uri":"file:///b","blob":"QUJD"}},
                {"type":"hologram","depth":3},
                {"type":"text","text":7},
                9
            ]}"#,
            false,
        ));
        expect_test::expect![[r#"
            a
            <image/gif QUJD>
            [A sound of type audio/wav and about 6 bytes: it cannot be given to you.]
            [Resource file:///x (x): about x]
            [Resource file:///y]
            why
            <image/png QUJD>
            [Resource file:///b of type unknown and about 3 bytes: it cannot be given to you.]
            {"type":"hologram","depth":3}
            {"type":"text","text":7}
            9"#]]
        .assert_eq(&lines(&parts));
    }

    #[test]
    fn structured_content_is_read_where_there_is_no_other_and_its_numbers_stay() {
        let with = |content: &str| {
            lines(&of_server(&result(
                &format!(r#"{{"content":[{content}],"structuredContent":{{"n":12345678901234567890.10}}}}"#),
                false,
            )))
        };
        assert_eq!(with(""), r#"{"n":12345678901234567890.10}"#);
        assert_eq!(with(r#"{"type":"text","text":"said"}"#), "said");
    }

    #[test]
    fn an_empty_result_says_so() {
        assert_eq!(lines(&of_server(&result("{}", false))), "The tool answered nothing.");
        let nothing = r#"{"content":[{"type":"text","text":" "}]}"#;
        assert_eq!(lines(&of_server(&result(nothing, true))), "The tool failed and said nothing.");
    }

    #[test]
    fn events_show_a_servers_bytes() {
        let shown = shown_of_server(&result(
            r#"{"content":[{"type":"text","text":"\u0041","n":1e400}],"_meta":{}}"#,
            true,
        ));
        assert_eq!(shown.text(), r#"{"content":[{"type":"text","text":"\u0041","n":1e400}],"isError":true}"#);
    }
}
