//! An oversized error stays an error, is saved whole, and is private.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, Rig, files};

use crate::answer::{Answer, filling, same, text_response};
use crate::{TOOLWAY, stdio};

const RESULT: &str = r#"{"content":[{"type":"text","text":"HEAD-MARK {x*30000} TAIL-MARK exit code 2"}],"isError":true,"_meta":{"vendor/k":1}}"#;

fn original(id: &str) -> String {
    let result = RESULT.replace("{x*30000}", &"x".repeat(30_000));
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn mode(path: &Path) -> Result<u32> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o7777)
}

/// Digits only, so that `30,119` and `30 119` are found too.
fn digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ',' | ' ' | '_' | '\u{202f}')).collect()
}

fn check_error(line: &[u8], id: &str) -> Result<Answer> {
    let answer = Answer::of(line)?;
    ensure!(answer.chars() <= 10_000, "{} characters", answer.chars());
    ensure!(answer.line.contains(&format!("\"id\":{id}")), "the id: {:.100}", answer.line);
    let result = answer.result()?;
    ensure!(result["isError"] == true, "isError: {}", result["isError"]);
    ensure!(result["_meta"]["vendor/k"] == 1, "_meta: {}", result["_meta"]);
    let (text, saved) = (answer.text()?, answer.saved()?);
    ensure!(text.contains("HEAD-MARK") && text.contains("TAIL-MARK exit code 2"), "{text}");
    ensure!(digits(&text).contains(&saved.chars.to_string()), "no size {}: {text}", saved.chars);
    ensure!(text.contains(&saved.path.display().to_string()), "no path: {text}");
    saved.check_file(original(id).as_bytes())?;
    ensure!(saved.bytes == original(id).len() as u64, "{} bytes", saved.bytes);
    Ok(answer)
}

#[test]
fn error_flag_and_vendor_meta_survive_under_any_umask() -> Result<()> {
    for umask in ["000", "022", "077", "277"] {
        let rig = Rig::new(TOOLWAY)?.umask(umask);
        let script = format!("on tools/call/build -> answer {RESULT}");
        let mut session = rig.script(&script).start(FakeTransport::Stdio)?;
        session.client.handshake()?;
        session.client.call("\"e-1\"", "build", "{}")?;
        let line = session.client.answer("\"e-1\"")?;
        check_error(&line, "\"e-1\"")?;
        let saved = session.rig().saved();
        ensure!(mode(&saved)? == 0o700, "directory {:o} under {umask}", mode(&saved)?);
        for file in files(&saved) {
            ensure!(mode(&file)? == 0o600, "{} {:o} under {umask}", file.display(), mode(&file)?);
        }
        ensure!(session.finish()?.is_empty(), "lines nobody asked for");
    }
    Ok(())
}

#[test]
fn an_existing_directory_keeps_its_mode() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.script(&format!("on tools/call/build -> answer {RESULT}"));
    std::fs::create_dir(rig.saved())?;
    std::fs::set_permissions(rig.saved(), std::fs::Permissions::from_mode(0o755))?;
    let mut session = rig.start(FakeTransport::Stdio)?;
    session.client.handshake()?;
    session.client.call("1", "build", "{}")?;
    check_error(&session.client.answer("1")?, "1")?;
    let saved = session.rig().saved();
    ensure!(mode(&saved)? == 0o755, "{:o}", mode(&saved)?);
    ensure!(files(&saved).iter().all(|f| mode(f).is_ok_and(|m| m == 0o600)), "modes of files");
    session.client.close_stdin();
    session.client.wait_exit(toolway_testkit::SOON)?;
    let stderr = session.client.stderr();
    ensure!(stderr.contains(&saved.display().to_string()), "no warning: {stderr}");
    session.ended().map(drop)
}

#[test]
fn ids_of_every_spelling_come_back_as_they_were() -> Result<()> {
    let ids = [
        "0",
        "7",
        "-1",
        "1.0",
        "1.5",
        "1e2",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""1""#,
        r#""""#,
        r#""a b""#,
        r#""\u0061\"\\/""#,
        r#""é漢😀""#,
        r#""{\"id\":1}""#,
        r#""../../x""#,
    ];
    let mut session = stdio(&format!("on tools/call/build -> answer {RESULT}"))?;
    session.client.handshake()?;
    for id in ids {
        session.client.call(id, "build", "{}")?;
    }
    for id in ids {
        check_error(&session.client.answer(id)?, id).with_context(|| id.to_owned())?;
    }
    let saved = session.rig().saved();
    let outside = files(session.rig().path());
    let known = [saved, session.rig().path().join("home"), session.rig().path().join("upstream.script")];
    let stray: Vec<_> = outside.iter().filter(|f| !known.iter().any(|k| f.starts_with(k))).collect();
    ensure!(stray.is_empty(), "written outside: {stray:?}");
    session.finish().map(drop)
}

#[test]
fn the_error_flag_is_what_the_upstream_said() -> Result<()> {
    let flags = [("yes", r#","isError":true"#), ("no", r#","isError":false"#), ("none", "")];
    let script: String = flags
        .iter()
        .map(|(name, flag)| format!("on tools/call/{name} -> answer {{\"content\":[{{\"type\":\"text\",\"text\":\"{{x*30000}}\"}}]{flag}}}\n"))
        .collect::<Vec<_>>().concat();
    let mut session = stdio(&script)?;
    session.client.handshake()?;
    for (name, flag) in flags {
        let id = format!("\"{name}\"");
        session.client.call(&id, name, "{}")?;
        let answer = Answer::of(&session.client.answer(&id)?)?;
        answer.saved()?;
        let is_error = answer.result()?.get("isError").and_then(serde_json::Value::as_bool);
        ensure!(is_error.unwrap_or(false) == (name == "yes"), "{name}: {is_error:?}{flag}");
    }
    session.finish().map(drop)
}

#[test]
fn the_border_is_exact_in_characters() -> Result<()> {
    // (spelled, characters that count)
    let kinds = [
        ("plain", 5),
        ("é漢😀", 3),
        (r"\u00e9\u6f22\ud83d\ude00", 3),
        (r"\/", 1),
        (r"\u0041", 1),
        (r#"\n\t\r\b\f\"\\"#, 14),
        (r"\u000a\u0022\u005c", 6),
        (r"\u0000\u001f", 12),
        (r"\ud800x", 7),
        (r"\u007f", 1),
        (r"\u2028", 1),
    ];
    let mut lines = Vec::new();
    for (kind, counted) in kinds {
        for size in [9_999, 10_000, 10_001] {
            let id = (1_000 + lines.len()).to_string();
            let text = filling(&id, size, kind, counted);
            lines.push((id.clone(), size, text_response(&id, &text)));
        }
    }
    let script: String = lines
        .iter()
        .map(|(id, _, line)| format!("on tools/call/t{id} -> send {line}\n"))
        .collect::<Vec<_>>()
        .concat();
    let mut session = stdio(&script)?;
    session.client.handshake()?;
    for (id, size, line) in &lines {
        session.client.call(id, &format!("t{id}"), "{}")?;
        let got = session.client.answer(id)?;
        if *size <= 10_000 {
            same(&got, line)?;
            continue;
        }
        let answer = Answer::of(&got)?;
        let saved = answer.saved()?;
        ensure!(saved.chars == *size as u64, "{} counted of {size}: {line:.120}", saved.chars);
        ensure!(answer.chars() <= 10_000, "{} characters", answer.chars());
        saved.check_file(line.as_bytes())?;
    }
    session.finish().map(drop)
}

#[test]
fn white_space_between_tokens_does_not_count() -> Result<()> {
    let small = r#"{ "jsonrpc" : "2.0" ,{ *20000}"id" : 1 , "result" : { "content" : [ ] } }"#;
    let mut session = stdio(&format!("on tools/call/wide -> send {small}"))?;
    session.client.handshake()?;
    session.client.call("1", "wide", "{}")?;
    same(&session.client.answer("1")?, &small.replace("{ *20000}", &" ".repeat(20_000)))?;
    session.finish().map(drop)
}

#[test]
fn several_blocks_keep_their_first_and_last_words() -> Result<()> {
    let blocks = r#"{"content":[{"type":"text","text":"FIRST {a*9000}"},{"type":"text","text":"{b*9000}"},{"type":"text","text":"{c*9000} LAST"}],"isError":true}"#;
    let mut session = stdio(&format!("on tools/call/build -> answer {blocks}"))?;
    session.client.handshake()?;
    session.client.call("1", "build", "{}")?;
    let answer = Answer::of(&session.client.answer("1")?)?;
    let text = answer.text()?;
    ensure!(text.contains("FIRST") && text.contains("LAST"), "{text}");
    ensure!(answer.result()?["isError"] == true && answer.chars() <= 10_000, "flag and size");
    let view = answer.saved()?.text_path;
    let whole = std::fs::read_to_string(view.unwrap_or_default())?;
    for part in ["a", "b", "c"] {
        ensure!(whole.contains(&part.repeat(9_000)), "the text view lacks {part}");
    }
    session.finish().map(drop)
}
