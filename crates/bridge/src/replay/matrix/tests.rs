//! Behaviour of the matrix: one call in, one card out.

#![expect(clippy::needless_pass_by_value, reason = "values are built where they are passed")]

mod facts;

use std::io;
use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::replay::activity::ToolStatus;
use crate::replay::preview::PreviewFiles;

/// One file, and nothing else.
#[derive(Debug)]
struct One(&'static str, &'static [u8]);

impl PreviewFiles for One {
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<(Vec<u8>, u64)> {
        if path != Path::new(self.0) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok((self.1.get(..limit.min(self.1.len())).unwrap_or_default().to_vec(), self.1.len() as u64))
    }
}

fn made(kind: &str, args: Value, result: Value) -> Made {
    made_with(kind, args, result, &One("/w/a.txt", b"local"), TaskPresentation::default(), &Profile::PI)
}

fn made_with(
    kind: &str,
    args: Value,
    result: Value,
    files: &dyn PreviewFiles,
    tasks: TaskPresentation,
    profile: &Profile,
) -> Made {
    let activity = ToolActivity {
        id: "c".to_owned(),
        kind: kind.to_owned(),
        args: RawJson::of(&args),
        result: (!result.is_null()).then(|| RawJson::of(&result)),
        status: ToolStatus::Completed,
    };
    let scrubber = Scrubber::new();
    let matrix = Matrix {
        profile,
        scrubber: &scrubber,
        cwd: Path::new("/w"),
        files,
        task_presentation: tasks,
        limit: TRANSCRIPT,
    };
    matrix.card(&activity, None)
}

fn card(kind: &str, args: Value, result: Value) -> Card {
    made(kind, args, result).card
}

fn ok(value: Value) -> Value {
    json!({"status": "success", "value": value})
}

fn details(card: &Card) -> Value {
    serde_json::to_value(&card.details).unwrap()
}

#[test]
fn a_read_shows_twenty_lines_and_where_to_read_on() {
    let content = (1..=100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n") + "\n";
    let made =
        made("read", json!({"path": "/w/src/a.rs"}), ok(json!({"content": content, "totalLines": 100})));
    assert_eq!((made.card.tool.as_str(), made.card.args.tree()), ("read", json!({"path": "src/a.rs"})));
    let text = made.card.text();
    assert_eq!(text.lines().count(), 21);
    assert_eq!(text.lines().last(), Some("[80 more lines, offset=21]"));
    assert_eq!(made.brief.unwrap().lines().last(), Some("[88 more lines, offset=13]"));
    let part = json!({"success": {"content": "x\ny", "totalLines": 50, "readRange": {"startLine": 10, "endLine": 11}}});
    assert_eq!(card("readToolCall", json!({"path": "a"}), part).text(), "x\ny\n[39 more lines, offset=12]");
    assert_eq!(card("read_file", json!({"path": "a"}), ok(json!({"content": ""}))).text(), "");
}

#[test]
fn a_read_without_content_shows_a_labelled_local_preview() {
    let text = card("read", json!({"path": "/w/a.txt"}), ok(json!({}))).text();
    assert_eq!(text, "[local preview: the agent reported no content]\nlocal");
    let lines = One("/w/a.txt", b"one\ntwo\nthree\n");
    let part = |offset: usize| {
        let args = json!({"path": "/w/a.txt", "offset": offset});
        let presentation = TaskPresentation::default();
        made_with("read", args, ok(json!({})), &lines, presentation, &Profile::PI).card.text()
    };
    assert!(part(2).ends_with("content]\ntwo\nthree") && part(0).ends_with("content]\none\ntwo\nthree"));
    let args = json!({"path": "/w/a.txt", "offset": 2, "limit": 1});
    let presentation = TaskPresentation::default();
    let one = made_with("read", args, ok(json!({})), &lines, presentation, &Profile::PI).card.text();
    assert!(one.ends_with("content]\ntwo"), "{one}");
    assert_eq!(part(9), "[the agent reported no content]", "the file has no such line");
    let text = card("read", json!({"path": "/w/.env"}), ok(json!({}))).text();
    assert_eq!(text, "[the agent reported no content]");
}

#[test]
fn a_command_failed_by_status_by_exit_code_or_by_its_timeout() {
    let shell = |timeout: Value, value: Value| {
        card("shell", json!({"command": "make", "timeout": timeout}), ok(value))
    };
    let fine =
        shell(json!(30000), json!({"stdout": "hi\n", "stderr": "", "exitCode": 0, "executionTime": 29999}));
    assert_eq!(
        (fine.tool.as_str(), fine.is_error, fine.text().as_str(), fine.summary.as_str()),
        ("bash", false, "hi", "make")
    );
    assert_eq!(fine.args.tree(), json!({"command": "make", "timeout": 30}));
    let code = shell(Value::Null, json!({"stdout": "a", "stderr": "b", "exitCode": 2}));
    assert_eq!(
        (code.is_error, code.text().as_str(), code.summary.as_str()),
        (true, "a\nb\n\nexit code 2", "")
    );
    let late = shell(json!(1500), json!({"stdout": "", "exitCode": 0, "executionTime": 1500}));
    assert_eq!(
        (late.is_error, late.text().as_str(), late.args.tree()),
        (true, "timed out after 1.5 s", json!({"command": "make", "timeout": 1.5}))
    );
    let status =
        card("bash", json!({"command": "x"}), json!({"status": "error", "error": {"message": "denied"}}));
    assert_eq!((status.is_error, status.text().as_str()), (true, "denied"));
    let failure = card(
        "shellToolCall",
        json!({"command": "x"}),
        json!({"failure": {"stdout": "", "stderr": "boom", "exitCode": 1}}),
    );
    assert_eq!((failure.is_error, failure.text().as_str()), (true, "boom\n\nexit code 1"));
    assert_eq!(shell(Value::Null, json!({"exitCode": 0})).text(), "(no output)");
}

#[test]
fn searches_show_what_they_found_and_that_they_found_nothing() {
    let found = json!({"success": {"workspaceResults": {"/w": {"content": {"matches": [
        {"file": "/w/a.rs", "matches": [
            {"lineNumber": 3, "content": "  let x = 1;", "isContextLine": false},
            {"lineNumber": 4, "content": "context", "isContextLine": true}]}]}}}}});
    let grep = card("grepToolCall", json!({"pattern": "x", "path": "/w", "caseInsensitive": true}), found);
    assert_eq!(
        (grep.tool.as_str(), grep.text().as_str(), grep.summary.as_str()),
        ("grep", "a.rs:3: let x = 1;", "x: 1 match")
    );
    assert_eq!(grep.args.tree(), json!({"pattern": "x", "path": ".", "ignoreCase": true}));
    let none = card("search", json!({"pattern": "x"}), ok(json!({"workspaceResults": {}})));
    assert_eq!((none.text().as_str(), none.summary.as_str()), ("no matches", "x: no matches"));
    let files =
        ok(json!({"files": (0..300).map(|n| format!("/w/{n}")).collect::<Vec<_>>(), "totalFiles": 1000}));
    let glob = card("file_search", json!({"globPattern": "*", "targetDirectory": "/w/src"}), files);
    assert_eq!((glob.tool.as_str(), glob.summary.as_str()), ("find", "*: 1000 files"));
    assert_eq!(glob.text().lines().last(), Some("[800 more items not shown]"));
    assert_eq!(glob.args.tree(), json!({"pattern": "*", "path": "src"}));
    let tree = ok(json!({"directoryTreeRoot": {"absPath": "/w", "childrenDirs": [
        {"absPath": "/w/src", "childrenDirs": [], "childrenFiles": [{"name": "a.rs"}]}], "childrenFiles": [{"name": "b"}]}}));
    assert_eq!(card("list_dir", json!({"path": "/w"}), tree).text(), "src/\n  a.rs\nb");
}

#[test]
fn lesson_34_a_card_is_native_only_if_it_is_truthfully_one() {
    let path_only =
        card("edit", json!({"path": "/w/a"}), ok(json!({"linesAdded": 1, "diffString": "-a\n+b"})));
    assert_eq!(
        (path_only.tool.as_str(), path_only.title.as_str(), path_only.summary.as_str()),
        ("cursor", "Cursor edit", "a (+1 -1)")
    );
    assert_eq!(
        path_only.args.tree(),
        json!({"activityTitle": "Cursor edit", "activitySummary": "a (+1 -1)"})
    );
    assert_eq!(details(&path_only)["variant"], "activity");
    assert_eq!(details(&path_only)["diff"], "-a\n+b");
    let full =
        card("str_replace", json!({"path": "/w/a", "old_string": "x", "new_string": ""}), ok(json!({})));
    assert_eq!(
        (full.tool.as_str(), full.args.tree()),
        ("edit", json!({"path": "a", "oldText": "x", "newText": ""}))
    );
    assert_eq!(
        details(&full),
        json!({"variant": "nativeEdit", "path": "a", "diff": "-x", "linesAdded": 0, "linesRemoved": 1})
    );
    let whole = ok(json!({"beforeFullFileContent": "a\nb", "afterFullFileContent": "a\nc"}));
    assert_eq!(card("editToolCall", json!({"path": "/w/a"}), whole).tool, "edit");
    for args in [
        json!({"path": "/w/a", "old_string": "", "new_string": "y"}),
        json!({"path": "/w/a", "old_string": "x"}),
        json!({"old_string": "x", "new_string": "y"}),
        json!({"path": "/w/a", "old_string": "x".repeat(30_000), "new_string": "y"}),
    ] {
        assert_eq!(card("edit", args.clone(), ok(json!({}))).tool, "cursor", "{args}");
    }
    let notebook = json!({"path": "/w/a.ipynb", "old_string": "x", "new_string": "y"});
    for name in ["edit_notebook", "EditNotebook", "notebookEdit"] {
        assert_eq!(card(name, notebook.clone(), ok(json!({}))).tool, "cursor");
    }
    assert_eq!(card("edit", notebook, ok(json!({}))).tool, "cursor");
    let cell = json!({"target_notebook": "/w/a", "cell_idx": 1, "path": "/w/a", "old_string": "x", "new_string": "y"});
    assert_eq!(card("edit_file", cell, ok(json!({}))).tool, "cursor");
    let write = card("write", json!({"path": "/w/a", "contents": "x\ny"}), ok(json!({})));
    assert_eq!((write.tool.as_str(), write.args.tree()), ("write", json!({"path": "a", "content": "x\ny"})));
    assert_eq!(details(&write), json!({"variant": "nativeWrite", "path": "a", "lines": 2, "coloured": true}));
    let unknown = card("write_file", json!({"path": "/w/a"}), ok(json!({})));
    assert_eq!((unknown.tool.as_str(), unknown.title.as_str()), ("cursor", "Cursor write"));
}

#[test]
fn a_call_without_what_the_host_s_tool_requires_is_neutral() {
    for (kind, title) in [("read", "read"), ("shell", "shell"), ("grep", "grep"), ("glob", "glob")] {
        let odd =
            card(kind, json!({"path": ["a"], "command": "", "pattern": 7}), ok(json!({"content": "x"})));
        assert_eq!((odd.tool.as_str(), odd.title.as_str()), ("cursor", &*format!("Cursor {title}")));
        assert!(!odd.is_error && odd.text() == "x", "{odd:?}");
    }
    let failed = card("bash", json!({}), ok(json!({"stdout": "x", "exitCode": 1})));
    assert_eq!(
        (failed.tool.as_str(), failed.is_error, failed.text().as_str()),
        ("cursor", true, "x\n\nexit code 1")
    );
}

#[test]
fn a_result_that_is_a_list_is_one() {
    for result in [json!(["/w/a", "/w/b"]), ok(json!(["/w/a", "/w/b"])), json!({"success": ["/w/a", "/w/b"]})]
    {
        assert_eq!(card("glob", json!({"pattern": "*"}), result.clone()).text(), "a\nb");
        assert_eq!(card("ls", json!({"path": "/w"}), result.clone()).text(), "a\nb");
        let grep = card("grep", json!({"pattern": "x"}), result);
        assert_eq!((grep.text().as_str(), grep.summary.as_str()), ("a\nb", "x: 2 files"));
    }
    let lines = ok(json!([{"file": "/w/a", "line": 3, "text": "x = 1"}]));
    assert_eq!(card("grep", json!({"pattern": "x"}), lines).text(), "a:3: x = 1");
}

#[test]
fn an_expanded_edit_shows_forty_lines_of_its_difference() {
    let text = |sign: &str| (0..100).map(|n| format!("{sign}{n}")).collect::<Vec<_>>().join("\n");
    let edit = card("edit", json!({"path": "a", "oldText": text("a"), "newText": text("b")}), ok(json!({})));
    let diff = details(&edit)["diff"].as_str().unwrap().to_owned();
    assert_eq!(diff.lines().count(), 40);
    assert!(diff.ends_with(" not shown]") && diff.contains("[161 more lines"), "{diff}");
}

#[test]
fn neutral_cards_have_the_titles_of_the_profile() {
    let title = |profile: &Profile, kind: &str, args: Value| {
        let card =
            made_with(kind, args, ok(json!({})), &One("", b""), TaskPresentation::default(), profile).card;
        assert_eq!(card.tool, profile.display_tool);
        (card.title, card.summary)
    };
    for (kind, args, expected, summary) in [
        ("delete", json!({"path": "/w/x"}), "delete", "x"),
        ("readLints", json!({}), "diagnostics", "0 diagnostics"),
        (
            "updateTodos",
            json!({"todos": [{"content": "a", "status": "TODO_STATUS_COMPLETED"}]}),
            "todos",
            "1 item",
        ),
        ("createPlan", json!({"name": "the plan"}), "plan", "the plan"),
        ("generateImage", json!({"description": "a cat"}), "image", "a cat"),
        ("mcp", json!({"providerIdentifier": "gh", "toolName": "list_issues"}), "MCP", "list_issues (gh)"),
        ("mcp", json!({"toolName": "brave_web_search", "args": {"query": "rust"}}), "web search", "rust"),
        (
            "mcp",
            json!({"toolName": "fetch", "args": {"url": "https://x.example/"}}),
            "web fetch",
            "https://x.example/",
        ),
        ("semSearch", json!({"query": "where"}), "code search", "where"),
        ("recordScreen", json!({"mode": "start"}), "screen recording", "start"),
        ("webSearch", json!({"searchTerm": "rust"}), "web search", "rust"),
        ("future_thing", json!({}), "future_thing", ""),
    ] {
        for profile in Profile::ALL {
            let (title, said) = title(&profile, kind, args.clone());
            assert_eq!(
                (title, said.as_str()),
                (format!("{} {expected}", profile.card_title), summary),
                "{kind}"
            );
        }
    }
}

#[test]
fn tasks_are_titled_as_the_settings_say() {
    let args = json!({"description": "look", "subagentType": "explore", "model": "fast", "agentId": "0123456789abcdef"});
    let task = |presentation| {
        made_with("task", args.clone(), ok(json!({})), &One("", b""), presentation, &Profile::PI).card
    };
    let shown = |card: Card| (card.title, card.summary);
    assert_eq!(shown(task(TaskPresentation::Task)), ("Cursor task".into(), "look".into()));
    assert_eq!(shown(task(TaskPresentation::Subagent)), ("Cursor subagent".into(), "look".into()));
    assert_eq!(
        shown(task(TaskPresentation::SubagentMeta)),
        ("Cursor subagent".into(), "look · explore · fast · 01234567".into())
    );
}

#[test]
fn lesson_36_names_that_every_object_has_are_unknown_tools() {
    for name in ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"] {
        let card =
            card(name, json!({"a": 1}), ok(json!({"token": "abc12345", "n": 9_007_199_254_740_993_u64})));
        assert_eq!(card.title, format!("Cursor {name}"));
        assert_eq!(details(&card)["variant"], "genericFallback");
        assert_eq!(card.text(), r#"{"token":"[redacted]","n":9007199254740993}"#);
    }
    let long = card(&"x".repeat(500), json!({}), Value::Null);
    assert!(long.title.chars().count() <= 80 + 7);
    assert_eq!(card("", json!({}), Value::Null).title, "Cursor tool");
}

#[test]
fn after_an_error_the_summary_is_empty() {
    for kind in
        ["read", "shell", "grep", "glob", "ls", "edit", "write", "delete", "task", "mcp", "webSearch", "odd"]
    {
        let args = json!({"path": "/w/a", "command": "c", "pattern": "p", "old_string": "x", "new_string": "y", "content": "z", "toolName": "t"});
        for error in [
            json!({"status": "error", "error": "it broke: token=abc12345"}),
            json!({"error": {"error": "it broke: token=abc12345"}}),
            json!({"rejected": {"reason": "it broke: token=abc12345"}}),
            json!({"success": {"isError": true, "content": [{"text": {"text": "it broke: token=abc12345"}}]}}),
        ] {
            let card = card(kind, args.clone(), error);
            assert!(card.is_error && card.summary.is_empty(), "{kind}");
            assert_eq!(card.text(), "it broke: token=[redacted]", "{kind}");
            assert!(!card.args.text().contains("it broke"));
        }
    }
}

#[test]
fn a_made_image_is_inline_if_it_can_be_read() {
    static PNG: &[u8] = b"\x89PNG\r\n\x1a\n...";
    let made = |path: &str| {
        let result = ok(json!({"filePath": path}));
        made_with(
            "generateImage",
            json!({"description": "d"}),
            result,
            &One("/w/a.png", PNG),
            TaskPresentation::default(),
            &Profile::PI,
        )
        .card
    };
    let card = made("/w/a.png");
    assert!(matches!(
        card.content.as_slice(),
        [CardBlock::Text { .. }, CardBlock::Image { mime_type: "image/png", .. }]
    ));
    assert_eq!(details(&card)["variant"], "generateImage");
    assert_eq!(card.tool_result("i")["content"][1]["mimeType"], "image/png");
    assert_eq!(made("/other/a.png").content.len(), 1);
}

#[test]
fn a_web_search_says_nothing_but_its_summary_while_it_is_collapsed() {
    let web = card("webSearch", json!({"query": "rust"}), ok(json!({"results": "a\nb"})));
    assert_eq!(
        (details(&web)["collapsedText"].clone(), details(&web)["expandedText"].clone()),
        (Value::Null, json!("a\nb"))
    );
    let long = (0..100).map(|n| format!("{n} {}", "x".repeat(300))).collect::<Vec<_>>().join("\n");
    let mcp = card(
        "mcp",
        json!({"toolName": "t"}),
        ok(json!({"content": [{"type": "text", "text": long}, {"type": "image", "data": "x"}]})),
    );
    let collapsed = details(&mcp)["collapsedText"].as_str().unwrap().to_owned();
    assert!(collapsed.lines().count() == 8 && collapsed.lines().all(|line| line.chars().count() <= 240));
    assert!(collapsed.lines().last().unwrap().contains("94 more lines"), "{collapsed}");
}
