//! Owns values that a command prints (`!cmd`, `${command:...}`). Runs what it is given: whoever calls it has made sure
//! that it was approved.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::environment::{Environment, Platform};

/// A password manager may ask a person.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often the end of a command is looked for once it has closed its output.
const LOOK: Duration = Duration::from_millis(10);
/// A value is not longer than this.
const LONGEST: u64 = 64 << 10;

/// What a shell command prints, without line breaks at its end. An error tells nothing of what it printed.
pub(crate) fn output(text: &str, environment: &Environment, cwd: &Path) -> Result<String, String> {
    output_within(text, environment, cwd, PATIENCE)
}

fn output_within(
    text: &str,
    environment: &Environment,
    cwd: &Path,
    patience: Duration,
) -> Result<String, String> {
    let (shell, flag) = if environment.platform == Platform::Windows { ("cmd", "/C") } else { ("sh", "-c") };
    let mut child = Command::new(shell)
        .args([flag, text])
        .env_clear()
        .envs(&environment.vars)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("the command could not be started: {error}"))?;
    let Some(stdout) = child.stdout.take() else { return Err("the command has no output".to_owned()) };
    let (sender, receiver) = sync_channel(1);
    // Ends with the command's output; if the command is given up, then with its last descendant's.
    let reader = std::thread::Builder::new().name("command-value".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(LONGEST + 1).read_to_end(&mut bytes);
        sender.send(read.map(|_| bytes)).ok();
    });
    let read = match reader {
        Ok(_) => receiver.recv_timeout(patience),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    let Ok(Ok(bytes)) = read else {
        child.kill().ok();
        child.wait().ok();
        return Err(format!("the command gave no value within {} s", patience.as_secs()));
    };
    if bytes.len() as u64 > LONGEST {
        child.kill().ok();
        child.wait().ok();
        return Err(format!("the command prints more than {} KiB", LONGEST >> 10));
    }
    let (_open, clock) = sync_channel::<()>(0);
    let mut looks = patience.as_millis() / LOOK.as_millis();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if looks > 0 => {
                looks -= 1;
                clock.recv_timeout(LOOK).ok();
            }
            _ => {
                child.kill().ok();
                child.wait().ok();
                return Err("the command did not end".to_owned());
            }
        }
    };
    if !status.success() {
        return Err(format!("the command failed ({status})"));
    }
    let value = String::from_utf8(bytes).map_err(|_| "the command's output is not UTF-8".to_owned())?;
    Ok(value.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn environment() -> Environment {
        let vars = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("TOK", "s3cr3t")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Environment::new(vars.into(), "/".into(), Platform::Linux)
    }

    #[test]
    fn a_command_gives_its_output() {
        let run = |text| output(text, &environment(), Path::new("/"));
        assert_eq!(run("echo $TOK; pwd"), Ok("s3cr3t\n/".to_owned()));
        assert_eq!(run("echo $TOK; exit 3"), Err("the command failed (exit status: 3)".to_owned()));
        let long = run("head -c 100000 /dev/zero");
        assert_eq!(long, Err("the command prints more than 64 KiB".to_owned()));
    }

    #[test]
    fn a_command_that_hangs_is_given_up() {
        let ended = output_within("sleep 100", &environment(), Path::new("/"), Duration::from_millis(50));
        assert_eq!(ended, Err("the command gave no value within 0 s".to_owned()));
        let closed =
            output_within("exec 1>&-; sleep 100", &environment(), Path::new("/"), Duration::from_millis(50));
        assert_eq!(closed, Err("the command did not end".to_owned()));
    }
}
