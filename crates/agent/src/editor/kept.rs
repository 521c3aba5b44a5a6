//! Owns sessions that are kept: their list, their removal, and what was said in them, told again.

use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;

use super::outlet::Outlet;
use super::showing::{self, Showing};
use super::{Outcome, fault, no_session};
use crate::acp::frame::{INVALID_PARAMS, RpcError};
use crate::agent::Agent;
use crate::id::AgentId;
use crate::options::AgentOptions;
use crate::store::{AgentRecord, Cursor, Page};

/// Sessions that are told at a time.
const PAGE: usize = 100;
/// So many of the last prompts are told again.
const REPEATED: usize = 200;

/// `session/list`: the youngest first, those of one folder where one is named.
pub(super) async fn list(options: &AgentOptions, params: &Value) -> Outcome {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let after = match text("cursor") {
        Some(text) => Some(cursor(text).ok_or_else(|| {
            RpcError::new(INVALID_PARAMS, format!("cursor: {text:?} is none that was told"))
        })?),
        None => None,
    };
    let page = Page { limit: PAGE, after, include_archived: false };
    let list = Agent::list(options, page).await.map_err(|error| fault(&error))?;
    let of_folder = |agent: &&AgentRecord| text("cwd").is_none_or(|cwd| cwd == agent.cwd);
    let sessions: Vec<Value> = list.items.iter().filter(of_folder).map(described).collect();
    let mut told = json!({"sessions": sessions});
    if let (Some(next), Some(told)) = (list.next, told.as_object_mut()) {
        told.insert("nextCursor".to_owned(), json!(format!("{}:{}", next.at, next.id)));
    }
    Ok(told)
}

fn cursor(text: &str) -> Option<Cursor> {
    let (at, id) = text.split_once(':')?;
    Some(Cursor { at: at.parse().ok()?, id: id.to_owned() })
}

fn described(agent: &AgentRecord) -> Value {
    json!({
        "sessionId": agent.id,
        "cwd": agent.cwd,
        "title": agent.name,
        "updatedAt": agent.updated_at.format(&Rfc3339).ok(),
    })
}

/// `session/delete`. What is not there is removed already.
pub(super) async fn delete(options: &AgentOptions, id: &str) -> Outcome {
    let id: AgentId = id.parse().map_err(|_| no_session(id))?;
    match Agent::delete(&id, options).await {
        Ok(()) | Err(crate::error::AgentError::AgentNotFound { .. }) => Ok(json!({})),
        Err(error) => Err(fault(&error)),
    }
}

/// Tells again what was said and done, the oldest first.
pub(super) async fn repeat(options: &AgentOptions, id: &AgentId, outlet: &Outlet) -> Result<(), RpcError> {
    let page = Page { limit: REPEATED, ..Page::default() };
    let runs = Agent::list_runs(id, options, page).await.map_err(|error| fault(&error))?;
    if runs.next.is_some() {
        let note = format!("(What was said before the last {REPEATED} prompts is not shown here.)\n\n");
        outlet.update(id.as_str(), &showing::message(&note)).await;
    }
    let cwd = options.work_machine().cwd().to_owned();
    for record in runs.items.iter().rev() {
        let run = Agent::get_run(id, &record.id, options).await.map_err(|error| fault(&error))?;
        let mut showing = Showing::new(cwd.clone());
        for event in run.conversation().await.map_err(|error| fault(&error))? {
            for update in showing.repeated(event.kind) {
                outlet.update(id.as_str(), &update).await;
            }
        }
        for update in showing.finish("this call did not end") {
            outlet.update(id.as_str(), &update).await;
        }
    }
    Ok(())
}
