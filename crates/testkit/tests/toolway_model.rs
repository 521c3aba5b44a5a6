//! The scripted model as a program of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

#[test]
fn it_prints_its_address_answers_keeps_a_journal_and_ends_with_its_starter() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (script, journal) = (folder.path().join("script.json"), folder.path().join("journal"));
    std::fs::write(&script, r#"{ "replies": [{ "text": "Good morning to all" }] }"#)?;
    let mut model = Command::new(env!("CARGO_BIN_EXE_toolway-model"))
        .arg(&script)
        .arg("--journal")
        .arg(&journal)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(model.stdout.take().context("no stdout")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("http://").context("no address")?;
    let mut connection = TcpStream::connect(address)?;
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    connection.write_all(head.as_bytes())?;
    connection.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    ensure!(answer.contains("Good morni") && answer.contains("[DONE]"), "{answer}");
    let kept: Value = serde_json::from_str(std::fs::read_to_string(&journal)?.trim())?;
    ensure!(
        kept["path"] == "/v1/chat/completions" && kept["body"]["messages"][0]["content"] == "hello",
        "{kept}"
    );
    drop(model.stdin.take());
    ensure!(model.wait()?.success());
    Ok(())
}

#[test]
fn a_script_that_is_none_is_told() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("script.json");
    std::fs::write(&script, r#"{ "replies": [{ "txt": "x" }] }"#)?;
    let output =
        Command::new(env!("CARGO_BIN_EXE_toolway-model")).arg(&script).stdin(Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && told.contains("txt"), "{told}");
    Ok(())
}
