//! Owns the line that says a tool is still running: when it is due, and what may stand in it.

use std::collections::{HashSet, VecDeque};
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use tokio::time::Instant;

/// A tool that is over by then is not announced.
const DELAY: Duration = Duration::from_millis(75);
/// Lines that are remembered, to be said once.
const REMEMBERED: usize = 4096;

/// Web addresses, and absolute paths with what stands before them.
static PLACES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?P<url>[A-Za-z][A-Za-z0-9+.-]*://(?:\[redacted\]|[^\s"'<>)\]}])*)|(?P<before>^|[\s"'`(\[{<=,:;|])(?:~?[/\\]?(?:[/\\][^\s"'`<>)\]}:;,|/\\]+)+[/\\]?|[A-Za-z]:[/\\][^\s"'`<>)\]}:;,|]*)"#,
    )
    .ok()
});

/// The lines of one run.
#[derive(Debug, Default)]
pub(super) struct PendingLines {
    due: VecDeque<(Instant, String)>,
    said: HashSet<String>,
}

impl PendingLines {
    /// A tool that is announced was started.
    pub(super) fn start(&mut self, id: &str, now: Instant) {
        self.due.push_back((now + DELAY, id.to_owned()));
    }

    /// It is over.
    pub(super) fn stop(&mut self, id: &str) {
        self.due.retain(|(_, waiting)| waiting != id);
    }

    /// Nothing is announced any more: the turn ends.
    pub(super) fn clear(&mut self) {
        self.due.clear();
        self.said.clear();
    }

    /// When the next line is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.iter().map(|(due, _)| *due).min()
    }

    /// The calls whose line is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<String> {
        let (due, later) = self.due.drain(..).partition(|(due, _)| *due <= now);
        self.due = later;
        let due: VecDeque<(Instant, String)> = due;
        due.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether this was not said before: the same call, or the same text.
    pub(super) fn is_new(&mut self, key: String) -> bool {
        if self.said.len() >= REMEMBERED {
            self.said.clear();
        }
        self.said.insert(key)
    }
}

/// A summary without addresses and absolute paths: of a path its last name stays.
pub(super) fn without_places(text: &str) -> String {
    let Some(places) = PLACES.as_ref() else { return String::new() };
    let replaced = places.replace_all(text, |found: &regex::Captures<'_>| {
        if found.name("url").is_some() {
            return "(address)".to_owned();
        }
        let before = found.name("before").map_or("", |before| before.as_str());
        let path = found.get(0).map_or("", |whole| whole.as_str()).get(before.len()..).unwrap_or_default();
        let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\', ':']).next().unwrap_or_default();
        format!("{before}{name}")
    });
    replaced.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_absolute_paths_do_not_show() {
        for (text, shown) in [
            ("look at https://h.example/a?b=c now", "look at (address) now"),
            ("in /home/joe/project/src/main.rs, please", "in main.rs, please"),
            ("(/etc/passwd) and '~/x/y'", "(passwd) and 'y'"),
            ("C:\\Users\\joe\\a.txt and \\\\server\\share\\b", "a.txt and b"),
            ("file:///root/x", "(address)"),
            ("at https://h.example/a?token=[redacted]&b now", "at (address) now"),
            ("path=/root/x:/root/y", "path=x:y"),
            ("src/main.rs and a/b, 1/2", "src/main.rs and a/b, 1/2"),
        ] {
            assert_eq!(without_places(text), shown, "{text}");
        }
    }
}
