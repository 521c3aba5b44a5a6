//! Owns what an editor may choose for a session: the mode and the model, as modes and as options of the protocol.

use serde_json::{Value, json};

use super::session::EditorSession;
use super::{EditorOptions, Outcome, Shared};
use crate::acp::frame::{INVALID_PARAMS, RpcError};
use crate::options::Mode;

const MODES: [(Mode, &str, &str, &str); 2] = [
    (Mode::Agent, "agent", "Agent", "Does the work"),
    (Mode::Plan, "plan", "Plan", "Looks and makes a plan; changes nothing"),
];

fn mode_id(mode: Mode) -> &'static str {
    MODES.iter().find(|(known, ..)| *known == mode).map_or("agent", |(_, id, ..)| id)
}

/// What may be chosen, and what is.
pub(super) fn told(session: &EditorSession, offered: &EditorOptions) -> Value {
    let modes: Vec<Value> = MODES
        .iter()
        .map(|(_, id, name, description)| json!({"id": id, "name": name, "description": description}))
        .collect();
    json!({
        "modes": {"currentModeId": mode_id(session.mode()), "availableModes": modes},
        "configOptions": options(session, offered),
    })
}

/// Editors that know options leave the modes alone, so the mode is among them.
fn options(session: &EditorSession, offered: &EditorOptions) -> Vec<Value> {
    let modes: Vec<Value> = MODES
        .iter()
        .map(|(_, id, name, description)| json!({"value": id, "name": name, "description": description}))
        .collect();
    let mode = json!({
        "id": "mode", "name": "Mode", "category": "mode", "type": "select",
        "currentValue": mode_id(session.mode()), "options": modes,
    });
    let model = session.model().map(|current| {
        let models: Vec<Value> =
            models(&current, offered).iter().map(|id| json!({"value": id, "name": id})).collect();
        json!({
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": current, "options": models,
        })
    });
    std::iter::once(mode).chain(model).collect()
}

fn models(current: &str, offered: &EditorOptions) -> Vec<String> {
    let first = offered.agent.model.as_ref().map(|model| model.id.clone());
    let mut models: Vec<String> = Vec::new();
    for id in first.into_iter().chain(offered.models.iter().cloned()).chain([current.to_owned()]) {
        if !models.contains(&id) {
            models.push(id);
        }
    }
    models
}

impl Shared {
    /// `session/set_mode`.
    pub(super) async fn set_mode(&self, params: &Value) -> Outcome {
        let session = self.session(params)?;
        choose_mode(&session, text(params, "modeId"))?;
        let update = json!({
            "sessionUpdate": "config_option_update", "configOptions": options(&session, &self.options),
        });
        self.outlet.update(session.id(), &update).await;
        Ok(json!({}))
    }

    /// `session/set_config_option`.
    pub(super) async fn set_option(&self, params: &Value) -> Outcome {
        let session = self.session(params)?;
        let value = text(params, "value");
        match text(params, "configId") {
            "mode" => {
                choose_mode(&session, value)?;
                let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": value});
                self.outlet.update(session.id(), &update).await;
            }
            "model" => match session.model() {
                Some(current) if models(&current, &self.options).iter().any(|known| known == value) => {
                    session.set_model(value);
                }
                _ => return Err(refused("model", value)),
            },
            other => return Err(refused("option", other)),
        }
        Ok(json!({"configOptions": options(&session, &self.options)}))
    }
}

fn choose_mode(session: &EditorSession, id: &str) -> Result<(), RpcError> {
    let known = MODES.iter().find(|(_, known, ..)| *known == id).ok_or_else(|| refused("mode", id))?;
    session.set_mode(known.0);
    Ok(())
}

fn refused(what: &str, id: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("there is no {what} {id:?}"))
}

fn text<'a>(params: &'a Value, name: &str) -> &'a str {
    params.get(name).and_then(Value::as_str).unwrap_or_default()
}
