//! Edits of real files.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::tools::read::Read;
use crate::tools::{ToolSession, ToolSetup};

struct Folder {
    folder: tempfile::TempDir,
    session: Arc<ToolSession>,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let setup = ToolSetup::new(folder.path().join("work"), folder.path().join("temp"));
        Self { session: Arc::new(ToolSession::new(setup, None)), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn context(&self) -> ToolContext {
        ToolContext::new(Arc::clone(&self.session), "c", CancellationToken::new())
    }

    /// A file that the model has read.
    async fn has_read(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
        let args = Arguments::of(json!({"path": name})).unwrap();
        Read.run(&self.context(), args).await;
    }

    async fn edit(&self, args: Value) -> ToolOutput {
        Edit.run(&self.context(), Arguments::of(args).unwrap()).await
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

#[tokio::test]
async fn an_edit_changes_the_file_and_says_what() {
    let folder = Folder::new();
    folder.has_read("a.rs", "fn a() {}\nfn b() {}\n").await;
    let output = folder.edit(json!({"path": "a.rs", "old_string": "fn b", "new_string": "fn c"})).await;
    assert_eq!(output.text, "Changed a.rs in 1 place (line 2): 1 line added, 1 removed.");
    assert_eq!(folder.text("a.rs"), "fn a() {}\nfn c() {}\n");
    let details = output.details.unwrap().tree();
    assert!(details.get("diff").unwrap().as_str().unwrap().contains("-fn b() {}\n+fn c() {}"));
    // What was written is what was seen: no reading in between.
    let output = folder.edit(json!({"path": "a.rs", "oldText": "fn c", "newText": "fn d"})).await;
    assert!(!output.is_error, "{}", output.text);
}

#[tokio::test]
async fn several_edits_are_all_or_nothing() {
    let folder = Folder::new();
    folder.has_read("a", "one two three").await;
    let bad = json!({"path": "a", "edits": [{"oldText": "one", "newText": "1"}, {"oldText": "four", "newText": "4"}]});
    let output = folder.edit(bad).await;
    assert!(
        output.is_error && output.text.starts_with("Nothing was changed in a: change 2 of 2"),
        "{}",
        output.text
    );
    assert_eq!(folder.text("a"), "one two three");
    let good = json!({"path": "a", "edits": [{"oldText": "one", "newText": "1"}, {"oldText": "three", "newText": "3"}]});
    assert!(!folder.edit(good).await.is_error);
    assert_eq!(folder.text("a"), "1 two 3");
}

#[tokio::test]
async fn a_file_that_was_not_read_or_has_changed_is_not_touched() {
    let folder = Folder::new();
    std::fs::write(folder.path("a"), "x").unwrap();
    let edit = json!({"path": "a", "oldText": "x", "newText": "y"});
    let output = folder.edit(edit.clone()).await;
    assert_eq!((output.text.as_str(), output.is_error), ("a has not been read yet: read it first.", true));
    folder.has_read("a", "x").await;
    std::fs::write(folder.path("a"), "x of somebody else").unwrap();
    let output = folder.edit(edit).await;
    assert!(output.is_error && output.text.contains("has changed since it was read"), "{}", output.text);
    assert_eq!(folder.text("a"), "x of somebody else");
}

#[tokio::test]
async fn marks_line_ends_and_modes_stay() {
    let folder = Folder::new();
    folder.has_read("w", "\u{feff}a\r\nb\r\n").await;
    assert!(!folder.edit(json!({"path": "w", "oldText": "a\nb", "newText": "x\ny"})).await.is_error);
    assert_eq!(folder.text("w"), "\u{feff}x\r\ny\r\n");
}

#[cfg(unix)]
#[tokio::test]
async fn links_inside_are_followed_and_stay_links_and_links_outside_take_permission() {
    let folder = Folder::new();
    folder.has_read("real", "x").await;
    std::os::unix::fs::symlink("real", folder.path("link")).unwrap();
    assert!(!folder.edit(json!({"path": "link", "oldText": "x", "newText": "y"})).await.is_error);
    assert_eq!(folder.text("real"), "y");
    assert!(folder.path("link").is_symlink());
    std::fs::write(folder.folder.path().join("outside"), "x").unwrap();
    std::os::unix::fs::symlink("../outside", folder.path("out")).unwrap();
    let output = folder.edit(json!({"path": "out", "oldText": "x", "newText": "y"})).await;
    assert!(output.is_error && output.text.contains("lies outside"), "{}", output.text);
    let args = Arguments::of(json!({"path": "out", "oldText": "x", "newText": "y"})).unwrap();
    let real = crate::tools::paths::resolve(&folder.folder.path().join("outside")).unwrap();
    assert_eq!(Edit.actions(&folder.context(), &args).unwrap(), [Action::Write(real)]);
}

#[tokio::test]
async fn what_is_no_text_is_not_edited() {
    let folder = Folder::new();
    for (name, bytes, reason) in [
        ("latin", b"caf\xe9".as_slice(), "not UTF-8"),
        ("wide", b"\xff\xfea\0", "UTF-16"),
        ("bin", b"a\0", "no text"),
    ] {
        folder.has_read(name, bytes).await;
        let output = folder.edit(json!({"path": name, "oldText": "a", "newText": "b"})).await;
        assert!(
            output.is_error && (output.text.contains(reason) || output.text.contains("not been read")),
            "{}",
            output.text
        );
        assert_eq!(std::fs::read(folder.path(name)).unwrap(), bytes);
    }
}

#[tokio::test]
async fn two_edits_at_a_time_both_count() {
    let folder = Folder::new();
    folder.has_read("a", "one two").await;
    let (one, two) = tokio::join!(
        folder.edit(json!({"path": "a", "oldText": "one", "newText": "1"})),
        folder.edit(json!({"path": "a", "oldText": "two", "newText": "2"})),
    );
    assert!(!one.is_error && !two.is_error);
    assert_eq!(folder.text("a"), "1 2");
}

#[tokio::test]
async fn bad_arguments_are_said() {
    let folder = Folder::new();
    let table = [
        (json!({"path": "a", "newText": "b"}), "Argument `oldText`: is missing."),
        (json!({"path": "a", "edits": [{"oldText": "b"}]}), "Argument `edits[0].newText`: is missing."),
        (
            json!({"path": "a", "edits": [{"oldText": "b", "newText": "c", "x": 1}]}),
            "Argument `edits[0].x`: there is no such argument",
        ),
        (
            json!({"path": "a", "oldText": "x", "newText": "y", "edits": [{"oldText": "b", "newText": "c"}]}),
            "goes without oldText",
        ),
        (json!({"path": "no", "oldText": "x", "newText": "y"}), "There is no file no."),
    ];
    for (args, text) in table {
        let output = folder.edit(args).await;
        assert!(output.is_error && output.text.contains(text), "{}", output.text);
    }
}
