//! Owns how errors of agents are told: the sentence, what to do, and the exit code.

use toolway_agent::{AgentError, RunFault};

use crate::exit::{Exit, complain};
use crate::show::safe;

/// Why a command did not do what was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    reason: String,
    hint: Option<String>,
    exit: Exit,
}

impl Failure {
    /// Of an error.
    pub(crate) fn of(error: &AgentError) -> Self {
        let hint = match error {
            AgentError::AgentBusy { agent, .. } => {
                Some(format!("toolway agent cancel {agent}, or give it up with --force"))
            }
            AgentError::AgentArchived { agent } => Some(format!("toolway agent unarchive {agent}")),
            AgentError::AgentNotFound { .. } => Some("toolway agent list --all".to_owned()),
            AgentError::RunNotFound { agent, .. } => Some(format!("toolway agent show {agent}")),
            AgentError::Configuration(faults) => faults.iter().find_map(|fault| of_field(&fault.field)),
            _ => of_code(error.code()),
        };
        Self { reason: error.to_string(), hint, exit: exit(error.code()) }
    }

    /// Of a run that did not end well.
    pub(crate) fn of_run(fault: &RunFault) -> Self {
        Self {
            reason: format!("[{}] {}", fault.code, fault.message),
            hint: of_code(&fault.code),
            exit: exit(&fault.code),
        }
    }

    /// Says it on stderr.
    pub(crate) fn tell(&self) -> Exit {
        complain(&safe(&self.reason), self.hint.as_deref().map(safe).as_deref());
        self.exit
    }
}

fn exit(code: &str) -> Exit {
    match code {
        "validation_error" => Exit::Usage,
        "unauthenticated" => Exit::NotSignedIn,
        "network_error" => Exit::NotStarted,
        _ => Exit::Ended,
    }
}

fn of_code(code: &str) -> Option<String> {
    let hint = match code {
        "unauthenticated" => {
            "keys are taken from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, ...; an agent of the protocol is \
             signed in to by its own program, or here by --acp-auth ID"
        }
        "limit_reached" => "raise --limit-turns, --limit-tokens, --limit-time or --limit-cost",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Which flag a fault of the options is about.
fn of_field(field: &str) -> Option<String> {
    let hint = match field {
        "model" | "model.id" => {
            "name a model: --model ID, or TOOLWAY_MODEL; or an agent of the protocol: --acp PRESET"
        }
        "acp" => "name the agent: --acp PRESET, or --acp-command 'CMD ARGS'",
        "local.acp.authenticate" => "the way to sign in is named by --acp-auth ID",
        field if field.starts_with("permissions.") => "rules are given by --allow and --deny",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let of = |code: &str| {
            let fault = RunFault { code: code.to_owned(), message: "m".to_owned() };
            Failure::of_run(&fault).exit.code()
        };
        let codes =
            ["validation_error", "unauthenticated", "network_error", "limit_reached", "runtime_error"];
        assert_eq!(codes.map(of), [2, 5, 4, 1, 1]);
    }

    #[test]
    fn who_is_busy_is_told_what_to_do() {
        let agent: toolway_agent::AgentId = "agent-00000000-0000-4000-8000-000000000000".parse().unwrap();
        let failure = Failure::of(&AgentError::AgentArchived { agent: agent.clone() });
        assert_eq!(failure.hint, Some(format!("toolway agent unarchive {agent}")));
    }
}
