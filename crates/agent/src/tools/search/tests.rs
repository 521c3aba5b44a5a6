//! Searches in real folders.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::tools::{Tool, ToolSetup};

struct Folder {
    folder: tempfile::TempDir,
    context: ToolContext,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, |session| session)
    }

    fn with(files: &[(&str, &str)], change: impl FnOnce(ToolSession) -> ToolSession) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        // Ignore files count within a repository.
        std::fs::create_dir_all(work.join(".git")).unwrap();
        for (name, text) in files {
            let path = work.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let session = change(ToolSession::new(ToolSetup::new(work, folder.path().join("temp")), None));
        Self { context: ToolContext::new(Arc::new(session), "c", CancellationToken::new()), folder }
    }

    async fn grep(&self, args: Value) -> ToolOutput {
        Grep.run(&self.context, Arguments::of(args).unwrap()).await
    }

    async fn glob(&self, args: Value) -> ToolOutput {
        Glob.run(&self.context, Arguments::of(args).unwrap()).await
    }
}

const FILES: &[(&str, &str)] = &[
    ("a.rs", "fn one() {}\nfn two() {}\n// three\n"),
    ("src/b.rs", "let x = one();\r\nlet y = 2;\r\n"),
    ("src/c.txt", "ONE\n"),
    ("ignored/d.rs", "one\n"),
    (".gitignore", "ignored/\n"),
    (".hidden/e.rs", "one\n"),
];

#[tokio::test]
async fn lines_files_and_counts() {
    let folder = Folder::new(FILES);
    let output = folder.grep(json!({"pattern": "one"})).await;
    assert_eq!(output.text, "a.rs:1:fn one() {}\nsrc/b.rs:1:let x = one();");
    let output = folder.grep(json!({"pattern": "one|two", "outputMode": "count"})).await;
    assert_eq!(output.text, "a.rs:2\nsrc/b.rs:1");
    let output = folder.grep(json!({"pattern": "one", "output_mode": "files", "-i": true})).await;
    assert_eq!(output.text, "a.rs\nsrc/b.rs\nsrc/c.txt");
    let output = folder.grep(json!({"pattern": "nowhere"})).await;
    assert_eq!((output.text.as_str(), output.is_error), ("Nothing was found.", false));
}

#[tokio::test]
async fn files_are_chosen_by_folder_and_glob_and_rules() {
    let folder = Folder::new(FILES);
    let files = async |args: Value| {
        let mut all = json!({"pattern": "(?i)one", "outputMode": "files"});
        all.as_object_mut().unwrap().extend(args.as_object().unwrap().clone());
        folder.grep(all).await.text
    };
    assert_eq!(files(json!({"path": "src"})).await, "src/b.rs\nsrc/c.txt");
    assert_eq!(files(json!({"path": "src/c.txt"})).await, "src/c.txt");
    assert_eq!(files(json!({"glob": "*.rs"})).await, "a.rs\nsrc/b.rs");
    assert_eq!(files(json!({"glob": "src/*.{rs,txt}"})).await, "src/b.rs\nsrc/c.txt");
    assert_eq!(files(json!({"glob": ["!*.rs"]})).await, "src/c.txt");
    assert_eq!(files(json!({"noIgnore": true, "glob": "*.rs"})).await, "a.rs\nignored/d.rs\nsrc/b.rs");
    assert_eq!(files(json!({"hidden": "true", "glob": "*.rs"})).await, ".hidden/e.rs\na.rs\nsrc/b.rs");
    // A file that is named is searched, whatever rules say.
    assert_eq!(files(json!({"path": "ignored/d.rs"})).await, "ignored/d.rs");
}

#[tokio::test]
async fn context_multiline_and_literal() {
    let folder = Folder::new(&[("f", "1\n2\nx(\n4\n5\n6\n7\nx(\n9\n")]);
    let output = folder.grep(json!({"pattern": "x(", "literal": true, "context": 1})).await;
    assert_eq!(output.text, "f-2-2\nf:3:x(\nf-4-4\n--\nf-7-7\nf:8:x(\nf-9-9");
    let output = folder.grep(json!({"pattern": "x\\(.4", "multiline": true})).await;
    assert_eq!(output.text, "f:3:x(\nf:4:4");
    let output = folder.grep(json!({"pattern": "x("})).await;
    assert!(output.is_error && output.text.contains("with literal=true"), "{}", output.text);
}

#[tokio::test]
async fn limits_are_said_and_long_lines_cut() {
    let many = "hit\n".repeat(500);
    let long = format!("hit {}\n", "ü".repeat(5000));
    let folder = Folder::new(&[("many", &many), ("long", &long)]);
    let output = folder.grep(json!({"pattern": "hit"})).await;
    assert!(output.text.ends_with("[200 of 501 lines with finds are shown, in 2 files]"), "{}", output.text);
    assert!(output.text.contains("[... cut, the line has 10005 bytes]"), "{}", output.text);
    assert_eq!(output.details.unwrap().tree().get("finds").unwrap(), 501);
    let output = folder.grep(json!({"pattern": "hit", "limit": 2, "path": "many"})).await;
    assert_eq!(output.text, "many:1:hit\nmany:2:hit\n[2 of 500 lines with finds are shown, in 1 files]");
    let output = folder.grep(json!({"pattern": "hit", "limit": 1, "outputMode": "files"})).await;
    assert_eq!(output.text, "long\n[1 of 2 files with finds are shown, in 2 files]");
    let output = folder.grep(json!({"pattern": "hit", "limit": 500, "path": "many"})).await;
    assert!(!output.text.contains("are shown"));
}

#[tokio::test]
async fn binary_files_are_left_out_and_bytes_that_are_no_text_are_shown_as_far_as_they_are() {
    let folder = Folder::new(&[("bin", "hit\0hit\n")]);
    std::fs::write(folder.folder.path().join("work/latin"), b"caf\xe9 hit\n").unwrap();
    let output = folder.grep(json!({"pattern": "hit"})).await;
    assert_eq!(output.text, "latin:1:caf\u{fffd} hit");
}

#[tokio::test]
async fn what_is_denied_is_passed_over_and_said() {
    let folder = Folder::with(&[(".env", "key\n"), ("a", "key\n")], |session| {
        session.with_sight(|path| !path.ends_with(".env"))
    });
    let output = folder.grep(json!({"pattern": "key", "hidden": true})).await;
    assert_eq!(output.text, "a:1:key\n[1 files were passed over, since reading them is denied]");
    let output = folder.glob(json!({"pattern": "*", "hidden": true})).await;
    assert_eq!(output.text, "a\n[1 files were passed over, since reading them is denied]");
}

#[cfg(unix)]
#[tokio::test]
async fn links_lead_no_search_outside() {
    let folder = Folder::new(&[("a", "hit\n")]);
    let outside = folder.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "hit\n").unwrap();
    std::os::unix::fs::symlink(&outside, folder.folder.path().join("work/link")).unwrap();
    std::os::unix::fs::symlink(outside.join("secret"), folder.folder.path().join("work/file")).unwrap();
    assert_eq!(folder.grep(json!({"pattern": "hit"})).await.text, "a:1:hit");
    let output = folder.grep(json!({"pattern": "hit", "path": "link"})).await;
    assert!(output.is_error && output.text.contains("lies outside"), "{}", output.text);
    let output = folder.glob(json!({"pattern": "../outside/*"})).await;
    assert!(output.is_error && output.text.contains("lies outside"), "{}", output.text);
}

#[tokio::test]
async fn files_are_found_newest_first() {
    let folder = Folder::new(FILES);
    let touch = |name: &str, seconds: u64| {
        let file =
            std::fs::File::options().write(true).open(folder.folder.path().join("work").join(name)).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    };
    touch("a.rs", 1000);
    touch("src/b.rs", 3000);
    touch("src/c.txt", 2000);
    let glob = async |args: Value| folder.glob(args).await.text;
    assert_eq!(glob(json!({"pattern": "*.rs"})).await, "src/b.rs\na.rs");
    assert_eq!(glob(json!({"pattern": "**/*"})).await, "src/b.rs\nsrc/c.txt\na.rs");
    assert_eq!(glob(json!({"pattern": "src/*"})).await, "src/b.rs\nsrc/c.txt");
    assert_eq!(glob(json!({"pattern": "./*.rs", "path": "src"})).await, "src/b.rs");
    assert!(glob(json!({"pattern": "/*.rs"})).await.contains("lies outside"));
    let absolute = folder.folder.path().join("work/src/*.txt").display().to_string();
    assert_eq!(glob(json!({"pattern": absolute})).await, "src/c.txt");
    assert_eq!(
        glob(json!({"pattern": "**/*", "limit": 1})).await,
        "src/b.rs\n[the 1 files changed last of 3 are shown]"
    );
    assert_eq!(glob(json!({"pattern": "nope.*"})).await, "No file fits nope.*.");
    assert_eq!(glob(json!({"pattern": "d.rs", "noIgnore": true})).await, "ignored/d.rs");
    let output = folder.glob(json!({"pattern": "{a"})).await;
    assert!(output.is_error && output.text.contains("is no pattern"), "{}", output.text);
    let output = folder.glob(json!({"pattern": "*", "path": "none"})).await;
    assert!(output.is_error && output.text.starts_with("There is nothing at"), "{}", output.text);
}

#[test]
fn paths_are_ordered_as_their_folders_are() {
    let mut paths: Vec<PathBuf> =
        ["/w/src-x/a", "/w/src/b", "/w/src.rs", "/w/src", "/w/b", "/w/src/a/z", "/w/srcs", "/w/src/a.rs"]
            .map(PathBuf::from)
            .to_vec();
    let mut others = paths.clone();
    paths.sort_by(|one, other| by_path(one, other));
    others.sort();
    assert_eq!(paths, others);
}

#[tokio::test]
async fn a_pattern_of_a_folder_counts_for_all_below_it_and_the_nearest_one_wins() {
    let folder = Folder::new(&[
        ("deep/a/one.rs", "hit\n"),
        ("deep/a/b/two.rs", "hit\n"),
        ("deep/a/b/keep.md", "hit\n"),
        ("deep/c/three.rs", "hit\n"),
        ("four.rs", "hit\n"),
    ]);
    let files = async |globs: Value| {
        folder.grep(json!({"pattern": "hit", "outputMode": "files", "glob": globs})).await.text
    };
    assert_eq!(files(json!(["deep/a/"])).await, "deep/a/b/keep.md\ndeep/a/b/two.rs\ndeep/a/one.rs");
    assert_eq!(files(json!(["deep/", "!b/"])).await, "deep/a/one.rs\ndeep/c/three.rs");
    // What is excluded as a whole is not looked into.
    assert_eq!(files(json!(["deep/", "!b/", "keep.md"])).await, "deep/a/one.rs\ndeep/c/three.rs");
    assert_eq!(files(json!(["!deep/"])).await, "four.rs");
    assert_eq!(files(json!(["!deep"])).await, "four.rs");
    assert_eq!(files(json!(["*.rs", "!a"])).await, "deep/c/three.rs\nfour.rs");
}

/// The answer is the same whichever thread found what.
#[tokio::test]
async fn of_very_many_files_the_first_by_path_are_shown() {
    let folder = Folder::new(&[]);
    let work = folder.folder.path().join("work");
    for dir in 0..21 {
        let dir = work.join(format!("d{dir:02}"));
        std::fs::create_dir(&dir).unwrap();
        for file in 0..100 {
            std::fs::write(dir.join(format!("f{file:02}.txt")), "").unwrap();
        }
    }
    let output = folder.glob(json!({"pattern": "*.txt", "limit": 101})).await;
    let lines: Vec<&str> = output.text.lines().collect();
    assert_eq!(lines.len(), 102, "{}", output.text);
    assert_eq!((lines[0], lines[99], lines[100]), ("d00/f00.txt", "d00/f99.txt", "d01/f00.txt"));
    assert!(lines[101].starts_with("[the first 101 of 2100 files by path are shown"), "{}", lines[101]);
    assert_eq!(output.details.unwrap().tree().get("files").unwrap(), 2100);
    // The newest are still found where somebody asks for fewer.
    let output = folder.glob(json!({"pattern": "*.txt", "path": "d20", "limit": 1})).await;
    assert!(output.text.ends_with("[the 1 files changed last of 100 are shown]"), "{}", output.text);
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let folder = Folder::new(FILES);
    folder.context.cancel.cancel();
    assert!(folder.grep(json!({"pattern": "one"})).await.is_error);
    assert!(folder.glob(json!({"pattern": "*"})).await.is_error);
}
