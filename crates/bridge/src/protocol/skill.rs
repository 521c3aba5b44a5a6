//! Owns the activation of skills: for an agent whose call the bridge answers itself, and for a host's own tool.

use serde_json::Value;
use toolway_wire::Id;

use super::answers::{SkillActivated, SkillGiven};
use super::connection::{Connection, Done, Outcome, Reply};
use super::fault::Fault;
use super::requests::ActivateSkill;
use crate::call::{HostCall, HostResult};
use crate::json::RawJson;
use crate::run::Run;
use crate::skills::{SkillList, activate};

/// What an agent gives for a skill's name is told in so many characters.
const MOST_OF_A_NAME: usize = 256;

impl Connection {
    /// An agent calls the tool that the bridge itself has: it is answered, and the host told of it.
    pub(super) fn answer_activation(&mut self, owner: String, list: SkillList, run: Run, call: HostCall) {
        self.work.spawn(async move {
            let (result, details) = activation(&list, &call.arguments).await;
            let is_error = result.is_error;
            run.settle(&call.id, result);
            let asked = call.arguments.tree();
            let skill = asked.get("name").and_then(Value::as_str).unwrap_or_default();
            let skill = skill.chars().take(MOST_OF_A_NAME).collect();
            let activated = SkillActivated {
                session: owner,
                run: run.id().to_owned(),
                call: call.id.to_string(),
                skill,
                is_error,
                details,
            };
            Done { id: None, outcome: Outcome::Activated(Box::new(activated)) }
        });
    }

    /// The host's own tool for it was called.
    pub(super) fn activate_skill(&mut self, params: ActivateSkill, id: Option<Id>) -> Result<Reply, Fault> {
        let ActivateSkill { session, arguments } = params;
        let list = self.session(&session)?.skills_of_agent();
        self.work.spawn(async move {
            let (HostResult { content, is_error }, details) = activation(&list, &arguments).await;
            let given = SkillGiven { content, is_error, details };
            Done { id, outcome: Outcome::Answer(Ok(Box::new(given))) }
        });
        Ok(Reply::Later)
    }
}

/// The result, and what a host may show of it.
async fn activation(list: &SkillList, arguments: &RawJson) -> (HostResult, Value) {
    match activate(list, arguments).await {
        Ok(activation) => {
            (activation.result(), serde_json::to_value(&activation.details).unwrap_or_default())
        }
        Err(error) => (error.result(), Value::Null),
    }
}
