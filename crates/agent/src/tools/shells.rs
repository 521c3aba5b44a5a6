//! Owns the commands of an agent that run: started in a process group of their own, read all the time, and ended with
//! everything that came of them. It knows no tool and no model.

mod kept;
#[cfg(target_os = "linux")]
mod leftovers;
mod pipes;
mod process;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

pub(crate) use process::{CommandSpec, Listener, RunningCommand};

/// Commands of one agent that run at a time.
const MOST_RUNNING: usize = 16;
/// Commands that have ended and still can be asked for.
const MOST_ENDED: usize = 32;

/// The commands of one agent.
#[derive(Debug, Default)]
pub(crate) struct Shells {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    closed: bool,
    commands: BTreeMap<u64, Arc<RunningCommand>>,
}

impl Shells {
    /// Starts a command. The error is for the model.
    pub(crate) async fn start(&self, spec: CommandSpec) -> Result<(String, Arc<RunningCommand>), String> {
        {
            let state = self.lock();
            if state.closed {
                return Err("this agent was closed".to_owned());
            }
            let running: Vec<String> = state
                .commands
                .iter()
                .filter(|(_, command)| command.exit().is_none())
                .map(|(number, _)| name(*number))
                .collect();
            if running.len() >= MOST_RUNNING {
                return Err(format!(
                    "{MOST_RUNNING} commands run already ({}); end one of them first",
                    running.join(", ")
                ));
            }
        }
        let command = Arc::new(RunningCommand::start(spec).await?);
        let mut state = self.lock();
        if state.closed {
            command.kill_now();
            return Err("this agent was closed".to_owned());
        }
        state.last += 1;
        let number = state.last;
        state.commands.insert(number, Arc::clone(&command));
        let ended: Vec<u64> = state
            .commands
            .iter()
            .filter(|(_, command)| command.exit().is_some())
            .map(|(number, _)| *number)
            .collect();
        for number in ended.iter().take(ended.len().saturating_sub(MOST_ENDED)) {
            state.commands.remove(number);
        }
        Ok((name(number), command))
    }

    /// The command of this id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<RunningCommand>> {
        let number = id.trim().strip_prefix("shell-").unwrap_or(id.trim()).parse().ok()?;
        self.lock().commands.get(&number).cloned()
    }

    /// The ids of all that can be asked for.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.lock().commands.keys().map(|number| name(*number)).collect()
    }

    /// It has ended and was told of: nobody asks for it again.
    pub(crate) fn remove(&self, id: &str) {
        if let Some(number) = id.strip_prefix("shell-").and_then(|number| number.parse().ok()) {
            self.lock().commands.remove(&number);
        }
    }

    /// Ends all of them, and starts no more.
    pub(crate) async fn close(&self) {
        let commands = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.commands)
        };
        let mut ends = JoinSet::new();
        for command in commands.into_values() {
            ends.spawn(async move { command.end().await });
        }
        while ends.join_next().await.is_some() {}
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shells {
    fn drop(&mut self) {
        for command in self.lock().commands.values() {
            command.kill_now();
        }
    }
}

fn name(number: u64) -> String {
    format!("shell-{number}")
}
