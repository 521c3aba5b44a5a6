//! Owns the end of a live text in which a secret may have begun: it waits for what comes behind it.

use toolway_secret::Redactor;

use crate::event::Delta;

/// A text that comes in deltas, as far as it waits.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    waits: Option<Delta>,
}

impl Pieces {
    /// What can be told now.
    pub(super) fn next(&mut self, mut delta: Delta) -> Vec<Delta> {
        let mut ready = Vec::new();
        if let Some(mut before) = self.waits.take() {
            if is_one_text(&before, &delta) {
                if let (Some(text), Some(more)) = (text(&mut before), text(&mut delta)) {
                    text.push_str(more);
                    *more = std::mem::take(text);
                }
            } else {
                ready.push(before);
            }
        }
        if let Some(text) = text(&mut delta) {
            let (shown, end) = Redactor::split_unfinished(text);
            let (shown, end) = (shown.to_owned(), end.to_owned());
            if !end.is_empty() {
                *text = end;
                self.waits = Some(delta.clone());
            }
            if shown.is_empty() {
                return ready;
            }
            replace(&mut delta, shown);
        }
        ready.push(delta);
        ready
    }

    /// What waits: nothing comes behind it.
    pub(super) fn rest(&mut self) -> Option<Delta> {
        self.waits.take()
    }
}

fn text(delta: &mut Delta) -> Option<&mut String> {
    match delta {
        Delta::Text(text) | Delta::Thinking(text) | Delta::ShellOutput { text, .. } => Some(text),
        _ => None,
    }
}

fn replace(delta: &mut Delta, shown: String) {
    if let Some(text) = text(delta) {
        *text = shown;
    }
}

fn is_one_text(one: &Delta, other: &Delta) -> bool {
    match (one, other) {
        (Delta::Text(_), Delta::Text(_)) | (Delta::Thinking(_), Delta::Thinking(_)) => true,
        (
            Delta::ShellOutput { call_id, stream, .. },
            Delta::ShellOutput { call_id: other_id, stream: other_stream, .. },
        ) => call_id == other_id && stream == other_stream,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use toolway_secret::Secret;

    use super::*;

    fn text(text: &str) -> Delta {
        Delta::Text(text.to_owned())
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_whole_when_it_is_told() {
        let _held = Secret::in_use("zulu-secret-of-pieces");
        let mut pieces = Pieces::default();
        assert_eq!(pieces.next(text("it is zulu-")), [text("it is ")]);
        assert_eq!(pieces.next(text("secret-")), []);
        assert_eq!(pieces.next(text("of-pieces, and zu")), [text("zulu-secret-of-pieces, and ")]);
        // Something else comes: nothing of it goes on.
        assert_eq!(
            pieces.next(Delta::Thinking("hm zulu".to_owned())),
            [text("zu"), Delta::Thinking("hm ".to_owned())]
        );
        assert_eq!(
            pieces.next(Delta::SummaryStarted),
            [Delta::Thinking("zulu".to_owned()), Delta::SummaryStarted]
        );
        assert_eq!(pieces.next(text("zul")), []);
        assert_eq!(pieces.rest(), Some(text("zul")));
        assert_eq!((pieces.rest(), pieces.next(text("plain"))), (None, vec![text("plain")]));
    }
}
