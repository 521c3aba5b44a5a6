//! Owns the tool `read`: a file as numbered lines, or as a picture.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::arguments::fault;
use super::paths::Place;
use super::text::{Content, content, is_crlf};
use super::{Arguments, Capability, Tool, ToolContext, ToolImage, ToolOutput, disk};
use crate::engine::BoxFuture;
use crate::policy::Action;

const ARGUMENTS: [&str; 4] = ["path", "offset", "limit", "fromChar"];
/// Lines that are shown where no number is named.
const LINES: u64 = 2000;
/// Characters of a line that are shown.
const LINE_CHARS: usize = 2000;
/// Characters that are shown in all.
const CHARS: usize = 36_000;
/// Bytes of a picture.
const MOST_IMAGE: usize = 5 << 20;

/// `read`.
#[derive(Debug)]
pub(super) struct Read;

impl Tool for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn capability(&self) -> Capability {
        Capability::Read
    }

    fn description(&self) -> String {
        "Shows a file with line numbers, from line `offset` on, at most 2000 lines; the number and the tab before each line \
         are not part of it. Pictures (PNG, JPEG, GIF, WebP) are shown as such. A line of more than 2000 characters is cut; \
         fromChar reads on within it. A file has to be read before it is edited or written over."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the working folder or absolute"},
                "offset": {"type": "integer", "minimum": 1, "description": "The first line, counted from 1"},
                "limit": {"type": "integer", "minimum": 1, "description": "How many lines"},
                "fromChar": {"type": "integer", "minimum": 1, "description": "The character of line `offset` to begin at, counted from 1; shows that line alone"},
            },
            "required": ["path"],
        })
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        args.only(&ARGUMENTS)?;
        Ok(vec![context.place(&args.required("path")?)?.read()])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Want {
    offset: u64,
    limit: u64,
    from_char: Option<u64>,
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    args.only(&ARGUMENTS)?;
    let place = context.granted(&args.required("path")?, false)?;
    let want = Want {
        offset: args.count("offset")?.unwrap_or(1).max(1),
        limit: args.count("limit")?.unwrap_or(LINES),
        from_char: args.count("fromChar")?,
    };
    if want.limit == 0 {
        return Err(fault("limit", "must be at least 1"));
    }
    let session = std::sync::Arc::clone(&context.session);
    let work = move || {
        let named = session.roots.short(&place.real);
        let bytes = disk::content(&place.real, &named).map_err(ToolOutput::error)?;
        session.files.remember(&place.real, &bytes);
        show(bytes, &named, &place, want)
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ToolOutput::error(format!("Reading broke off: {error}."))))
}

fn show(bytes: Vec<u8>, named: &str, place: &Place, want: Want) -> Result<ToolOutput, ToolOutput> {
    let size = bytes.len();
    if let Content::Image(mime_type) = content(bytes.get(..16.min(size)).unwrap_or_default().to_vec()) {
        return image(&bytes, mime_type, named);
    }
    let (text, mut notes) = match content(bytes) {
        Content::Text { text, mark: false } => (text, Vec::new()),
        Content::Text { text, mark: true } => (text, vec!["it begins with a byte order mark".to_owned()]),
        Content::Foreign { text, encoding } => {
            (text, vec![format!("its encoding is {encoding}: it cannot be edited")])
        }
        Content::Binary(what) | Content::Image(what) => {
            return Err(ToolOutput::error(format!("{named} is {what} ({size} bytes) and cannot be shown.")));
        }
    };
    if is_crlf(&text) {
        notes.push("its lines end with CRLF; edit keeps that".to_owned());
    }
    let details = |shown: u64, lines: u64| json!({"path": place.real.display().to_string(), "bytes": size, "lines": lines, "offset": want.offset, "shown": shown});
    let total = text.lines().count() as u64;
    if total == 0 {
        return Ok(ToolOutput::text(format!("[{named} is empty]")).with_details(&details(0, 0)));
    }
    if want.offset > total {
        return Err(fault("offset", format!("{named} has {total} lines only")));
    }
    let (body, shown, more) = match want.from_char {
        Some(from) => part_of_line(&text, want.offset, from)?,
        None => lines(&text, want, total),
    };
    notes.extend(more);
    let notes = if notes.is_empty() { String::new() } else { format!("\n[{}]", notes.join("; ")) };
    Ok(ToolOutput::text(format!("{body}{notes}")).with_details(&details(shown, total)))
}

/// Lines with their numbers, how many, and what is to be said about the rest.
fn lines(text: &str, want: Want, total: u64) -> (String, u64, Option<String>) {
    let mut body = String::new();
    let (mut shown, mut chars) = (0, 0);
    let skip = usize::try_from(want.offset - 1).unwrap_or(usize::MAX);
    let numbered = (want.offset..).zip(text.lines().skip(skip));
    for (number, line) in numbered.take(usize::try_from(want.limit).unwrap_or(usize::MAX)) {
        let (cut, rest) = cut(line, 0, LINE_CHARS);
        let mut written = format!("{number:>6}\t{cut}");
        if rest > 0 {
            let next = LINE_CHARS + 1;
            written = format!("{written} [... {rest} more characters: offset={number} fromChar={next}]");
        }
        chars += written.chars().count() + 1;
        if chars > CHARS && shown > 0 {
            break;
        }
        if shown > 0 {
            body.push('\n');
        }
        body.push_str(&written);
        shown += 1;
    }
    let last = want.offset + shown - 1;
    let more = (want.offset > 1 || last < total).then(|| {
        let next = if last < total { format!(": go on with offset={}", last + 1) } else { String::new() };
        format!("lines {} to {last} of {total}{next}", want.offset)
    });
    (body, shown, more)
}

/// A piece of one line, for lines that are longer than what is shown of them.
fn part_of_line(text: &str, number: u64, from: u64) -> Result<(String, u64, Option<String>), ToolOutput> {
    let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
    let line = text.lines().nth(index).unwrap_or_default();
    let skip = usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX);
    let length = line.chars().count();
    if skip >= length {
        return Err(fault("fromChar", format!("line {number} has {length} characters only")));
    }
    let (piece, rest) = cut(line, skip, CHARS - 1000);
    let last = length - rest;
    let next =
        if rest > 0 { format!(": go on with offset={number} fromChar={}", last + 1) } else { String::new() };
    let more = format!("characters {} to {last} of {length} of line {number}{next}", skip + 1);
    Ok((piece.to_owned(), 1, Some(more)))
}

/// `most` characters after `skip`, and how many are left.
fn cut(line: &str, skip: usize, most: usize) -> (&str, usize) {
    let mut places = line.char_indices().map(|(at, _)| at).chain([line.len()]).skip(skip);
    let begin = places.next().unwrap_or(line.len());
    let end = places.nth(most.saturating_sub(1)).unwrap_or(line.len());
    let rest = line.get(end..).map_or(0, |rest| rest.chars().count());
    (line.get(begin..end).unwrap_or_default(), rest)
}

fn image(bytes: &[u8], mime_type: &'static str, named: &str) -> Result<ToolOutput, ToolOutput> {
    if bytes.len() > MOST_IMAGE {
        let size = bytes.len();
        return Err(ToolOutput::error(format!(
            "{named} is a picture ({mime_type}) of {size} bytes; at most {MOST_IMAGE} are shown. Make a smaller one with shell."
        )));
    }
    let text = format!("[{named}: {mime_type}, {} bytes]", bytes.len());
    let image = ToolImage { mime_type: mime_type.to_owned(), data: STANDARD.encode(bytes) };
    let details = json!({"bytes": bytes.len(), "mimeType": mime_type});
    Ok(ToolOutput { images: vec![image], ..ToolOutput::text(text).with_details(&details) })
}

#[cfg(test)]
mod tests;
