//! Starts other programs: to the end, with a deadline, or in the background. It knows nothing of what they do.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// One command to run.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    program: OsString,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    variables: Vec<(OsString, OsString)>,
}

/// What a finished command left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Step {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self { program: program.as_ref().into(), arguments: Vec::new(), folder: None, variables: Vec::new() }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().into());
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: &[S]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| argument.as_ref().into()));
        self
    }

    pub(crate) fn dir(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_path_buf());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().into()));
        self
    }

    /// The words that start it from another program, which gives its own folder; its variables are set by `env`.
    pub(crate) fn words(&self) -> Vec<String> {
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
        let words =
            iter::once(&self.program).chain(&self.arguments).map(|word| word.to_string_lossy().into());
        iter::once("env".to_owned()).chain(variables).chain(words).collect()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        own_group(&mut command);
        command
    }

    fn name(&self) -> String {
        let arguments = self.arguments.iter().take(4).map(|argument| argument.to_string_lossy());
        let mut words = vec![self.program.to_string_lossy()];
        words.extend(arguments);
        words.join(" ")
    }

    /// Runs to the end with the output on ours; an exit code other than 0 is an error.
    pub(crate) fn run(&self) -> Result<()> {
        println!("$ {}", self.name());
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let status = command.status().with_context(|| format!("cannot start {}", self.name()))?;
        if !status.success() {
            bail!("{} failed: {status}", self.name());
        }
        Ok(())
    }

    /// Runs to the end or to the deadline, when its whole process group is ended and this is an error.
    pub(crate) fn capture(&self, deadline: Duration) -> Result<Finished> {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.name()))?;
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let group = Background { child, name: self.name() };
        let (Ok(stdout), Ok(stderr)) = (stdout.recv_timeout(deadline), stderr.recv_timeout(deadline)) else {
            bail!("{} did not end within {} s", self.name(), deadline.as_secs());
        };
        Ok(Finished { success: group.wait()?, stdout, stderr })
    }

    /// Like [`Step::capture`], but anything other than success is an error that shows the end of its output.
    pub(crate) fn output(&self, deadline: Duration) -> Result<String> {
        let finished = self.capture(deadline)?;
        if !finished.success {
            bail!("{} failed:\n{}\n{}", self.name(), tail(&finished.stdout), tail(&finished.stderr));
        }
        Ok(finished.stdout)
    }

    /// Starts a server whose output goes to `log`; it is ended when the handle is dropped.
    pub(crate) fn background(&self, log: &Path) -> Result<Background> {
        let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.command();
        command.stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("cannot start {}", self.name()))?;
        Ok(Background { child, name: self.name() })
    }
}

/// A running program with its process group.
#[derive(Debug)]
pub(crate) struct Background {
    child: Child,
    name: String,
}

impl Background {
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn wait(mut self) -> Result<bool> {
        let status = self.child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        Ok(status.success())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        end_group(&mut self.child);
        if let Err(error) = self.child.wait() {
            eprintln!("warning: {} is left behind: {error}", self.name);
        }
    }
}

/// The last lines of an output, for error messages.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

fn collect<R: Read + Send + 'static>(stream: Option<R>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream
            && stream.read_to_end(&mut bytes).is_err()
        {
            bytes.extend_from_slice(b"(unreadable)");
        }
        // No receiver means that the deadline has passed and nobody wants the output.
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_command: &mut Command) {}

#[cfg(unix)]
fn end_group(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let sent = group.map(|group| kill_process_group(group, Signal::KILL));
    debug_assert!(
        sent.is_some(),
        "a running child has an id; an error means that its group has ended already"
    );
}

#[cfg(not(unix))]
fn end_group(child: &mut Child) {
    drop(child.kill());
}
