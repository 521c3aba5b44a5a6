//! Owns the cards of looking around: grep, find, ls.

use serde_json::{Map, Value, json};

use super::super::lenient;
use super::super::limits::{self, ITEMS};
use super::{Call, Card, Matrix};

/// Folders in folders that a tree shows.
const DEEP: usize = 32;

impl Matrix<'_> {
    pub(super) fn grep(&self, call: &Call) -> Card {
        let pattern = pattern(call).unwrap_or_default();
        let mut args = json!({"pattern": self.label(pattern)});
        add(&mut args, "path", self.path(call));
        add(&mut args, "glob", lenient::text(&call.args, &["glob", "include"]).map(|glob| self.label(glob)));
        let insensitive = ["caseInsensitive", "-i", "ignoreCase"]
            .iter()
            .any(|name| call.args.get(*name) == Some(&true.into()));
        if let (true, Some(map)) = (insensitive, args.as_object_mut()) {
            map.insert("ignoreCase".to_owned(), true.into());
        }
        if call.outcome.failed {
            let text = self.error(call);
            return self.native(call, "grep", &args, "", text);
        }
        let mut found = Found::default();
        found.look(&call.outcome.value, self, 0);
        for one in &call.outcome.list {
            found.one(one, self);
        }
        let text = match call.outcome.text_of(&["content", "output", "results"]) {
            Some(text) if found.items.is_empty() && !text.trim().is_empty() => text.to_owned(),
            _ if found.total == 0 => "no matches".to_owned(),
            _ => limits::list(&found.items, found.total),
        };
        let what = if found.are_files { "file" } else { "match" };
        let summary = match found.total {
            0 if text == "no matches" => format!("{pattern}: no matches"),
            0 => pattern.to_owned(),
            1 => format!("{pattern}: 1 {what}"),
            many if found.are_files => format!("{pattern}: {many} files"),
            many => format!("{pattern}: {many} matches"),
        };
        let text = self.block(&text);
        self.native(call, "grep", &args, &summary, text)
    }

    pub(super) fn glob(&self, call: &Call) -> Card {
        let pattern = glob_pattern(call).unwrap_or_default();
        let mut args = json!({"pattern": self.label(pattern)});
        let folder = lenient::text(&call.args, &["targetDirectory", "target_directory", "path"]);
        add(&mut args, "path", folder.map(|path| self.label(&limits::relative(self.cwd, path))));
        if call.outcome.failed {
            let text = self.error(call);
            return self.native(call, "find", &args, "", text);
        }
        let value = &call.outcome.value;
        let listed = call.outcome.list_of(&["files", "paths"]);
        let files: Vec<String> = listed.iter().take(ITEMS).filter_map(|file| self.item(file)).collect();
        let total = lenient::count(value, &["totalFiles"]).unwrap_or(0).max(listed.len());
        let counted = format!("{pattern}: {}", limits::plural(total, "file"));
        let (text, summary) = match call.outcome.text_of(&["output", "content"]) {
            // How many there are is not known then.
            Some(text) if files.is_empty() && !text.trim().is_empty() => {
                (text.to_owned(), pattern.to_owned())
            }
            _ if files.is_empty() => ("no files".to_owned(), counted),
            _ => (limits::list(&files, total), counted),
        };
        let text = self.block(&text);
        self.native(call, "find", &args, &summary, text)
    }

    pub(super) fn ls(&self, call: &Call) -> Card {
        let path = self.path(call).unwrap_or_else(|| ".".to_owned());
        let args = json!({"path": path});
        if call.outcome.failed {
            let text = self.error(call);
            return self.native(call, "ls", &args, "", text);
        }
        let value = &call.outcome.value;
        let mut tree = Tree::default();
        if let Some(root) = value.get("directoryTreeRoot").and_then(Value::as_object) {
            tree.folder(root, 0);
        } else {
            for entry in call.outcome.list_of(&["entries", "files", "children"]) {
                tree.add(0, &entry_name(entry));
            }
        }
        let text = match call.outcome.text_of(&["output", "content", "listing"]) {
            Some(text) if tree.lines.is_empty() && !text.trim().is_empty() => text.to_owned(),
            _ if tree.lines.is_empty() => "(empty)".to_owned(),
            _ => limits::list(&tree.lines, tree.total),
        };
        let text = self.block(&text);
        self.native(call, "ls", &args, &path, text)
    }

    /// A path, or an object with one.
    fn item(&self, item: &Value) -> Option<String> {
        let path = item.as_str().or_else(|| lenient::text(item.as_object()?, &["path", "file", "name"]))?;
        Some(self.label(&limits::relative(self.cwd, path)))
    }
}

/// What was searched for.
pub(super) fn pattern(call: &Call) -> Option<&str> {
    lenient::text(&call.args, &["pattern", "regex", "query"])
}

/// Which names were looked for.
pub(super) fn glob_pattern(call: &Call) -> Option<&str> {
    lenient::text(&call.args, &["globPattern", "glob_pattern", "pattern", "glob", "query"])
}

fn add(args: &mut Value, name: &str, value: Option<String>) {
    if let (Some(value), Some(map)) = (value, args.as_object_mut()) {
        map.insert(name.to_owned(), value.into());
    }
}

/// Matches of a search, in whatever nesting of workspaces, files and lines.
#[derive(Default)]
struct Found {
    items: Vec<String>,
    total: usize,
    are_files: bool,
}

impl Found {
    fn look(&mut self, map: &Map<String, Value>, matrix: &Matrix<'_>, depth: usize) {
        if depth > 5 {
            return;
        }
        if let Some(workspaces) = map.get("workspaceResults").and_then(Value::as_object) {
            for workspace in workspaces.values().filter_map(Value::as_object) {
                self.look(workspace, matrix, depth + 1);
            }
            return;
        }
        for name in ["content", "files", "count"] {
            if let Some(inner) = map.get(name).and_then(Value::as_object) {
                self.look(inner, matrix, depth + 1);
            }
        }
        for file in map.get("matches").and_then(Value::as_array).into_iter().flatten() {
            self.file(file, matrix);
        }
        for file in map.get("files").and_then(Value::as_array).into_iter().flatten() {
            self.are_files = true;
            self.push(|| matrix.item(file).unwrap_or_default());
        }
        for file in
            map.get("counts").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
        {
            self.are_files = true;
            let count = lenient::count(file, &["count"]).unwrap_or(0);
            self.push(|| {
                format!("{}: {count}", matrix.item(&Value::Object(file.clone())).unwrap_or_default())
            });
        }
    }

    /// Of a list without a name: a file alone, or what was found in one.
    fn one(&mut self, one: &Value, matrix: &Matrix<'_>) {
        if one.is_string() {
            self.are_files = true;
            self.push(|| matrix.item(one).unwrap_or_default());
        } else {
            self.file(one, matrix);
        }
    }

    /// A file with its lines, or a line with its file.
    fn file(&mut self, file: &Value, matrix: &Matrix<'_>) {
        let Some(map) = file.as_object() else { return };
        let name = matrix.item(file).unwrap_or_default();
        match map.get("matches").and_then(Value::as_array) {
            Some(lines) => {
                for line in lines.iter().filter_map(Value::as_object) {
                    self.line(&name, line, matrix);
                }
            }
            None => self.line(&name, map, matrix),
        }
    }

    fn line(&mut self, file: &str, line: &Map<String, Value>, matrix: &Matrix<'_>) {
        if line.get("isContextLine") == Some(&Value::Bool(true)) {
            return;
        }
        let number = lenient::count(line, &["lineNumber", "line_number", "line"]);
        let text = lenient::any_text(line, &["content", "text", "lineContent"]).unwrap_or_default();
        self.push(|| match number {
            Some(number) => matrix.label(&format!("{file}:{number}: {text}")),
            None => matrix.label(&format!("{file}: {text}")),
        });
    }

    fn push(&mut self, item: impl FnOnce() -> String) {
        self.total += 1;
        if self.items.len() < ITEMS {
            self.items.push(item());
        }
    }
}

/// A folder's entries, indented.
#[derive(Default)]
struct Tree {
    lines: Vec<String>,
    total: usize,
}

impl Tree {
    fn folder(&mut self, folder: &Map<String, Value>, depth: usize) {
        let list = |name: &str| folder.get(name).and_then(Value::as_array).into_iter().flatten();
        for inner in list("childrenDirs") {
            self.add(depth, &(entry_name(inner) + "/"));
            if let Some(inner) = inner.as_object().filter(|_| depth < DEEP) {
                self.folder(inner, depth + 1);
            }
        }
        for file in list("childrenFiles") {
            self.add(depth, &entry_name(file));
        }
    }

    fn add(&mut self, depth: usize, name: &str) {
        self.total += 1;
        if self.lines.len() < ITEMS {
            self.lines.push(format!("{}{name}", "  ".repeat(depth)));
        }
    }
}

fn entry_name(entry: &Value) -> String {
    let text = entry.as_str().or_else(|| lenient::text(entry.as_object()?, &["name", "absPath", "path"]));
    let text = text.unwrap_or_default().trim_end_matches('/');
    text.rsplit('/').next().unwrap_or_default().to_owned()
}
