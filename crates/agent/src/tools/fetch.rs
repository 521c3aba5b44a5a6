//! Owns the tool `webFetch`: one page, as text that a model reads. It reaches nothing on this machine or in private
//! networks unless that was allowed.

mod html;
mod web;

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use url::Url;

pub(crate) use web::Web;
use web::{Answer, Page};

use super::arguments::fault;
use super::{Arguments, Capability, Tool, ToolContext, ToolImage, ToolOutput};
use crate::engine::BoxFuture;
use crate::policy::Action;

const ARGUMENTS: [&str; 2] = ["url", "raw"];
/// Characters of a page that are shown.
const CHARS: usize = 30_000;
/// Bytes of a picture.
const MOST_IMAGE: usize = 5 << 20;

/// `webFetch`.
#[derive(Debug)]
pub(super) struct WebFetch;

impl Tool for WebFetch {
    fn name(&self) -> &'static str {
        "webFetch"
    }

    fn capability(&self) -> Capability {
        Capability::WebFetch
    }

    fn description(&self) -> String {
        "Reads a page of the web (http or https) and gives its text; of HTML the readable part with links, with raw=true as \
         it came. A redirection to another host is not followed but said. What is long is cut, and the whole is in a file."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The address"},
                "raw": {"type": "boolean", "description": "Do not turn HTML into text"},
            },
            "required": ["url"],
        })
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn actions(&self, _context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        Ok(vec![Action::Fetch(address(args)?.into())])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

fn address(args: &Arguments) -> Result<Url, ToolOutput> {
    args.only(&ARGUMENTS)?;
    let text = args.required("url")?;
    let text = text.trim();
    let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("https://{text}")) };
    let mut url = url.map_err(|error| fault("url", format!("{text:?} is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault("url", format!("must be http or https, not {}", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("url", "must not hold a user and a password"));
    }
    url.set_fragment(None);
    Ok(url)
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    let url = address(args)?;
    let raw = args.flag("raw")?;
    let session = &context.session;
    let answer = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Err(ToolOutput::cancelled()),
        answer = session.web.get(&session.setup, url.clone()) => answer,
    };
    match answer {
        Err(reason) => Err(ToolOutput::error(format!("{url} could not be read: {reason}."))),
        Ok(Answer::Elsewhere(to)) => Ok(ToolOutput::text(format!(
            "{url} is at another host now: {to}. Nothing was read. Call webFetch with that address if it is wanted."
        ))
        .with_details(&json!({"url": url.as_str(), "redirect": to.as_str()}))),
        Ok(Answer::Page(page)) => show(context, &page, raw),
    }
}

fn show(context: &ToolContext, page: &Page, raw: bool) -> Result<ToolOutput, ToolOutput> {
    let details = json!({
        "url": page.url.as_str(),
        "status": page.status,
        "contentType": page.kind,
        "bytes": page.body.len(),
        "cut": page.cut,
    });
    let head = format!("{} ({}, {} bytes)", page.url, page.kind, page.body.len());
    if page.status >= 400 {
        let text = if page.is_html() { html::text(&page.text(), &page.url).text } else { page.text() };
        let text: String = text.chars().take(2000).collect();
        let said = format!("{} answered with status {}.\n{text}", page.url, page.status);
        return Err(ToolOutput::error(said).with_details(&details));
    }
    if page.is_image() {
        if page.cut || page.body.len() > MOST_IMAGE {
            return Err(ToolOutput::error(format!("{head} is a picture that is too large to be shown.")));
        }
        let image = ToolImage { mime_type: page.kind.clone(), data: STANDARD.encode(&page.body) };
        return Ok(ToolOutput {
            images: vec![image],
            ..ToolOutput::text(format!("[{head}]")).with_details(&details)
        });
    }
    if !page.is_text() {
        return Err(ToolOutput::error(format!(
            "{head} is no text and cannot be shown; download it with shell."
        )));
    }
    let mut said = head;
    let text = if page.is_html() && !raw {
        let html::Readable { title, text } = html::text(&page.text(), &page.url);
        if !title.is_empty() {
            let _infallible = write!(said, "\nTitle: {title}");
        }
        text
    } else {
        page.text()
    };
    if page.cut {
        said.push_str("\n[the page is longer than what is read of one; the rest is missing]");
    }
    Ok(ToolOutput::text(format!("{said}\n\n{}", bounded(context, &text))).with_details(&details))
}

/// The beginning, and where the whole is.
fn bounded(context: &ToolContext, text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(CHARS) else { return text.to_owned() };
    let saved = context.session.outputs.file().and_then(|(mut file, path)| {
        file.write_all(text.as_bytes())?;
        Ok(path)
    });
    let place = match saved {
        Ok(path) => format!("the whole is in {}: `read` or `grep` it", path.display()),
        Err(error) => format!("it could not be saved: {error}"),
    };
    let shown = text.get(..end).unwrap_or_default();
    format!("{shown}\n[the first {CHARS} of {} characters are shown; {place}]", text.chars().count())
}

#[cfg(test)]
mod tests;
