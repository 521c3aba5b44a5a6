//! The replay through its public face: events of an agent in, cards that a wrapper of the host takes out.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use toolway_bridge::{
    AgentToolEvent, CallId, Card, Disk, Profile, RawJson, Records, Refusal, Replay, ReplayContext,
    ReplayOutput, Replayed, RunEnd, Scrubber, TaskPresentation, TraceKind, replayed_turn,
};

const TOOLS: [&str; 7] = ["read", "bash", "grep", "find", "ls", "edit", "write"];

fn context(profile: &Profile, cwd: &Path) -> ReplayContext {
    let names: Vec<String> = TOOLS.iter().copied().chain([profile.display_tool]).map(str::to_owned).collect();
    ReplayContext {
        profile: *profile,
        owner: "session".to_owned(),
        display: true,
        print_mode: false,
        wrappers: names.iter().cloned().collect(),
        context_tools: names.into_iter().collect(),
        live_run: true,
        cwd: cwd.to_owned(),
        task_presentation: TaskPresentation::SubagentMeta,
        started_ms: 1_700_000_000_000,
        turn: 1,
    }
}

fn replay(context: ReplayContext) -> Replay {
    Replay::new(context, Scrubber::new(), Arc::new(Disk))
}

/// A line of the command line tool.
fn event(subtype: &str, id: &str, tool: &str, call: &Value) -> Result<AgentToolEvent> {
    let line = json!({"type": "tool_call", "subtype": subtype, "call_id": id, "tool_call": {tool: call}});
    AgentToolEvent::read(&RawJson::of(&line)).context("an event")
}

/// Starts and completes a tool, and gives what is shown.
fn run(replay: &mut Replay, id: &str, tool: &str, args: &Value, result: &Value) -> Result<ReplayOutput> {
    let now = Instant::now();
    let started = replay.on(&event("started", id, tool, &json!({"args": args}))?, now);
    ensure!(started.is_empty(), "{started:?}");
    let completed = event("completed", id, tool, &json!({"args": args, "result": result}))?;
    let mut out = replay.on(&completed, now);
    ensure!(out.len() == 1, "{out:?}");
    out.pop().context("an output")
}

fn card(output: ReplayOutput) -> Result<(CallId, Card)> {
    match output {
        ReplayOutput::Card { id, card } => Ok((id, card)),
        other => anyhow::bail!("no card: {other:?}"),
    }
}

fn marker(folder: &Path) -> String {
    format!("touch {}", folder.join("executed").display())
}

#[test]
fn statement_44_a_recorded_command_shows_its_output_and_runs_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for profile in Profile::ALL {
        let mut replay = replay(context(&profile, folder.path()));
        let mut records = Records::new(&profile);
        let args = json!({"command": marker(folder.path())});
        let out = run(
            &mut replay,
            "a",
            "shellToolCall",
            &args,
            &json!({"success": {"stdout": "done", "exitCode": 0}}),
        )?;
        let (id, card) = card(out)?;
        assert_eq!(card.tool, "bash");
        records.keep("session", id.clone(), card.clone());
        assert_eq!(records.take("session", "bash", id.as_str()), Replayed::Result(card.clone()));
        // The same id again.
        assert_eq!(records.take("session", "bash", id.as_str()), Replayed::Refused(Refusal::NoRecord));
        // After a new session has begun.
        records.keep("session", id.clone(), card);
        records.forget("session");
        assert_eq!(records.take("session", "bash", id.as_str()), Replayed::Refused(Refusal::NoRecord));
        assert!(Refusal::NoRecord.to_string().contains("no recorded result"));
    }
    assert!(!folder.path().join("executed").exists());
    Ok(())
}

#[test]
fn lesson_04_a_replay_id_without_a_record_fails_under_every_name() {
    let mut records = Records::new(&Profile::PI);
    for tool in TOOLS.iter().chain(&["cursor", "agent", "any_other"]) {
        for profile in Profile::ALL {
            for id in ["1700000000000-1-tool-1", "", "x", "1-1-tool-1\n"] {
                let id = format!("{}{id}", profile.replay_prefix);
                assert_eq!(
                    records.take("session", tool, &id),
                    Replayed::Refused(Refusal::NoRecord),
                    "{tool} {id}"
                );
            }
        }
        // The display tool has nothing behind it that could run.
        let ordinary = match *tool {
            "cursor" => Replayed::Refused(Refusal::NoRecord),
            _ => Replayed::Ordinary,
        };
        let live = format!("{}{}-t1", Profile::PI.run_prefix, "0".repeat(32));
        for id in ["call_1", "toolu_01", "", "cursor-replay", "x-cursor-replay-1", &live] {
            assert_eq!(records.take("session", tool, id), ordinary, "{tool} {id}");
        }
    }
}

#[test]
fn a_record_is_given_to_its_session_and_tool_alone_and_an_error_as_an_error() -> Result<()> {
    let mut replay = replay(context(&Profile::PI, Path::new("/w")));
    let mut records = Records::new(&Profile::PI);
    let failed = json!({"failure": {"stderr": "boom: Authorization: Bearer abcdefgh123456", "exitCode": 1}});
    let (id, card) = card(run(&mut replay, "a", "shellToolCall", &json!({"command": "x"}), &failed)?)?;
    records.keep("session", id.clone(), card.clone());
    assert_eq!(records.take("other", "bash", id.as_str()), Replayed::Refused(Refusal::Foreign));
    assert_eq!(records.take("session", "read", id.as_str()), Replayed::Refused(Refusal::WrongTool));
    let message = "boom: Authorization: Bearer [redacted]\n\nexit code 1".to_owned();
    assert_eq!(records.take("session", "bash", id.as_str()), Replayed::Failed { message, card });
    Ok(())
}

#[test]
fn records_are_bounded() -> Result<()> {
    let mut replay = replay(context(&Profile::PI, Path::new("/w")));
    let mut records = Records::new(&Profile::PI);
    let out = run(
        &mut replay,
        "a",
        "shellToolCall",
        &json!({"command": "x"}),
        &json!({"success": {"stdout": "x"}}),
    )?;
    let (_, card) = card(out)?;
    for n in 0..10_000 {
        records.keep("session", CallId::new(&format!("cursor-replay-1-1-tool-{n}")), card.clone());
    }
    assert_eq!(records.len(), 2048);
    assert_eq!(
        records.take("session", "bash", "cursor-replay-1-1-tool-0"),
        Replayed::Refused(Refusal::NoRecord)
    );
    assert!(matches!(records.take("session", "bash", "cursor-replay-1-1-tool-9999"), Replayed::Result(_)));
    Ok(())
}

#[test]
fn statement_45_a_path_only_edit_is_neutral_and_a_replacement_an_edit_and_no_file_changes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("a.txt");
    fs::write(&file, "before")?;
    let mut replay = replay(context(&Profile::PI, folder.path()));
    let path = json!({"path": file});
    let (_, neutral) = card(run(
        &mut replay,
        "a",
        "editToolCall",
        &path,
        &json!({"success": {"diffString": "-before\n+after"}}),
    )?)?;
    assert_eq!((neutral.tool.as_str(), neutral.title.as_str()), ("cursor", "Cursor edit"));
    let whole = json!({"success": {"beforeFullFileContent": "before", "afterFullFileContent": "after"}});
    let (_, edit) = card(run(&mut replay, "b", "editToolCall", &path, &whole)?)?;
    assert_eq!(
        (edit.tool.as_str(), edit.args.tree()),
        ("edit", json!({"path": "a.txt", "oldText": "before", "newText": "after"}))
    );
    let args = json!({"path": file, "old_string": "before", "new_string": "other"});
    assert_eq!(
        card(run(&mut replay, "c", "strReplaceToolCall", &args, &json!({"success": {}}))?)?.1.tool,
        "edit"
    );
    let args = json!({"path": file, "contents": "gone"});
    assert_eq!(
        card(run(&mut replay, "d", "writeToolCall", &args, &json!({"success": {}}))?)?.1.tool,
        "write"
    );
    run(&mut replay, "e", "deleteToolCall", &path, &json!({"success": {}}))?;
    assert_eq!(fs::read_to_string(&file)?, "before");
    Ok(())
}

#[test]
fn statement_46_a_tool_absent_from_the_context_gives_one_line_and_no_call() -> Result<()> {
    let mut context = context(&Profile::PI, Path::new("/w"));
    context.context_tools.remove("grep");
    let mut replay = replay(context);
    let result = json!({"success": {"workspaceResults": {"/w": {"content": {"matches": [
        {"file": "/w/a", "matches": [{"lineNumber": 1, "content": "x"}, {"lineNumber": 2, "content": "x"}]}]}}}}});
    let out = run(&mut replay, "a", "grepToolCall", &json!({"pattern": "x"}), &result)?;
    let ReplayOutput::Trace(trace) = out else { anyhow::bail!("no trace: {out:?}") };
    assert_eq!((trace.kind, trace.text.as_str()), (TraceKind::Inactive, "Cursor grep: x: 2 matches\n"));
    Ok(())
}

#[test]
fn statement_47_a_quick_tool_is_not_announced_and_one_that_never_ends_is_told_only_after_a_failure()
-> Result<()> {
    let cwd = Path::new("/w");
    let now = Instant::now();
    let args = json!({"command": "deploy --token abcd1234"});
    let started = event("started", "a", "shellToolCall", &json!({"args": args}))?;
    let mut quick = replay(context(&Profile::PI, cwd));
    quick.on(&started, now);
    let over = event(
        "completed",
        "a",
        "shellToolCall",
        &json!({"args": args, "result": {"success": {"stdout": "x"}}}),
    )?;
    assert_eq!(quick.on(&over, now + Duration::from_millis(74)).len(), 1);
    assert_eq!((quick.next_due(), quick.poll(now + Duration::from_secs(9))), (None, Vec::new()));

    let open = |context: ReplayContext, end: RunEnd| {
        let mut replay = replay(context);
        replay.on(&started, now);
        replay.finish(end)
    };
    let failed = open(context(&Profile::PI, cwd), RunEnd::Failed);
    let [ReplayOutput::Card { card, .. }] = failed.as_slice() else { anyhow::bail!("{failed:?}") };
    assert_eq!((card.tool.as_str(), card.is_error), ("cursor", true));
    assert_eq!(card.text(), "Cursor shell did not complete: the agent's run failed");
    assert!(!card.args.text().contains("deploy"));
    let silent = open(context(&Profile::PI, cwd), RunEnd::Succeeded { text: false });
    assert!(matches!(silent.as_slice(), [ReplayOutput::Card { .. }]));
    let aborted = open(context(&Profile::PI, cwd), RunEnd::Aborted);
    assert!(
        matches!(aborted.as_slice(), [ReplayOutput::Trace(trace)] if trace.text == "Cursor shell did not complete: the run was aborted\n")
    );
    let mut hidden = context(&Profile::PI, cwd);
    hidden.display = false;
    assert!(matches!(open(hidden, RunEnd::Drained).as_slice(), [ReplayOutput::Trace(_)]));
    Ok(())
}

#[test]
fn lesson_30_after_a_success_an_open_call_is_for_the_diagnostics_alone() -> Result<()> {
    let mut replay = replay(context(&Profile::PI, Path::new("/w")));
    for (id, tool) in [("a", "shellToolCall"), ("b", "readToolCall"), ("c", "oddToolCall")] {
        replay.on(&event("started", id, tool, &json!({"args": {"path": "/secret/place"}}))?, Instant::now());
    }
    let out = replay.finish(RunEnd::Succeeded { text: true });
    let debug: Vec<&ReplayOutput> =
        out.iter().filter(|it| matches!(it, ReplayOutput::Debug(text) if !text.contains("secret"))).collect();
    assert_eq!((out.len(), debug.len()), (3, 3));
    Ok(())
}

#[test]
fn statement_48_a_long_output_is_cut_with_the_missing_amount_and_without_secrets() -> Result<()> {
    let mut replay = replay(context(&Profile::HOST, Path::new("/w")));
    let token = "3f2b8c1e-9d4a-4f6b-8a7c-0123456789ab";
    let endpoint = |profile: &Profile| format!("http://127.0.0.1:4312/{}/{token}/mcp", profile.path_segment);
    let mut output = format!(
        "{} {}\nAuthorization: Bearer abcdefgh123456\nAPI_KEY=k1l2m3n4\nCookie: sid=q1w2e3r4\n",
        endpoint(&Profile::PI),
        endpoint(&Profile::HOST)
    );
    output.extend((5..=5_000).map(|n| format!("line {n}\n")));
    let out = run(
        &mut replay,
        "a",
        "shellToolCall",
        &json!({"command": "x"}),
        &json!({"success": {"stdout": output}}),
    )?;
    let text = card(out)?.1.text();
    assert_eq!(text.lines().count(), 800);
    assert!(text.lines().last().is_some_and(|note| note.starts_with("[4201 more lines (")), "{text}");
    for secret in [token, "abcdefgh123456", "k1l2m3n4", "q1w2e3r4", "4312"] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert_eq!(text.matches("[redacted]").count(), 5);
    Ok(())
}

#[test]
fn a_replayed_turn_is_an_assistant_message_and_its_results() -> Result<()> {
    let mut replay = replay(context(&Profile::PI, Path::new("/w")));
    let one = card(run(
        &mut replay,
        "raw-id-1",
        "shellToolCall",
        &json!({"command": "ls"}),
        &json!({"success": {"stdout": "x"}}),
    )?)?;
    let two = card(run(
        &mut replay,
        "raw-id-2",
        "deleteToolCall",
        &json!({"path": "/w/a"}),
        &json!({"success": {}}),
    )?)?;
    let messages = replayed_turn(&[one, two]);
    assert_eq!(
        Value::from(messages.clone()),
        json!([
            {"role": "assistant", "stopReason": "toolUse", "content": [
                {"type": "toolCall", "id": "cursor-replay-1700000000000-1-tool-1", "name": "bash", "arguments": {"command": "ls"}},
                {"type": "toolCall", "id": "cursor-replay-1700000000000-1-tool-2", "name": "cursor",
                 "arguments": {"activityTitle": "Cursor delete", "activitySummary": "a"}}]},
            {"role": "toolResult", "toolCallId": "cursor-replay-1700000000000-1-tool-1", "toolName": "bash",
             "content": [{"type": "text", "text": "x"}], "isError": false},
            {"role": "toolResult", "toolCallId": "cursor-replay-1700000000000-1-tool-2", "toolName": "cursor",
             "content": [{"type": "text", "text": "a"}], "isError": false,
             "details": {"variant": "activity", "sourceToolName": "delete", "title": "Cursor delete", "summary": "a",
                         "expandedText": "", "path": "a"}}
        ])
    );
    assert!(!Value::from(messages).to_string().contains("raw-id"));
    Ok(())
}
