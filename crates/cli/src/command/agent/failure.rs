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
            hint: of_code(&fault.code).or_else(|| of_limit(&fault.message)),
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
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Which flag a fault of the options is about.
/// The option by which a limit is raised that a message names. A model that is stopped for turning in circles reached none.
fn of_limit(message: &str) -> Option<String> {
    let option = ["turns", "tokens", "time", "cost"];
    let named = option.into_iter().find(|name| message.contains(&format!("`limits.{name}`")))?;
    Some(format!("raise --limit-{named}"))
}

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
    fn a_limit_names_its_option_and_a_model_that_turns_in_circles_none() {
        let of = |message: &str| {
            let fault = RunFault { code: "limit_reached".to_owned(), message: message.to_owned() };
            Failure::of_run(&fault).hint
        };
        assert_eq!(of("its limit of 3: raise `limits.turns`").as_deref(), Some("raise --limit-turns"));
        assert_eq!(of("the model wrote the same 16384 bytes"), None);
    }

    #[test]
    fn who_is_busy_is_told_what_to_do() {
        let agent: toolway_agent::AgentId = "agent-00000000-0000-4000-8000-000000000000".parse().unwrap();
        let failure = Failure::of(&AgentError::AgentArchived { agent: agent.clone() });
        assert_eq!(failure.hint, Some(format!("toolway agent unarchive {agent}")));
    }
}
