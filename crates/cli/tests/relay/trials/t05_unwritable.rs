//! The directory of saved results cannot be written: the answer says so, and the relay goes on.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, Rig, Session, files};

use crate::TOOLWAY;
use crate::answer::Answer;

const SCRIPT: &str = r#"on tools/call/big -> text HEAD {x*30000} TAIL
on tools/call/failed -> answer {"content":[{"type":"text","text":"{x*30000}"}],"isError":true}"#;

fn check(mut session: Session, what: &str) -> Result<Session> {
    session.client.handshake()?;
    session.client.call("5", "big", "{}")?;
    session.client.send(r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#)?;
    // Within a second, with room for a loaded machine.
    let within = Duration::from_secs(10);
    let answer = Answer::of(&session.client.answer_within("5", within).with_context(|| what.to_owned())?)?;
    let saved = answer.saved().with_context(|| what.to_owned())?;
    ensure!(!saved.done, "{what}: saved at {}", saved.path.display());
    ensure!(saved.reason.is_some(), "{what}: no reason");
    let text = answer.text()?;
    ensure!(text.contains("not saved: "), "{what}: {text}");
    ensure!(text.contains("HEAD") && text.contains("TAIL") && answer.chars() <= 10_000, "{what}: {text}");
    ensure!(answer.result()?.get("isError").is_none_or(|flag| flag == false), "{what}: isError");
    ensure!(session.client.answer("6")?.ends_with(br#""result":{}}"#), "{what}: ping");
    session.client.call("7", "failed", "{}")?;
    let answer = Answer::of(&session.client.answer("7")?)?;
    ensure!(answer.result()?["isError"] == true && !answer.saved()?.done, "{what}: {:.300}", answer.line);
    Ok(session)
}

#[test]
fn what_is_no_directory_is_said() -> Result<()> {
    type Setup = fn(&std::path::Path) -> std::io::Result<()>;
    let kinds: [(&str, &str, Setup); 5] = [
        ("a regular file", "spill", |p| std::fs::write(p, "mine")),
        ("below a file", "file/spill", |p| std::fs::write(p.parent().unwrap_or(p), "mine")),
        ("a link to nowhere", "link", |p| std::os::unix::fs::symlink("/nowhere/at/all", p)),
        ("a link to itself", "loop", |p| std::os::unix::fs::symlink(p, p)),
        ("a file system without files", "../../proc/spill", |_| Ok(())),
    ];
    for (what, name, setup) in kinds {
        let rig = Rig::new(TOOLWAY)?.script(SCRIPT);
        let path = if name.contains("proc") { "/proc/toolway-spill".into() } else { rig.path().join(name) };
        setup(&path)?;
        let session = rig.instead("--output-dir", &path).start(FakeTransport::Stdio)?;
        let session = check(session, what)?;
        if what == "a regular file" {
            ensure!(std::fs::read_to_string(&path)? == "mine", "the file was changed");
        }
        session.finish()?;
    }
    Ok(())
}

#[test]
fn a_full_disk_leaves_no_partial_file() -> Result<()> {
    let can = |flags: &str| Command::new("unshare").args([flags, "true"]).status().is_ok_and(|s| s.success());
    let Some(flags) = ["-m", "-rm"].into_iter().find(|flags| can(flags)) else {
        eprintln!("skipped: this machine lets nobody mount a tmpfs");
        return Ok(());
    };
    let rig = Rig::new(TOOLWAY)?;
    let spill = rig.saved();
    std::fs::create_dir(&spill)?;
    // The list of files is written at the end, from inside the mount.
    let list = rig.path().join("list");
    let inner = format!(
        "mount -t tmpfs -o size=64k,mode=700 tmpfs {spill} && head -c 50000 /dev/zero > {spill}/other; \"$0\" \"$@\"; code=$?; ls -A {spill} > {list}; exit $code",
        spill = spill.display(),
        list = list.display()
    );
    let code = format!("exec unshare {flags} sh -c '{}' \"$0\" \"$@\"", inner.replace('\'', ""));
    let session = rig.wrapped(&code).script(SCRIPT).start(FakeTransport::Stdio)?;
    let mut session = check(session, "a full disk")?;
    session.client.close_stdin();
    session.client.wait_exit(toolway_testkit::SOON)?;
    let left = std::fs::read_to_string(&list)?;
    let partial: Vec<_> = left.lines().filter(|name| *name != "other" && !name.contains("index")).collect();
    ensure!(partial.is_empty(), "partial files: {left}");
    session.finish().map(drop)
}

#[test]
fn saving_works_again_once_it_can() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.script(SCRIPT);
    let spill = rig.saved();
    std::fs::write(&spill, "in the way")?;
    let mut session = check(rig.start(FakeTransport::Stdio)?, "in the way")?;
    std::fs::remove_file(&spill)?;
    session.client.call("8", "big", "{}")?;
    let answer = Answer::of(&session.client.answer("8")?)?;
    answer.saved()?.check_file(
        format!(
            r#"{{"jsonrpc":"2.0","id":8,"result":{{"content":[{{"type":"text","text":"HEAD {} TAIL"}}]}}}}"#,
            "x".repeat(30_000)
        )
        .as_bytes(),
    )?;
    ensure!(!files(&spill).is_empty(), "nothing is there");
    session.finish().map(drop)
}
