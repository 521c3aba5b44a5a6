//! Owns the demonstration's screen.

use std::path::Path;

use serde_json::Value;

use super::client::Answer;
use super::{Call, Demonstration};
use crate::render::{grouped, plain, size};
use crate::table::{Align, columns};

const WIDTH: usize = 100;
/// Lines of the screen that the preview gets.
const PREVIEW: usize = 10;

/// The screen, but for the snippets.
pub(super) fn page(shown: &Demonstration, directory: &Path, saved_command: &str) -> Result<String, String> {
    let limit = grouped(shown.limit);
    let mut out = format!(
        "A demonstration server was called twice: directly, and through `toolway stdio`.\n\
         The client takes {limit} characters of a result (the default, --client cursor).\n\n"
    );
    let mut rows = vec![["TOOL", "WITHOUT TOOLWAY", "WITH TOOLWAY", "SAVED AS"].map(String::from).to_vec()];
    rows.extend(shown.calls.iter().map(|call| row(call, shown.limit)));
    out.push_str(&columns(&[Align::Left; 4], &rows));

    let log = shown.calls.first().ok_or("nothing was called")?;
    let text = log.guarded.message.pointer("/result/content/0/text").and_then(Value::as_str);
    let text = text.ok_or("the preview has no text")?;
    out.push_str("\nWhat the client reads in place of the build log begins so:\n");
    let lines = text.lines().flat_map(folded).take(PREVIEW);
    out.extend(lines.map(|line| format!("  | {line}\n")));
    let saved = shown.calls.iter().filter_map(|call| call.saved.as_ref());
    let (mut count, mut equal) = (0, true);
    for saved in saved {
        count += 1;
        equal &= saved.equal && saved.path.starts_with(directory);
    }
    if !equal {
        return Err("a saved result is not what the server sent".to_owned());
    }
    let middle = &shown.middle;
    out.extend([format!(
        "\nAll {count} saved results are byte for byte what the server sent: compared just now.\n\
         Three lines out of the middle: {saved_command} show {} --lines {}-{}\n",
        middle.id, middle.first, middle.last
    )]);
    out.extend(middle.text.lines().map(|line| format!("  | {}\n", plain(line, WIDTH - 4))));
    out.extend(["All of them: ", saved_command, " list\n"]);
    Ok(out)
}

/// A line in pieces that fit the screen.
fn folded(line: &str) -> Vec<String> {
    let line = plain(line, usize::MAX);
    let chars: Vec<char> = line.chars().collect();
    chars.chunks(WIDTH - 4).map(|piece| piece.iter().collect()).collect()
}

fn row(call: &Call, limit: u64) -> Vec<String> {
    let direct = facts(&call.direct, limit);
    let same = call.guarded.line == call.direct.line;
    let guarded = if same {
        let progress = progress(call.guarded.progress);
        format!("the same bytes{progress}")
    } else {
        facts(&call.guarded, limit)
    };
    let saved = call.saved.as_ref().map_or_else(String::new, |saved| saved.id.clone());
    vec![call.tool.to_owned(), direct, guarded, saved]
}

fn facts(answer: &Answer, limit: u64) -> String {
    let large = if answer.chars > limit { ": too large" } else { "" };
    let error =
        if answer.message.pointer("/result/isError") == Some(&Value::Bool(true)) { ", an error" } else { "" };
    let image = match answer.message.pointer("/result/content/0/data").and_then(Value::as_str) {
        // Base64: four characters for three bytes.
        Some(data) => format!(", {} of image", size(data.trim_end_matches('=').len() as u64 * 3 / 4)),
        None => String::new(),
    };
    format!("{} chars{error}{image}{}{large}", grouped(answer.chars), progress(answer.progress))
}

fn progress(notifications: u32) -> String {
    if notifications == 0 { String::new() } else { format!(", {notifications} progress") }
}
