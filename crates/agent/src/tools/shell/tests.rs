//! Real commands: what they write, how they end, and that nothing is left of them.

use std::sync::Mutex;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::engine::{Checkpoint, RunSink};
use crate::event::{Delta, EventKind};
use crate::tools::{ToolSession, ToolSetup};

/// Keeps what is told while it comes.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<Delta>>);

impl RunSink for Heard {
    fn event(&self, _kind: EventKind) -> BoxFuture<'_, Result<(), crate::error::AgentError>> {
        Box::pin(async { Ok(()) })
    }

    fn delta(&self, delta: Delta) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.0.lock().unwrap().push(delta) })
    }

    fn checkpoint(&self, _checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), crate::error::AgentError>> {
        Box::pin(async { Ok(()) })
    }
}

struct Place {
    folder: tempfile::TempDir,
    session: Arc<ToolSession>,
    cancel: CancellationToken,
    heard: Arc<Heard>,
}

impl Place {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ToolSetup)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (work, temp) = (folder.path().join("work"), folder.path().join("temp"));
        std::fs::create_dir_all(&work).unwrap();
        std::fs::create_dir_all(&temp).unwrap();
        let mut setup = ToolSetup::new(work, temp);
        setup.variables.insert("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        change(&mut setup);
        let session = Arc::new(ToolSession::new(setup, None));
        Self { folder, session, cancel: CancellationToken::new(), heard: Arc::default() }
    }

    fn context(&self) -> ToolContext {
        let mut context = ToolContext::new(Arc::clone(&self.session), "call-1", self.cancel.clone());
        context.sink = Some(Arc::clone(&self.heard) as Arc<dyn RunSink>);
        context
    }

    async fn shell(&self, args: Value) -> ToolOutput {
        Shell.run(&self.context(), Arguments::of(args).unwrap()).await
    }

    async fn stdin(&self, args: Value) -> ToolOutput {
        WriteStdin.run(&self.context(), Arguments::of(args).unwrap()).await
    }

    /// Waits until the command has written its number, and gives it.
    async fn number(&self, file: &str) -> i32 {
        let path = self.session.setup.cwd.join(file);
        for _ in 0..500 {
            if let Ok(text) = std::fs::read_to_string(&path)
                && let Ok(number) = text.trim().parse()
            {
                return number;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{file} was not written");
    }
}

/// Waits until the process is gone.
async fn gone(number: i32) -> bool {
    for _ in 0..300 {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().unwrap_or_default().chars().next();
        if matches!(state, None | Some('Z' | 'X')) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

fn without_time(output: &ToolOutput) -> String {
    let at = output.text.rfind(", after ").unwrap_or(output.text.len());
    output.text.get(..at).unwrap().to_owned()
}

#[tokio::test]
async fn output_and_exit_code_come_back_and_output_is_heard_meanwhile() {
    let place = Place::new();
    let output = place.shell(json!({"command": "echo out; echo err >&2; pwd; exit 3"})).await;
    assert!(output.is_error);
    let text = without_time(&output);
    assert!(text.contains("out\n") && text.contains("err\n") && text.contains("/work\n"), "{text}");
    assert!(text.ends_with("[exit code 3"), "{text}");
    let details = output.details.unwrap().tree();
    assert_eq!(details.get("exitCode").unwrap(), 3);
    let heard = place.heard.0.lock().unwrap();
    let said = |wanted: &str| {
        heard.iter().any(|delta| matches!(delta, Delta::ShellOutput { stream, text, .. } if *stream == wanted && text.contains(wanted.get(3..).unwrap())))
    };
    assert!(said("stdout") && said("stderr"), "{heard:?}");
}

#[tokio::test]
async fn success_is_no_error_and_input_is_closed() {
    let place = Place::new();
    let output = place.shell(json!({"command": "cat; echo done"})).await;
    assert!(!output.is_error);
    assert_eq!(without_time(&output), "done\n[exit code 0");
}

#[tokio::test]
async fn a_signal_is_said() {
    let output = Place::new().shell(json!({"command": "kill -9 $$"})).await;
    assert!(output.is_error && output.text.contains("was ended by SIGKILL"), "{}", output.text);
}

#[tokio::test]
async fn what_takes_too_long_is_ended_with_its_grandchildren() {
    let place = Place::new();
    let command = "sh -c 'trap \"\" TERM; echo $$ > stubborn; sleep 60 & echo $! > grandchild; wait; wait; sleep 60' & wait";
    let output = place.shell(json!({"command": command, "timeoutMs": "400"})).await;
    assert!(output.is_error && output.text.contains("did not end within 0.4 s"), "{}", output.text);
    for file in ["stubborn", "grandchild"] {
        let number = place.number(file).await;
        assert!(gone(number).await, "{file}");
    }
}

#[tokio::test]
async fn what_is_left_running_is_ended_and_said_also_out_of_its_group() {
    let place = Place::new();
    let command = "sleep 60 >/dev/null 2>&1 & echo $! > one; setsid sh -c 'echo $$ > two; exec sleep 60' >/dev/null 2>&1 & \
                   while ! [ -s two ]; do sleep 0.01; done; echo ok";
    let output = place.shell(json!({"command": command})).await;
    assert!(!output.is_error, "{}", output.text);
    assert!(output.text.contains("2 processes that it left running were ended"), "{}", output.text);
    for file in ["one", "two"] {
        assert!(gone(place.number(file).await).await, "{file}");
    }
}

#[tokio::test]
async fn a_process_that_holds_the_output_does_not_hold_the_call() {
    let place = Place::new();
    let output = place.shell(json!({"command": "sleep 60 & echo ok"})).await;
    assert!(output.text.starts_with("ok\n[exit code 0"), "{}", output.text);
}

#[tokio::test]
async fn a_cancelled_call_ends_its_command_at_once() {
    let place = Place::new();
    let cancel = async {
        let number = place.number("pid").await;
        place.cancel.cancel();
        number
    };
    let (output, number) =
        tokio::join!(place.shell(json!({"command": "echo early; echo $$ > pid; exec sleep 60"})), cancel);
    assert!(output.is_error && output.text.starts_with("early\n[the call was cancelled"), "{}", output.text);
    assert!(gone(number).await);
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing() {
    let place = Place::new();
    let number = tokio::select! {
        output = place.shell(json!({"command": "echo $$ > pid; exec sleep 60"})) => panic!("{output:?}"),
        number = place.number("pid") => number,
    };
    assert!(gone(number).await);
}

#[tokio::test]
async fn endless_output_is_bounded_and_said() {
    let place = Place::new();
    let output = place.shell(json!({"command": "yes", "timeoutMs": 300})).await;
    assert!(output.text.len() < 40_000, "{}", output.text.len());
    assert!(output.text.contains("bytes are left out here"), "{}", output.text.get(9_000..11_000).unwrap());
    let details = output.details.unwrap().tree();
    let saved = details.get("savedTo").unwrap().as_str().unwrap().to_owned();
    assert!(Path::new(&saved).starts_with(place.folder.path().join("temp")));
    assert!(std::fs::read_to_string(saved).unwrap().starts_with("y\ny\n"));
}

#[tokio::test]
async fn a_command_in_the_background_is_told_and_read_on_and_ended() {
    let place = Place::new();
    let command = "echo ready; while read line; do echo \"got $line\"; done; echo over";
    let output = place.shell(json!({"command": command, "background": true, "stdin": true})).await;
    assert!(
        !output.is_error && output.text.starts_with("ready\n[it runs in the background as shell-1"),
        "{}",
        output.text
    );
    let output = place.stdin(json!({"id": "shell-1", "input": "a\nb\n"})).await;
    assert!(output.text.starts_with("got a\ngot b\n[it runs"), "{}", output.text);
    let output = place.stdin(json!({"id": "shell-1", "close": true})).await;
    assert_eq!(without_time(&output), "over\n[exit code 0");
    let output = place.stdin(json!({"id": "shell-1"})).await;
    assert_eq!(output.text, "Argument `id`: there is no command \"shell-1\": none runs.");
}

#[tokio::test]
async fn the_end_of_the_agent_is_the_end_of_its_commands() {
    let place = Place::new();
    let command = "setsid sh -c 'echo $$ > two; exec sleep 60' & echo $$ > one; wait";
    let output = place.shell(json!({"command": command, "background": true})).await;
    assert!(output.text.contains("shell-1"), "{}", output.text);
    let (one, two) = (place.number("one").await, place.number("two").await);
    place.session.close().await;
    assert!(gone(one).await && gone(two).await);
    let output = place.shell(json!({"command": "true"})).await;
    assert!(output.is_error && output.text.contains("was closed"), "{}", output.text);
}

#[tokio::test]
async fn an_agent_that_is_dropped_leaves_no_command() {
    let place = Place::new();
    place.shell(json!({"command": "echo $$ > one; exec sleep 60", "background": true})).await;
    let one = place.number("one").await;
    let Place { session, folder: _folder, .. } = place;
    drop(session);
    assert!(gone(one).await);
}

#[tokio::test]
async fn ended_by_request_is_no_error() {
    let place = Place::new();
    place.shell(json!({"command": "exec sleep 60", "background": true})).await;
    let output = place.stdin(json!({"id": "1", "end": true})).await;
    assert!(!output.is_error && output.text.contains("was ended by SIGTERM"), "{}", output.text);
}

#[tokio::test]
async fn bad_arguments_are_said() {
    let place = Place::new();
    let table = [
        (json!({}), "Argument `command`: is missing."),
        (json!({"command": "x", "stdin": true}), "Argument `stdin`: goes with background=true only"),
        (json!({"command": "x", "timeoutMs": 0}), "Argument `timeoutMs`: must be at least 1."),
        (json!({"command": "x", "timeoutMs": 999_999_999}), "Argument `timeoutMs`: must be at most 3600000;"),
        (json!({"command": "x", "cwd": "nowhere"}), "is no folder"),
        (json!({"command": "x", "cwd": "/"}), "lies outside of"),
        (json!({"command": "x", "timeout": 5}), "Argument `timeout`: there is no such argument"),
    ];
    for (args, text) in table {
        let output = place.shell(args).await;
        assert!(output.is_error && output.text.contains(text), "{}", output.text);
    }
}

#[tokio::test]
async fn the_users_shell_is_used_where_it_is_one_of_a_known_kind() {
    let output = Place::with(|setup| setup.shell = Some("/bin/bash".into()))
        .shell(json!({"command": "[[ -n $BASH_VERSION ]] && echo bash"}))
        .await;
    assert!(output.text.starts_with("bash\n"), "{}", output.text);
    let setup = |shell: &str| {
        let mut setup = ToolSetup::new("/".into(), "/tmp".into());
        setup.shell = Some(shell.into());
        super::shell(&setup).0
    };
    assert_eq!(setup("/usr/bin/fish"), Path::new("/bin/sh"));
    assert_eq!(setup("bash"), Path::new("/bin/sh"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_in_the_box_writes_inside_only() {
    use crate::sandbox::{Sandbox, SandboxConfig};
    let place = Place::with(|setup| {
        let folders = [setup.cwd.clone()];
        // Where the kernel has none there is nothing to test.
        if let Ok((sandbox, _)) = Sandbox::close(&SandboxConfig::default(), &folders, &setup.temp, None) {
            setup.sandbox = sandbox;
        }
    });
    if !place.session.setup.sandbox.is_closed() {
        return;
    }
    let output = place.shell(json!({"command": "echo in > a && cat a; echo out > ../b"})).await;
    assert!(output.is_error && output.text.starts_with("in\n"), "{}", output.text);
    assert!(!place.folder.path().join("b").exists());
    assert!(place.session.described().contains("Commands run in a sandbox"));
}
