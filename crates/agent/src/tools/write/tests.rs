//! Files that are made, replaced and removed.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::tools::ToolSetup;
use crate::tools::read::Read;

struct Folder {
    folder: tempfile::TempDir,
    context: ToolContext,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let setup = ToolSetup::new(folder.path().join("work"), folder.path().join("temp"));
        let session = Arc::new(ToolSession::new(setup, None));
        Self { context: ToolContext::new(session, "c", CancellationToken::new()), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    async fn call(&self, tool: &dyn Tool, args: Value) -> ToolOutput {
        tool.run(&self.context, Arguments::of(args).unwrap()).await
    }
}

#[tokio::test]
async fn a_file_is_made_with_its_folders() {
    let folder = Folder::new();
    let output = folder.call(&Write, json!({"path": "a/b/c.txt", "content": "x\ny\n"})).await;
    assert_eq!(output.text, "Created a/b/c.txt (2 lines, 4 bytes).");
    assert_eq!(fs::read_to_string(folder.path("a/b/c.txt")).unwrap(), "x\ny\n");
    assert_eq!(output.details.unwrap().tree().get("created").unwrap(), true);
    // What was written was seen.
    let output = folder.call(&Write, json!({"path": "a/b/c.txt", "content": ""})).await;
    assert_eq!(output.text, "Replaced a/b/c.txt (0 lines, 0 bytes).");
}

#[tokio::test]
async fn a_file_that_was_not_read_is_not_written_over() {
    let folder = Folder::new();
    fs::write(folder.path("a"), "kept").unwrap();
    let write = json!({"path": "a", "content": "new"});
    let output = folder.call(&Write, write.clone()).await;
    assert!(output.is_error && output.text.contains("has not been read yet"), "{}", output.text);
    folder.call(&Read, json!({"path": "a"})).await;
    fs::write(folder.path("a"), "changed").unwrap();
    let output = folder.call(&Write, write.clone()).await;
    assert!(output.is_error && output.text.contains("has changed"), "{}", output.text);
    assert_eq!(fs::read_to_string(folder.path("a")).unwrap(), "changed");
    folder.call(&Read, json!({"path": "a"})).await;
    assert!(!folder.call(&Write, write).await.is_error);
    assert_eq!(fs::read_to_string(folder.path("a")).unwrap(), "new");
}

#[tokio::test]
async fn folders_and_what_is_outside_are_not_written() {
    let folder = Folder::new();
    for (path, text) in [(".", "is a folder"), ("../x", "lies outside"), ("/nowhere/x", "lies outside")] {
        let output = folder.call(&Write, json!({"path": path, "content": "x"})).await;
        assert!(output.is_error && output.text.contains(text), "{}", output.text);
    }
    let output = folder.call(&Write, json!({"path": "x"})).await;
    assert_eq!(output.text, "Argument `content`: is missing.");
    assert_eq!(fs::read_dir(folder.path(".")).unwrap().count(), 0);
}

#[tokio::test]
async fn files_links_and_empty_folders_are_removed() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("full/empty")).unwrap();
    fs::write(folder.path("file"), "x").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc", folder.path("link")).unwrap();
        assert_eq!(folder.call(&Delete, json!({"path": "link"})).await.text, "Removed link.");
    }
    let output = folder.call(&Delete, json!({"path": "full"})).await;
    assert!(output.is_error && output.text.contains("Only an empty folder is removed"), "{}", output.text);
    for path in ["full/empty", "full", "file"] {
        assert_eq!(folder.call(&Delete, json!({"path": path})).await.text, format!("Removed {path}."));
        assert!(!folder.path(path).exists());
    }
    let table = [
        ("file", "There is nothing at file."),
        ("../work", "the agent's own folders are not removed"),
        ("../..", "lies outside"),
        ("/etc/hostname", "lies outside"),
    ];
    for (path, text) in table {
        let output = folder.call(&Delete, json!({"path": path})).await;
        assert!(
            output.is_error && (output.text.contains(text) || output.text.contains("names no entry")),
            "{}",
            output.text
        );
    }
}

#[tokio::test]
async fn nothing_is_written_once_the_call_is_cancelled() {
    let folder = Folder::new();
    folder.context.cancel.cancel();
    let output = folder.call(&Write, json!({"path": "a", "content": "x"})).await;
    assert!(output.is_error && !folder.path("a").exists());
}
