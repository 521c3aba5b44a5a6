//! Owns a server's lists as they came, and following their pages to the end: the guard against cursors that never
//! end. Sends nothing and judges no definition.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use toolway_wire::find::{self, Step};

/// Pages of one list that are followed.
pub const MAX_PAGES: usize = 1000;
/// Definitions of one list that are kept.
pub const MAX_ITEMS: usize = 20_000;
/// Bytes of definitions of one list that are kept.
pub const MAX_LIST_BYTES: usize = 64 << 20;
/// Pages without anything new after which a server is taken to page for ever.
const IDLE_PAGES: usize = 3;

/// The four lists of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
}

impl ListKind {
    /// Every list.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The method that asks for it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of the result that holds it.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of a definition that identifies it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// What one definition is called in texts.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "resource template",
        }
    }
}

/// What one server listed: every definition as the raw JSON that came, in the server's order, pages joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawLists {
    /// Of `tools/list`.
    pub tools: Vec<Bytes>,
    /// Of `prompts/list`.
    pub prompts: Vec<Bytes>,
    /// Of `resources/list`.
    pub resources: Vec<Bytes>,
    /// Of `resources/templates/list`.
    pub templates: Vec<Bytes>,
    /// What was not as it should be, for people: paging that was cut, a list that failed.
    pub notes: Vec<String>,
    /// How long it may be kept, where the server says so (`ttlMs`, from 2026-07-28 on): the shortest of all pages.
    pub ttl: Option<Duration>,
    /// Another user may see something else (`cacheScope: "private"`, from 2026-07-28 on).
    pub private: bool,
    /// Lists are still coming: tools are told as soon as they are known.
    pub pending: bool,
}

impl RawLists {
    /// The definitions of one list.
    pub fn list(&self, kind: ListKind) -> &[Bytes] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    /// Puts in what paging found.
    pub fn set(&mut self, kind: ListKind, items: Vec<Bytes>) {
        *match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Prompts => &mut self.prompts,
            ListKind::Resources => &mut self.resources,
            ListKind::Templates => &mut self.templates,
        } = items;
    }
}

/// What to do after a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPage {
    /// Ask for the page of this cursor: a JSON string, as the server spelled it.
    Ask(Bytes),
    /// That was the last page.
    Done,
    /// The server pages without an end; what came so far stands. Says why.
    Stopped(String),
}

/// One list on its way: takes the pages, says when to stop.
#[derive(Debug)]
pub struct Paging {
    kind: ListKind,
    items: Vec<Bytes>,
    bytes: usize,
    pages: usize,
    idle: usize,
    cursors: HashSet<[u8; 32]>,
    names: HashSet<[u8; 32]>,
}

impl Paging {
    /// Before the first page.
    pub fn new(kind: ListKind) -> Self {
        Self {
            kind,
            items: Vec::new(),
            bytes: 0,
            pages: 0,
            idle: 0,
            cursors: HashSet::new(),
            names: HashSet::new(),
        }
    }

    /// Takes one page: the whole response, JSON that the scanner has seen.
    pub fn page(&mut self, response: &Bytes) -> NextPage {
        self.pages += 1;
        let member = self.kind.member();
        let list = find::find(response, &[Step::Key("result"), Step::Key(member)]);
        let Some(list) = list.filter(|at| response.get(at.start) == Some(&b'[')) else {
            return NextPage::Stopped(format!(
                "the answer to {} has no array {member:?}{}",
                self.kind.method(),
                if self.pages > 1 { format!(" on page {}", self.pages) } else { String::new() }
            ));
        };
        let mut new = false;
        for at in find::elements(response, list) {
            let item = response.slice(at);
            if self.items.len() >= MAX_ITEMS || self.bytes + item.len() > MAX_LIST_BYTES {
                return self.stopped(&format!("more than {MAX_ITEMS} definitions or {MAX_LIST_BYTES} bytes"));
            }
            // Only a server that pages has to prove that its pages bring something.
            new |= self.names.insert(digest(&identity(&item, self.kind)));
            self.bytes += item.len();
            self.items.push(item);
        }
        self.idle = if new { 0 } else { self.idle + 1 };
        let Some(cursor) = next_cursor(response) else { return NextPage::Done };
        if !self.cursors.insert(digest(&cursor)) {
            return self.stopped("the same cursor came again");
        }
        if self.idle >= IDLE_PAGES {
            return self.stopped(&format!("{IDLE_PAGES} pages brought nothing new"));
        }
        if self.pages >= MAX_PAGES {
            return self.stopped(&format!("{MAX_PAGES} pages, and no end"));
        }
        NextPage::Ask(cursor)
    }

    /// What came.
    pub fn into_items(self) -> Vec<Bytes> {
        self.items
    }

    fn stopped(&self, why: &str) -> NextPage {
        NextPage::Stopped(format!("paging of {} was cut at page {}: {why}", self.kind.method(), self.pages))
    }
}

/// Raw JSON of the cursor; `null` and the empty string mean that there is none, as many servers have it.
fn next_cursor(response: &Bytes) -> Option<Bytes> {
    let at = find::find(response, &[Step::Key("result"), Step::Key("nextCursor")])?;
    let cursor = response.slice(at);
    (cursor.first() == Some(&b'"') && cursor.len() > 2).then_some(cursor)
}

/// What tells one definition from another: its key where it has one.
fn identity(item: &Bytes, kind: ListKind) -> Bytes {
    find::find(item, &[Step::Key(kind.key())]).map_or_else(|| item.clone(), |at| item.slice(at))
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(names: &[&str], cursor: &str) -> Bytes {
        let tools: Vec<String> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
        let tools = tools.join(" , ");
        Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}],"nextCursor":{cursor}}}}}"#
        ))
    }

    #[test]
    fn pages_are_joined_in_order() {
        let mut paging = Paging::new(ListKind::Tools);
        assert_eq!(paging.page(&page(&["a", "b"], r#""\u0031""#)), NextPage::Ask(r#""\u0031""#.into()));
        assert_eq!(paging.page(&page(&["c"], r#""2""#)), NextPage::Ask("\"2\"".into()));
        assert_eq!(paging.page(&page(&["d"], "null")), NextPage::Done);
        let items = paging.into_items();
        assert_eq!(items, [r#"{"name":"a"}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#, r#"{"name":"d"}"#]);
    }

    #[test]
    fn no_cursor_in_any_spelling_is_the_end() {
        for cursor in ["null", r#""""#, "7", "{}"] {
            assert_eq!(Paging::new(ListKind::Tools).page(&page(&["a"], cursor)), NextPage::Done, "{cursor}");
        }
        let last = Bytes::from_static(br#"{"result":{"tools":[]}}"#);
        assert_eq!(Paging::new(ListKind::Tools).page(&last), NextPage::Done);
    }

    #[test]
    fn a_repeated_cursor_ends_it_with_what_came() {
        let mut paging = Paging::new(ListKind::Tools);
        paging.page(&page(&["a"], r#""x""#));
        paging.page(&page(&["b"], r#""y""#));
        let NextPage::Stopped(why) = paging.page(&page(&["c"], r#""x""#)) else { unreachable!("went on") };
        assert_eq!(why, "paging of tools/list was cut at page 3: the same cursor came again");
        assert_eq!(paging.into_items().len(), 3);
    }

    #[test]
    fn fresh_cursors_for_old_tools_end_it() {
        let mut paging = Paging::new(ListKind::Tools);
        let asked = (0..100)
            .take_while(|n| matches!(paging.page(&page(&["a", "b"], &format!("\"{n}\""))), NextPage::Ask(_)));
        assert_eq!(asked.count(), 3);
    }

    #[test]
    fn fresh_cursors_and_fresh_tools_end_at_the_cap() {
        let mut paging = Paging::new(ListKind::Tools);
        let asked = (0..2000).take_while(|n| {
            matches!(paging.page(&page(&[&format!("t{n}")], &format!("\"{n}\""))), NextPage::Ask(_))
        });
        assert_eq!(asked.count(), MAX_PAGES - 1);
    }

    #[test]
    fn an_answer_without_the_list_says_so() {
        for answer in [r#"{"result":{}}"#, r#"{"result":{"prompts":{}}}"#, "[]", "{\"result\":null}"] {
            let next = Paging::new(ListKind::Prompts).page(&Bytes::from(answer));
            let why = "the answer to prompts/list has no array \"prompts\"".to_owned();
            assert_eq!(next, NextPage::Stopped(why), "{answer}");
        }
    }
}
