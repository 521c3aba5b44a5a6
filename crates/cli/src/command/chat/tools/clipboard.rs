//! Owns the clipboard: by the programs of the system, or by the terminal itself where it only has to take a text.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::super::process;
use super::{Tools, required, unless_stopped};

/// How long such a program may take.
const TIME: Duration = Duration::from_secs(10);
/// The most bytes that a terminal is given.
const TERMINAL: usize = 64 << 10;

/// `copy` or `paste`.
pub(super) async fn run(
    tools: &Tools,
    args: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<String, String> {
    match required(args, "action")? {
        "copy" => {
            let text =
                args.get("text").and_then(Value::as_str).ok_or("argument `text` is missing, or no text")?;
            copy(tools, text, cancel).await
        }
        "paste" => paste(tools, cancel).await,
        other => Err(format!("{other:?} is no action: copy or paste")),
    }
}

async fn copy(tools: &Tools, text: &str, cancel: &CancellationToken) -> Result<String, String> {
    let said = format!("{} characters are on the clipboard.", text.chars().count());
    if let Some((program, args)) = program(tools, false) {
        let ran = process::run(&program, &args, &tools.cwd, Some(text.into()), TIME, cancel).await?;
        if ran.status.success() || ran.timed_out {
            // Some stay, to give the text to whoever pastes it.
            return Ok(said);
        }
        return Err(format!("{program} failed: {}", ran.err.trim()));
    }
    if tools.asks && text.len() <= TERMINAL {
        // <https://invisible-island.net/xterm/ctlseqs/ctlseqs.html>, OSC 52: base64 holds nothing that steers.
        tools.asker.terminal(&format!("\x1b]52;c;{}\x07", STANDARD.encode(text)));
        return Ok(format!("The terminal was given {said}"));
    }
    Err("there is no clipboard here".to_owned())
}

async fn paste(tools: &Tools, cancel: &CancellationToken) -> Result<String, String> {
    let Some((program, args)) = program(tools, true) else {
        return Err("there is no clipboard here that can be read".to_owned());
    };
    let question = "\nThe agent wants to read your clipboard. Allow it?";
    if !unless_stopped(cancel, tools.asker.confirms(question)).await? {
        return Err("the user did not allow it".to_owned());
    }
    let ran = process::run(&program, &args, &tools.cwd, None, TIME, cancel).await?;
    match ran.status.success() {
        true if ran.out.is_empty() => Ok("The clipboard is empty.".to_owned()),
        true => Ok(ran.out),
        false => Err(format!("{program} failed: {}", ran.err.trim())),
    }
}

/// The program that reads or writes the clipboard of this system.
fn program(tools: &Tools, reads: bool) -> Option<(String, Vec<String>)> {
    let has = |name: &str| tools.own.get(name).is_some_and(|value| !value.is_empty());
    let mut known: Vec<(&str, &[&str])> = Vec::new();
    if cfg!(target_os = "macos") {
        known.push(if reads { ("pbpaste", &[]) } else { ("pbcopy", &[]) });
    }
    if cfg!(windows) && !reads {
        known.push(("clip.exe", &[]));
    }
    if has("WAYLAND_DISPLAY") {
        known.push(if reads { ("wl-paste", &["--no-newline"]) } else { ("wl-copy", &[]) });
    }
    if has("DISPLAY") {
        known.push((
            "xclip",
            if reads { &["-selection", "clipboard", "-out"] } else { &["-selection", "clipboard", "-in"] },
        ));
        known.push(("xsel", if reads { &["--clipboard", "--output"] } else { &["--clipboard", "--input"] }));
    }
    let path = tools.own.get("PATH").unwrap_or_default();
    let found =
        |name: &&(&str, &[&str])| std::env::split_paths(path).any(|folder| folder.join(name.0).is_file());
    let (name, args) = known.iter().find(found)?;
    Some(((*name).to_owned(), args.iter().map(|arg| (*arg).to_owned()).collect()))
}
