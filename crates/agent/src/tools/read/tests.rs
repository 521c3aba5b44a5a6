//! Files of all kinds, as a model sees them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::*;
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

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.folder.path().join("work").join(name), bytes).unwrap();
    }

    async fn read(&self, args: Value) -> ToolOutput {
        let context = ToolContext::new(Arc::clone(&self.session), "c", CancellationToken::new());
        Read.run(&context, Arguments::of(args).unwrap()).await
    }
}

#[tokio::test]
async fn lines_have_numbers_and_the_rest_is_said() {
    let folder = Folder::new();
    folder.write("a", "one\ntwo\nthree\n");
    assert_eq!(folder.read(json!({"path": "a"})).await.text, "     1\tone\n     2\ttwo\n     3\tthree");
    let output = folder.read(json!({"path": "a", "offset": 2, "limit": "1"})).await;
    assert_eq!(output.text, "     2\ttwo\n[lines 2 to 2 of 3: go on with offset=3]");
    assert_eq!(output.details.unwrap().tree().get("lines").unwrap(), 3);
    let output = folder.read(json!({"path": "a", "offset": 4})).await;
    assert_eq!((output.text.as_str(), output.is_error), ("Argument `offset`: a has 3 lines only.", true));
    folder.write("empty", "");
    assert_eq!(folder.read(json!({"path": "empty"})).await.text, "[empty is empty]");
}

#[tokio::test]
async fn much_is_cut_and_can_be_read_on_to_the_end() {
    let folder = Folder::new();
    let lines: Vec<String> = (1..=5000).map(|number| format!("line {number}")).collect();
    folder.write("many", lines.join("\n"));
    let output = folder.read(json!({"path": "many"})).await;
    assert!(output.text.ends_with("[lines 1 to 2000 of 5000: go on with offset=2001]"), "{}", output.text);
    folder.write("wide", vec!["x".repeat(1500); 100].join("\n"));
    let output = folder.read(json!({"path": "wide"})).await;
    assert!(output.text.chars().count() < 40_000);
    assert!(output.text.contains("go on with offset=2"), "{}", output.text.len());
    folder.write("long", format!("{}END", "ü".repeat(70_000)));
    let output = folder.read(json!({"path": "long"})).await;
    assert!(output.text.contains("68003 more characters: offset=1 fromChar=2001"), "{}", output.text);
    let output = folder.read(json!({"path": "long", "offset": 1, "fromChar": 35_001})).await;
    assert!(output.text.contains("fromChar=70001"), "{}", output.text.get(70_000..).unwrap());
    let output = folder.read(json!({"path": "long", "fromChar": 70_001})).await;
    assert_eq!(output.text, "END\n[characters 70001 to 70003 of 70003 of line 1]");
}

#[tokio::test]
async fn line_ends_marks_and_encodings_are_said() {
    let folder = Folder::new();
    folder.write("crlf", "\u{feff}a\r\nb\r\n");
    let text = folder.read(json!({"path": "crlf"})).await.text;
    assert_eq!(
        text,
        "     1\ta\n     2\tb\n[it begins with a byte order mark; its lines end with CRLF; edit keeps that]"
    );
    folder.write("latin", b"caf\xe9\n");
    assert!(folder.read(json!({"path": "latin"})).await.text.contains("cannot be edited"));
}

#[tokio::test]
async fn pictures_are_pictures_and_other_bytes_are_said_to_be_none() {
    let folder = Folder::new();
    folder.write("p", b"\x89PNG\r\n\x1a\nrest");
    let output = folder.read(json!({"path": "p"})).await;
    assert_eq!(output.images.first().unwrap().mime_type, "image/png");
    assert_eq!(STANDARD.decode(&output.images.first().unwrap().data).unwrap(), b"\x89PNG\r\n\x1a\nrest");
    folder.write("big", [b"\xff\xd8\xff".to_vec(), vec![0; MOST_IMAGE]].concat());
    let output = folder.read(json!({"path": "big"})).await;
    assert!(output.is_error && output.text.contains("image/jpeg"), "{}", output.text);
    for (name, bytes) in [("pdf", b"%PDF-1.4\0".as_slice()), ("bin", b"a\0b")] {
        folder.write(name, bytes);
        let output = folder.read(json!({"path": name})).await;
        assert!(output.is_error && output.text.contains("cannot be shown"), "{}", output.text);
    }
}

#[tokio::test]
async fn nothing_outside_is_read_that_was_not_allowed() {
    let folder = Folder::new();
    std::fs::write(folder.folder.path().join("secret"), "s").unwrap();
    let args = || Arguments::of(json!({"path": "../secret"})).unwrap();
    let mut context = ToolContext::new(Arc::clone(&folder.session), "c", CancellationToken::new());
    let output = Read.run(&context, args()).await;
    assert!(output.is_error && output.text.contains("lies outside"), "{}", output.text);
    context.granted = Read.actions(&context, &args()).unwrap();
    assert_eq!(Read.run(&context, args()).await.text, "     1\ts");
    #[cfg(unix)]
    {
        // What was allowed is the file itself, and not what a link of that name leads to by now.
        let link = folder.folder.path().join("work/link");
        std::os::unix::fs::symlink("../secret", &link).unwrap();
        let args = || Arguments::of(json!({"path": "link"})).unwrap();
        context.granted = Read.actions(&context, &args()).unwrap();
        std::fs::write(folder.folder.path().join("other"), "o").unwrap();
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("../other", &link).unwrap();
        assert!(Read.run(&context, args()).await.is_error);
    }
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let folder = Folder::new();
    let table = [
        (json!({"path": "no"}), "There is no file no."),
        (json!({"path": "."}), ". is a folder: look into it with ls or glob."),
        (json!({}), "Argument `path`: is missing."),
        (json!({"path": "a", "limit": 0}), "Argument `limit`: must be at least 1."),
        (
            json!({"path": "a", "lines": 3}),
            "Argument `lines`: there is no such argument; the arguments are path, offset, limit, fromChar.",
        ),
    ];
    for (args, text) in table {
        let output = folder.read(args).await;
        assert_eq!((output.text.as_str(), output.is_error), (text, true));
    }
}
