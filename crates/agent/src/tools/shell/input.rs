//! Owns `writeStdin`: what a command in the background is told, and reading on in what it writes.

use std::time::Duration;

use serde_json::{Value, json};

use super::report::{Ending, report};
use crate::engine::BoxFuture;
use crate::policy::Action;
use crate::tools::arguments::fault;
use crate::tools::{Arguments, Capability, Tool, ToolContext, ToolOutput};

const ARGUMENTS: [&str; 5] = ["id", "input", "close", "waitMs", "end"];
/// How long is waited for output where no time is named.
const WAIT: Duration = Duration::from_secs(5);
/// The most that may be waited.
const MOST_WAIT: Duration = Duration::from_mins(10);
/// Output counts as complete when nothing more comes for so long.
const QUIET: Duration = Duration::from_millis(150);
/// Bytes of one input.
const MOST_INPUT: usize = 1 << 20;

/// `writeStdin`.
#[derive(Debug)]
pub(in crate::tools) struct WriteStdin;

impl Tool for WriteStdin {
    fn name(&self) -> &'static str {
        "writeStdin"
    }

    fn capability(&self) -> Capability {
        Capability::Shell
    }

    fn description(&self) -> String {
        "For a command that runs in the background: writes to its input (started with stdin=true; end a line with \\n), \
         closes that, ends the command, and gives what it has written since the last time. Without input it only waits \
         for more output, at most waitMs."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id that shell gave, such as shell-1"},
                "input": {"type": "string", "description": "The text to write"},
                "close": {"type": "boolean", "description": "Close its input afterwards"},
                "waitMs": {"type": "integer", "minimum": 0, "maximum": 600_000, "description": "Milliseconds to wait for output (default 5000)"},
                "end": {"type": "boolean", "description": "End the command"},
            },
            "required": ["id"],
        })
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        args.only(&ARGUMENTS)?;
        let id = args.required("id")?;
        let wants = args.text("input")?.is_some();
        let command = context.session.shells.find(&id).ok_or_else(|| unknown(context, &id))?;
        // Who may run the command may tell it something; only to look and to end it takes no permission.
        Ok(if wants {
            vec![Action::Shell { command: command.line().to_owned(), cwd: None }]
        } else {
            Vec::new()
        })
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

fn unknown(context: &ToolContext, id: &str) -> ToolOutput {
    let ids = context.session.shells.ids();
    let known = if ids.is_empty() { "none runs".to_owned() } else { format!("there are {}", ids.join(", ")) };
    fault("id", format!("there is no command {id:?}: {known}"))
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    args.only(&ARGUMENTS)?;
    let id = args.required("id")?;
    let wait = match args.count("waitMs")?.map(Duration::from_millis) {
        Some(wait) if wait > MOST_WAIT => return Err(fault("waitMs", "must be at most 600000")),
        wait => wait.unwrap_or(WAIT),
    };
    let input = args.text("input")?.filter(|input| !input.is_empty());
    if input.as_ref().is_some_and(|input| input.len() > MOST_INPUT) {
        return Err(fault("input", format!("must be at most {MOST_INPUT} bytes")));
    }
    let (close, end) = (args.flag("close")?, args.flag("end")?);
    let command = context.session.shells.find(&id).ok_or_else(|| unknown(context, &id))?;
    command.listen(context.listener());
    let work = async {
        if let Some(input) = &input {
            command.write(input).await.map_err(|reason| fault("input", reason))?;
        }
        if close {
            command.close_input().await;
        }
        if end {
            command.end().await;
        } else if wait > Duration::ZERO {
            command.settled(QUIET).await;
        }
        Ok(())
    };
    let time = if end { MOST_WAIT } else { wait.max(Duration::from_millis(1)) };
    let done = tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(ToolOutput::cancelled()),
        done = tokio::time::timeout(time, work) => match done {
            Ok(done) => done,
            Err(_) => Ok(()),
        },
    };
    command.listen(None);
    done?;
    let ending = command.exit().map_or(Ending::Running, Ending::Exit);
    let mut output = report(&id, &command, ending);
    if ending != Ending::Running {
        context.session.shells.remove(&id);
        // Whoever ends a command has what was wanted.
        output.is_error &= !end;
    }
    Ok(output)
}
