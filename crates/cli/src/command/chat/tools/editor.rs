//! Owns opening a file in the user's editor, at the terminal that the chat has.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::super::process::STOPPED;
use super::{Tools, required, unless_stopped};

/// Editors that take `+LINE` before the file.
const PLUS: [&str; 9] = ["vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "ne"];
/// Editors that take `FILE:LINE` behind this flag.
const GOTO: [&str; 3] = ["code", "cursor", "codium"];
/// A larger file is not compared by what is in it.
const COMPARED: u64 = 64 << 20;

/// Opens the file and waits until it is closed.
pub(super) async fn run(
    tools: &Tools,
    args: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let path = tools.cwd.join(required(args, "path")?);
    if !tools.asks {
        return Err("there is no terminal here, so no editor either".to_owned());
    }
    if path.is_dir() {
        return Err(format!("{} is a folder", path.display()));
    }
    let variable = |name: &str| tools.own.get(name)?.to_str().map(str::to_owned);
    let line = tools.config.editor.clone().or_else(|| variable("VISUAL")).or_else(|| variable("EDITOR"));
    let line = line
        .filter(|line| !line.trim().is_empty())
        .ok_or("the user has no editor: neither VISUAL nor EDITOR is set")?;
    let mut words =
        shlex::split(&line).filter(|words| !words.is_empty()).ok_or("EDITOR is no command line")?;
    let program = words.remove(0);
    words.extend(place(&program, &path, args.get("line").and_then(Value::as_u64)));
    let held = unless_stopped(cancel, tools.asker.hold()).await?;
    let before = content(&path);
    let mut command = Command::new(&program);
    command.args(words).current_dir(&tools.cwd).stdin(Stdio::inherit());
    let mut child = command.spawn().map_err(|error| format!("{program} cannot be started: {error}"))?;
    let id = child.id();
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    let status = tokio::select! {
        biased;
        status = &mut ended => status,
        () = cancel.cancelled() => {
            end(id);
            ended.await
        }
    };
    drop(held);
    if cancel.is_cancelled() {
        return Err(STOPPED.to_owned());
    }
    let status = status.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{program} ended with {status}"));
    }
    let name = path.display();
    Ok(match (before, content(&path)) {
        (_, None) => format!("The editor was closed; {name} does not exist, or cannot be read."),
        (before, after) if before == after => format!("The editor was closed; {name} was not changed."),
        _ => format!("The editor was closed; the user changed {name}. Read it again."),
    })
}

/// The words that name the file, and the line where the editor is known to take one.
fn place(program: &str, path: &Path, line: Option<u64>) -> Vec<String> {
    let path = path.display().to_string();
    let name = Path::new(program).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match line {
        Some(line) if PLUS.contains(&name) => vec![format!("+{line}"), path],
        Some(line) if GOTO.contains(&name) => vec!["--goto".to_owned(), format!("{path}:{line}")],
        _ => vec![path],
    }
}

/// What tells whether it was changed.
fn content(path: &Path) -> Option<(Option<std::time::SystemTime>, Vec<u8>)> {
    let about = std::fs::metadata(path).ok()?;
    if about.len() > COMPARED {
        return Some((about.modified().ok(), Vec::new()));
    }
    Some((None, std::fs::read(path).ok()?))
}

#[cfg(unix)]
fn end(id: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(process) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        kill_process(process, Signal::TERM).ok();
    }
}

#[cfg(not(unix))]
fn end(_id: u32) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_that_are_known_begin_at_the_line() {
        let of = |program: &str| place(program, Path::new("/f"), Some(7));
        assert_eq!(of("/usr/bin/vim"), ["+7", "/f"]);
        assert_eq!(of("code"), ["--goto", "/f:7"]);
        assert_eq!(of("ed"), ["/f"]);
        assert_eq!(place("vim", Path::new("/f"), None), ["/f"]);
    }
}
