//! Images and big text together: media have their own limit, and base64 never becomes text.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolway_testkit::{FakeTransport, Rig, Session, files, png};

use crate::answer::{Answer, same};
use crate::{TOOLWAY, stdio};

const LINK: &str = r#"{"type":"resource_link","uri":"file:///x","name":"x"}"#;

fn image(size: usize) -> String {
    format!(r#"{{"type":"image","data":"{}","mimeType":"image/png"}}"#, STANDARD.encode(png(size)))
}

fn call(script: &str, rig: Rig) -> Result<(Session, Answer)> {
    let mut session = rig.script(script).start(FakeTransport::Stdio)?;
    session.client.handshake()?;
    session.client.call("1", "draw", "{}")?;
    let answer = Answer::of(&session.client.answer("1")?)?;
    Ok((session, answer))
}

/// Fails when a text block holds more than 64 characters of base64 in a row (of more than one kind of letter).
fn no_base64_in_text(answer: &Answer) -> Result<()> {
    let text = answer.text()?;
    let runs = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '+' || c == '/' || c == '='));
    for run in runs {
        let first = run.chars().next();
        ensure!(
            run.len() <= 64 || run.chars().all(|c| Some(c) == first) || run.starts_with('/'),
            "base64 in a text: {run:.100}"
        );
    }
    Ok(())
}

#[test]
fn a_small_image_passes_beside_a_cut_text() -> Result<()> {
    let image = "{\"type\":\"image\",\"data\":\"{png:60000}\",\"mimeType\":\"image/png\"}";
    let script = format!(
        r#"on tools/call/draw -> answer {{"content":[{{"type":"text","text":"{{l*40000}}"}},{image},{LINK}]}}"#
    );
    let (session, answer) = call(&script, Rig::new(TOOLWAY)?)?;
    let kinds: Vec<_> = answer.blocks()?.iter().map(|b| b["type"].as_str().unwrap_or("")).collect();
    ensure!(kinds == ["text", "image", "resource_link"], "order: {kinds:?}");
    ensure!(answer.line.contains(&self::image(60_000)), "the image was changed");
    ensure!(answer.line.contains(LINK), "the link was changed");
    let text = answer.text()?;
    ensure!(text.contains("ll") && text.chars().count() < 9_000, "{text}");
    no_base64_in_text(&answer)?;
    let saved = answer.saved()?;
    let decoded =
        files(&session.rig().saved()).into_iter().find(|f| std::fs::read(f).is_ok_and(|b| b == png(60_000)));
    let decoded = decoded.context("no decoded image beside the saved result")?;
    ensure!(decoded.extension().is_some_and(|e| e == "png"), "{}", decoded.display());
    saved.check_file(&std::fs::read(&saved.path)?)?;
    session.finish().map(drop)
}

#[test]
fn an_image_does_not_count_while_it_is_under_the_limit_of_media() -> Result<()> {
    for kinds in [vec!["image/png"], vec!["image/png", "audio/wav"]] {
        let blocks: Vec<_> = kinds
            .iter()
            .map(|kind| {
                format!(
                    r#"{{"type":"{}","data":"{}","mimeType":"{kind}"}}"#,
                    kind.split('/').next().unwrap_or_default(),
                    STANDARD.encode(png(150_000))
                )
            })
            .collect();
        let result = format!(r#"{{"content":[{{"type":"text","text":"short"}},{}]}}"#, blocks.join(","));
        let (session, answer) = call(&format!("on tools/call/draw -> answer {result}"), Rig::new(TOOLWAY)?)?;
        same(answer.line.as_bytes(), &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#))?;
        ensure!(
            !session.rig().saved().exists() || files(&session.rig().saved()).len() <= 1,
            "something was saved"
        );
        session.finish()?;
    }
    Ok(())
}

#[test]
fn large_media_become_links_to_their_files() -> Result<()> {
    let script = r#"on tools/call/draw -> answer {"content":[{"type":"text","text":"look"},{"type":"image","data":"{png:1500000}","mimeType":"image/png"},{"type":"image","data":"{png:2000}","mimeType":"image/png"}]}"#;
    let (session, answer) = call(script, Rig::new(TOOLWAY)?)?;
    let link = answer.blocks()?.iter().find(|b| b["type"] == "resource_link").context("no link")?;
    let uri = link["uri"].as_str().context("no uri")?;
    let path = uri.strip_prefix("file://").context("no file URI")?;
    ensure!(std::fs::read(path)? == png(1_500_000) && path.rsplit('.').next() == Some("png"), "{path}");
    ensure!(answer.line.contains(&image(2_000)), "the small image was changed");
    ensure!(answer.chars() < 20_000, "{} characters", answer.chars());
    no_base64_in_text(&answer)?;
    session.finish().map(drop)
}

#[test]
fn the_limit_of_media_is_an_option() -> Result<()> {
    let script = r#"on tools/call/draw -> answer {"content":[{"type":"image","data":"{png:20000}","mimeType":"image/png"}]}"#;
    let (session, answer) = call(script, Rig::new(TOOLWAY)?.options(&["--media-limit", "10KiB"]))?;
    ensure!(answer.chars() <= 10_000 && !answer.line.contains(&image(20_000)), "it passed");
    ensure!(answer.blocks()?.iter().any(|b| b["type"] == "resource_link"), "no link: {}", answer.line);
    session.finish().map(drop)
}

#[test]
fn a_file_gets_the_extension_of_its_real_type() -> Result<()> {
    let script = r#"on tools/call/draw -> answer {"content":[{"type":"text","text":"{l*20000}"},{"type":"image","data":"{png:3000}","mimeType":"image/jpeg"},{"type":"image","data":"not base64!","mimeType":"image/png"}]}"#;
    let (session, answer) = call(script, Rig::new(TOOLWAY)?)?;
    let told = answer.line.contains("not base64!") || answer.text()?.contains("Only in the file: 1 image");
    ensure!(told, "the odd image was dropped: {}", answer.line);
    let decoded =
        files(&session.rig().saved()).into_iter().find(|f| std::fs::read(f).is_ok_and(|b| b == png(3_000)));
    let decoded = decoded.context("no decoded image")?;
    ensure!(decoded.extension().is_some_and(|e| e == "png"), "{}", decoded.display());
    session.finish().map(drop)
}

#[test]
fn structured_base64_never_shows_in_a_preview() -> Result<()> {
    let script = r#"on tools/call/draw -> answer {"content":[{"type":"text","text":"{\"file\":\"{base64:60000}\"}"}],"structuredContent":{"file":"{base64:60000}"}}"#;
    let mut session = stdio(script)?;
    session.client.handshake()?;
    session.client.call("1", "draw", "{}")?;
    let answer = Answer::of(&session.client.answer("1")?)?;
    no_base64_in_text(&answer)?;
    session.finish().map(drop)
}
