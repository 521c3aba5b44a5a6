//! Owns the cards of files: read, edit, write. No file is changed; one may be looked at, by the rules of the preview.

use serde_json::{Value, json};

use super::super::diff::{self, Diff};
use super::super::lenient;
use super::super::limits::{self, COLOURED, DIFF, Limit, READ_CARD, READ_TRACE};
use super::super::preview;
use super::{Call, Card, Details, Matrix, PATH, Said, ToolKind};

const CONTENT: [&str; 5] = ["content", "contents", "fileText", "file_text", "text"];
const OLD: [&str; 5] = ["oldText", "old_string", "oldString", "old_str", "oldStr"];
const NEW: [&str; 5] = ["newText", "new_string", "newString", "new_str", "newStr"];
const BEFORE: [&str; 2] = ["beforeFullFileContent", "beforeContent"];
const AFTER: [&str; 2] = ["afterFullFileContent", "afterContent"];

impl Matrix<'_> {
    /// The card, and its text as a trace has it.
    pub(super) fn read(&self, call: &Call) -> (Card, String) {
        let path = self.path(call).unwrap_or_default();
        let mut args = json!({"path": path});
        for name in ["offset", "limit"] {
            if let (Some(number), Some(map)) =
                (call.args.get(name).and_then(Value::as_u64), args.as_object_mut())
            {
                map.insert(name.to_owned(), number.into());
            }
        }
        if call.outcome.failed {
            let text = self.error(call);
            return (self.native(call, "read", &args, "", text.clone()), text);
        }
        let reported = call.outcome.text_of(&CONTENT).map(|text| (text.to_owned(), "", true));
        let local = || {
            let (text, whole) = preview::text(self.files, self.cwd, Self::unreported(call)?)?;
            // What the agent read: from that line on, so many.
            let most = lenient::count(&call.args, &["limit"]).filter(|limit| *limit > 0);
            let (from, most) = (start(call) - 1, most.unwrap_or(usize::MAX));
            let part: String = text.split_inclusive('\n').skip(from).take(most).collect();
            let is_read = !part.is_empty() || from == 0;
            is_read.then_some((part, "[local preview: the agent reported no content]\n", whole))
        };
        let Some((content, note, whole)) = reported.or_else(local) else {
            let text = "[the agent reported no content]".to_owned();
            return (self.native(call, "read", &args, &path, text.clone()), text);
        };
        let shown = |limit: Limit| format!("{note}{}", self.part_of_file(call, &content, whole, limit));
        let (text, brief) = (shown(READ_CARD), shown(READ_TRACE));
        (self.native(call, "read", &args, &path, text), brief)
    }

    /// The file that a read says nothing about but its name.
    pub(super) fn unreported(call: &Call) -> Option<&str> {
        let is_silent = !call.outcome.failed && call.outcome.text_of(&CONTENT).is_none();
        lenient::text(&call.args, &PATH).filter(|_| is_silent)
    }

    /// So many lines, and a hint where to read on.
    fn part_of_file(&self, call: &Call, content: &str, whole: bool, limit: Limit) -> String {
        let start = start(call);
        // Room for the hint.
        let cut = limits::cut(self.scrubber, content, Limit { chars: limit.chars - 120, ..limit });
        let total = lenient::count(&call.outcome.value, &["totalLines"]).unwrap_or(0);
        let last = start - 1 + cut.lines;
        let missing = cut.missing_lines.max(total.saturating_sub(last));
        let hint = match (missing, whole) {
            (0, true) if cut.missing_chars > 0 => {
                format!("[{} not shown]", limits::plural(cut.missing_chars, "more character"))
            }
            (0, true) => return cut.text,
            (missing, true) if cut.lines == 0 => {
                let chars = limits::plural(cut.missing_chars, "more character");
                format!("[{} ({chars}), offset={start}]", limits::plural(missing, "more line"))
            }
            (missing, true) => format!("[{}, offset={}]", limits::plural(missing, "more line"), last + 1),
            (missing, false) => format!("[{missing} more lines at least, offset={}]", last + 1),
        };
        if cut.text.is_empty() { hint } else { format!("{}\n{hint}", cut.text) }
    }

    /// An `edit` card only if it says truthfully what an edit needs: a path, a text that was there, and one that is.
    pub(super) fn edit(&self, call: &Call) -> Card {
        let path = self.path(call);
        let texts = self.texts(call);
        let value = &call.outcome.value;
        let whole_file = || {
            let old = lenient::any_text(value, &BEFORE).unwrap_or_default();
            Some(diff::of_texts(old, lenient::any_text(value, &AFTER)?))
        };
        let change = diff::reported(value, &call.args)
            .or_else(|| texts.as_ref().map(|(old, new)| diff::of_texts(old, new)))
            .or_else(whole_file);
        if call.kind == ToolKind::Edit
            && let (Some(path), Some((old, new))) = (&path, &texts)
        {
            return self.native_edit(call, path, old, new, change);
        }
        let summary = change.as_ref().map(|change| counts(change, path.as_deref().unwrap_or_default()));
        let said = Said {
            title: format!("{} edit", self.profile.card_title),
            summary: summary.or_else(|| path.clone()).unwrap_or_default(),
            text: change.as_ref().map(|change| change.text.clone()).unwrap_or_default(),
            path,
            diff: change.map(|change| change.text),
            ..Said::default()
        };
        self.activity(call, said)
    }

    fn native_edit(&self, call: &Call, path: &str, old: &str, new: &str, change: Option<Diff>) -> Card {
        let change = change.unwrap_or_else(|| diff::of_texts(old, new));
        let text = if call.outcome.failed { self.error(call) } else { self.block(&change.text) };
        let args = json!({"path": path, "oldText": old, "newText": new});
        let mut card = self.native(call, "edit", &args, &counts(&change, path), text);
        card.details = Some(Details::NativeEdit {
            path: path.to_owned(),
            diff: limits::block(self.scrubber, &change.text, DIFF),
            lines_added: change.added,
            lines_removed: change.removed,
        });
        card
    }

    /// The text that was replaced, which is not empty, and the one that replaces it; both whole.
    fn texts(&self, call: &Call) -> Option<(String, String)> {
        let edits = call.args.get("edits").and_then(Value::as_array).filter(|edits| edits.len() == 1);
        let one = edits.and_then(|edits| edits.first()?.as_object());
        let pair = |map: &serde_json::Map<String, Value>, old: &[&str], new: &[&str]| {
            let old = self.whole(lenient::text(map, old)?)?;
            let new = self.whole(lenient::any_text(map, new)?)?;
            (!old.trim().is_empty()).then_some((old, new))
        };
        pair(&call.args, &OLD, &NEW)
            .or_else(|| pair(one?, &OLD, &NEW))
            .or_else(|| pair(&call.outcome.value, &BEFORE, &AFTER))
    }

    /// A `write` card only if the content is known.
    pub(super) fn write(&self, call: &Call) -> Card {
        let path = self.path(call);
        let content = lenient::any_text(&call.args, &CONTENT)
            .or_else(|| lenient::any_text(&call.args, &["streamContent"]))
            .or_else(|| lenient::any_text(&call.outcome.value, &AFTER));
        if let (Some(path), Some(content)) = (&path, content) {
            let lines = content.lines().count();
            let summary = format!("{path} ({})", limits::plural(lines, "line"));
            let text = if call.outcome.failed { self.error(call) } else { format!("wrote {summary}") };
            let args = json!({"path": path, "content": self.block(content)});
            let mut card = self.native(call, "write", &args, &summary, text);
            let coloured = content.len() <= COLOURED * 4 && content.chars().count() <= COLOURED;
            card.details = Some(Details::NativeWrite { path: path.clone(), lines, coloured });
            return card;
        }
        let change = diff::reported(&call.outcome.value, &call.args);
        let said = Said {
            title: format!("{} write", self.profile.card_title),
            summary: path.clone().unwrap_or_default(),
            path,
            diff: change.map(|change| change.text),
            ..Said::default()
        };
        self.activity(call, said)
    }
}

/// The first line of what was read, counted from 1.
fn start(call: &Call) -> usize {
    let range = call.outcome.value.get("readRange").and_then(Value::as_object);
    let start = range.and_then(|range| lenient::count(range, &["startLine"]));
    start.or_else(|| lenient::count(&call.args, &["offset"])).unwrap_or(1).max(1)
}

fn counts(change: &Diff, path: &str) -> String {
    format!("{path} (+{} -{})", change.added, change.removed).trim_start().to_owned()
}
