//! Owns the tools `shell` and `writeStdin`: a command line, run by the user's shell in the agent's folder, and input for
//! one that runs in the background.

mod input;
mod report;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub(super) use input::WriteStdin;
use report::{Ending, report};

use super::arguments::fault;
use super::shells::{CommandSpec, RunningCommand, Shells};
use super::{Arguments, Capability, Tool, ToolContext, ToolOutput, ToolSetup};
use crate::engine::BoxFuture;
use crate::policy::Action;

const ARGUMENTS: [&str; 6] = ["command", "cwd", "timeoutMs", "background", "stdin", "description"];
/// Shells that take a command line after `-c` and read it as `sh` does.
const POSIX: [&str; 6] = ["sh", "bash", "zsh", "dash", "ksh", "ash"];
/// What keeps programs from waiting for somebody at a terminal.
const QUIET: [(&str, &str); 4] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "dumb")];
/// How long a command in the background is looked at before the answer.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// `shell`.
#[derive(Debug)]
pub(super) struct Shell;

/// What a call asks for.
struct Request {
    command: String,
    cwd: Option<String>,
    timeout: Duration,
    background: bool,
    stdin: bool,
}

impl Request {
    fn read(setup: &ToolSetup, args: &Arguments) -> Result<Self, ToolOutput> {
        args.only(&ARGUMENTS)?;
        let background = args.flag("background")?;
        let stdin = args.flag("stdin")?;
        if stdin && !background {
            return Err(fault("stdin", "goes with background=true only, and is then written by writeStdin"));
        }
        let cap = setup.shell_timeout_cap;
        let timeout = match args.count("timeoutMs")? {
            None => setup.shell_timeout,
            Some(0) => return Err(fault("timeoutMs", "must be at least 1")),
            Some(ms) if Duration::from_millis(ms) > cap => {
                let most = cap.as_millis();
                return Err(fault(
                    "timeoutMs",
                    format!("must be at most {most}; run what takes longer with background=true"),
                ));
            }
            Some(ms) => Duration::from_millis(ms),
        };
        Ok(Self { command: args.required("command")?, cwd: args.text("cwd")?, timeout, background, stdin })
    }
}

impl Tool for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn capability(&self) -> Capability {
        Capability::Shell
    }

    fn description(&self) -> String {
        "Runs a command line in the agent's folder and gives what it wrote and how it ended. Each call is a shell of its \
         own: variables and `cd` do not last. It has no terminal and no input. What takes longer than timeoutMs is ended; \
         servers and the like run with background=true, which gives an id for writeStdin. Whatever a command leaves \
         running is ended with it. Long output is shown with its beginning and end, and the whole is in a file. To find and \
         read files use grep, glob and read."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line"},
                "cwd": {"type": "string", "description": "The folder, if it is another one"},
                "timeoutMs": {"type": "integer", "minimum": 1, "description": "Milliseconds that it may take (default 120000)"},
                "background": {"type": "boolean", "description": "Answer at once and let it run"},
                "stdin": {"type": "boolean", "description": "With background: leave its input open for writeStdin"},
                "description": {"type": "string", "description": "What it does, in a few words for the user"},
            },
            "required": ["command"],
        })
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        let request = Request::read(&context.session.setup, args)?;
        let cwd = request.cwd.map(|cwd| context.session.roots.place(&cwd)).transpose();
        let cwd = cwd.map_err(|message| fault("cwd", message))?.map(|place| place.real);
        Ok(vec![Action::Shell { command: request.command, cwd }])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    let session = &context.session;
    let request = Request::read(&session.setup, args)?;
    let cwd = working_folder(context, request.cwd.as_deref())?;
    let (program, mut arguments) = shell(&session.setup);
    arguments.push(request.command.clone().into());
    let mut variables = session.setup.variables.clone();
    variables.extend(QUIET.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    let spec = CommandSpec {
        program,
        args: arguments,
        variables,
        cwd: cwd.clone(),
        supervise: session.setup.supervise.clone(),
        sandbox: session.setup.sandbox.clone(),
        stdin: request.stdin,
        outputs: Arc::clone(&session.outputs),
        listener: context.listener(),
        line: request.command.clone(),
    };
    if context.cancel.is_cancelled() {
        return Err(ToolOutput::cancelled());
    }
    let (id, command) = session
        .shells
        .start(spec)
        .await
        .map_err(|error| ToolOutput::error(format!("The command could not be started: {error}.")))?;
    let mut held = Held { shells: &session.shells, id: &id, command: &command, keep: false };
    let ending = if request.background {
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Ending::Cancelled,
            exit = command.ended() => Ending::Exit(exit),
            () = tokio::time::sleep(FIRST_LOOK) => Ending::Running,
        }
    } else {
        tokio::select! {
            biased;
            exit = command.ended() => Ending::Exit(exit),
            () = context.cancel.cancelled() => Ending::Cancelled,
            () = tokio::time::sleep(request.timeout) => Ending::TimedOut(request.timeout),
        }
    };
    match ending {
        Ending::Running => {
            held.keep = true;
            command.listen(None);
        }
        Ending::Cancelled | Ending::TimedOut(_) => command.end().await,
        Ending::Exit(_) => {}
    }
    drop(held);
    Ok(report(&id, &command, ending))
}

/// A command that ends with its call, whatever becomes of that.
struct Held<'a> {
    shells: &'a Shells,
    id: &'a str,
    command: &'a RunningCommand,
    keep: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.keep {
            self.command.kill_now();
            self.shells.remove(self.id);
        }
    }
}

fn working_folder(context: &ToolContext, cwd: Option<&str>) -> Result<PathBuf, ToolOutput> {
    let Some(cwd) = cwd else { return Ok(context.session.setup.cwd.clone()) };
    let place = context.session.roots.place(cwd).map_err(|message| fault("cwd", message))?;
    if !place.real.is_dir() {
        return Err(fault("cwd", format!("{} is no folder", place.shown.display())));
    }
    let granted = context
        .granted
        .iter()
        .any(|action| matches!(action, Action::Shell { cwd: Some(cwd), .. } if *cwd == place.real));
    if place.outside && !granted {
        let named = context.session.roots.named();
        return Err(fault("cwd", format!("{} lies outside of {named}", place.shown.display())));
    }
    Ok(place.real)
}

/// The shell and what comes before the command line.
fn shell(setup: &ToolSetup) -> (PathBuf, Vec<OsString>) {
    if cfg!(windows) {
        let arguments = ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"].map(OsString::from).to_vec();
        return (PathBuf::from("powershell.exe"), arguments);
    }
    let known = |shell: &&PathBuf| {
        let name = shell.file_name().and_then(|name| name.to_str());
        shell.is_absolute() && name.is_some_and(|name| POSIX.contains(&name)) && shell.is_file()
    };
    let program = setup.shell.as_ref().filter(known).cloned();
    (program.unwrap_or_else(|| Path::new("/bin/sh").to_owned()), vec!["-c".into()])
}

#[cfg(test)]
mod tests;
