//! Owns what an agent lets be chosen for a session: models, modes and further settings, as it offers them, and what has to
//! be sent for a wish. Both the configuration options of the protocol and the older lists of models are understood.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::options::{Mode, ModelChoice};
use toolway_bridge::RawJson;

/// Words for "whatever the agent has chosen itself".
const OWN_CHOICE: [&str; 3] = ["", "default", "auto"];
/// So many are named in an error.
const NAMED: usize = 40;

/// What may be chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Choices {
    settings: Vec<Setting>,
    models: Vec<String>,
    model: Option<String>,
    modes: Vec<String>,
    mode: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Setting {
    id: String,
    category: String,
    current: Value,
    /// Empty: yes or no.
    values: Vec<String>,
}

/// A request that makes a wish come true.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wish {
    pub(super) method: &'static str,
    /// Without the session's id.
    pub(super) params: serde_json::Map<String, Value>,
    /// What it is about, for an error.
    pub(super) what: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ReadSession {
    config_options: Option<Vec<Value>>,
    models: Option<ReadModels>,
    modes: Option<ReadModes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadModels {
    current_model_id: Option<String>,
    #[serde(default)]
    available_models: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadModes {
    current_mode_id: Option<String>,
    #[serde(default)]
    available_modes: Vec<Value>,
}

impl Choices {
    /// Of the answer to `session/new`, `session/load` or `session/resume`. What cannot be read is not there.
    pub(super) fn read(answer: &RawJson) -> Self {
        let read: ReadSession = serde_json::from_slice(answer.bytes()).unwrap_or_default();
        let ids = |list: &[Value], name: &str| {
            list.iter().filter_map(|one| Some(one.get(name)?.as_str()?.to_owned())).collect()
        };
        let models = read.models.as_ref();
        let modes = read.modes.as_ref();
        Self {
            settings: read.config_options.unwrap_or_default().iter().filter_map(setting).collect(),
            models: models.map(|models| ids(&models.available_models, "modelId")).unwrap_or_default(),
            model: models.and_then(|models| models.current_model_id.clone()),
            modes: modes.map(|modes| ids(&modes.available_modes, "id")).unwrap_or_default(),
            mode: modes.and_then(|modes| modes.current_mode_id.clone()),
        }
    }

    /// Takes over the list that comes with an answer or an update.
    pub(super) fn update(&mut self, told: &RawJson) {
        let read: ReadSession = serde_json::from_slice(told.bytes()).unwrap_or_default();
        if let Some(settings) = read.config_options {
            self.settings = settings.iter().filter_map(setting).collect();
        }
    }

    /// The agent changed its mode.
    pub(super) fn mode_is(&mut self, mode: &str) {
        self.mode = Some(mode.to_owned());
    }

    /// What it uses now, where it tells.
    pub(super) fn model(&self) -> Option<&str> {
        self.of("model").and_then(|setting| setting.current.as_str()).or(self.model.as_deref())
    }

    fn of(&self, category: &str) -> Option<&Setting> {
        let fits = |setting: &&Setting| setting.category == category || setting.id == category;
        self.settings.iter().find(fits)
    }

    /// The request for a model, if it is not the one in use.
    ///
    /// # Errors
    /// The agent has no such model, or lets none be chosen.
    pub(super) fn wish_model(&self, model: &ModelChoice) -> Result<Option<Wish>, AgentError> {
        let id = model.id.as_str();
        if OWN_CHOICE.contains(&id) || self.model() == Some(id) {
            return Ok(None);
        }
        if let Some(setting) = self.of("model") {
            let refused = |values: &[String]| AgentError::fault("model", unknown("model", id, values));
            let value = setting.named(id).ok_or_else(|| refused(&setting.values))?;
            return Ok(Some(set(&setting.id, value, format!("the model {id}"))));
        }
        if self.models.is_empty() {
            let message = format!(
                "the agent lets no model be chosen over the protocol, so {id:?} cannot be: leave the model out (or name it \"default\") and choose in the agent's own settings"
            );
            return Err(AgentError::fault("model", message));
        }
        if !self.models.iter().any(|known| known == id) {
            return Err(AgentError::fault("model", unknown("model", id, &self.models)));
        }
        let params = serde_json::Map::from_iter([("modelId".to_owned(), json!(id))]);
        Ok(Some(Wish { method: "session/set_model", params, what: format!("the model {id}") }))
    }

    /// The requests for the model's parameters: each is a setting of the agent, by its id or category.
    ///
    /// # Errors
    /// The agent has no such setting, or the setting no such value.
    pub(super) fn wish_params(&self, model: &ModelChoice) -> Result<Vec<Wish>, AgentError> {
        let mut wishes = Vec::new();
        for (name, value) in &model.params {
            let category = match name.as_str() {
                "thinking" | "effort" | "reasoning" | "reasoningEffort" | "reasoning_effort" => {
                    "thought_level"
                }
                other => other,
            };
            let field = format!("model.params.{name}");
            let setting = self.of(name).or_else(|| self.of(category)).ok_or_else(|| {
                let names: Vec<String> = self.settings.iter().map(|setting| setting.id.clone()).collect();
                AgentError::fault(&field, unknown("setting", name, &names))
            })?;
            if setting.current == *value {
                continue;
            }
            let wished = match value {
                Value::Bool(_) if setting.values.is_empty() => Some(value.clone()),
                Value::String(text) => setting.named(text),
                other => setting.named(&other.to_string()),
            };
            let wished = wished.ok_or_else(|| {
                AgentError::fault(&field, unknown("value", &value.to_string(), &setting.values))
            })?;
            wishes.push(set(&setting.id, wished, format!("{name} = {value}")));
        }
        Ok(wishes)
    }

    /// The request for a mode, if it is not the one in use. An agent's own default is "agent"; a plan needs a mode that
    /// is named so.
    ///
    /// # Errors
    /// The agent has no mode for plans.
    pub(super) fn wish_mode(&self, mode: Mode, before: Option<&str>) -> Result<Option<Wish>, AgentError> {
        let setting = self.of("mode");
        let (known, current): (&[String], Option<&str>) = match setting {
            Some(setting) => (&setting.values, setting.current.as_str()),
            None => (&self.modes, self.mode.as_deref()),
        };
        let wanted = match mode {
            Mode::Plan => Some(
                known
                    .iter()
                    .find(|known| is_plan(known))
                    .ok_or_else(|| AgentError::fault("mode", unknown("mode for plans", "plan", known)))?,
            ),
            // Back from a plan; else the agent keeps the mode that it has chosen.
            Mode::Agent if current.is_some_and(is_plan) => known
                .iter()
                .find(|known| Some(known.as_str()) == before)
                .or_else(|| known.iter().find(|known| !is_plan(known))),
            Mode::Agent => None,
        };
        let Some(wanted) = wanted.filter(|wanted| Some(wanted.as_str()) != current) else { return Ok(None) };
        let what = format!("the mode {wanted}");
        if let Some(setting) = setting {
            return Ok(Some(set(&setting.id, json!(wanted), what)));
        }
        let params = serde_json::Map::from_iter([("modeId".to_owned(), json!(wanted))]);
        Ok(Some(Wish { method: "session/set_mode", params, what }))
    }

    /// The mode that the agent is in.
    pub(super) fn mode(&self) -> Option<&str> {
        self.of("mode").and_then(|setting| setting.current.as_str()).or(self.mode.as_deref())
    }

    /// A wish was granted.
    pub(super) fn granted(&mut self, wish: &Wish) {
        let text = |name: &str| wish.params.get(name).and_then(Value::as_str).map(str::to_owned);
        match wish.method {
            "session/set_model" => self.model = text("modelId"),
            "session/set_mode" => self.mode = text("modeId"),
            _ => {
                let id = text("configId");
                let setting = self.settings.iter_mut().find(|setting| Some(&setting.id) == id.as_ref());
                if let (Some(setting), Some(value)) = (setting, wish.params.get("value")) {
                    setting.current = value.clone();
                }
            }
        }
    }
}

fn is_plan(mode: &str) -> bool {
    let name = mode.rsplit(['#', '/', ':']).next().unwrap_or(mode);
    ["plan", "architect"].iter().any(|plan| name.eq_ignore_ascii_case(plan))
}

impl Setting {
    /// The value as the agent names it; a provider's prefix may be left out where that is no question.
    fn named(&self, wish: &str) -> Option<Value> {
        if let Some(value) = self.values.iter().find(|value| *value == wish) {
            return Some(json!(value));
        }
        let mut close =
            self.values.iter().filter(|value| value.rsplit_once('/').is_some_and(|(_, id)| id == wish));
        match (close.next(), close.next()) {
            (Some(only), None) => Some(json!(only)),
            _ => None,
        }
    }
}

fn set(id: &str, value: Value, what: String) -> Wish {
    let mut params = serde_json::Map::from_iter([("configId".to_owned(), json!(id))]);
    if value.is_boolean() {
        params.insert("type".to_owned(), json!("boolean"));
    }
    params.insert("value".to_owned(), value);
    Wish { method: "session/set_config_option", params, what }
}

fn setting(value: &Value) -> Option<Setting> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let listed = value.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let grouped = listed.iter().filter_map(|group| group.get("options")?.as_array()).flatten();
    let values = listed.iter().chain(grouped).filter_map(|one| Some(one.get("value")?.as_str()?.to_owned()));
    Some(Setting {
        id: text("id")?,
        category: text("category").unwrap_or_default(),
        current: value.get("currentValue").cloned().unwrap_or_default(),
        values: values.collect(),
    })
}

fn unknown(what: &str, name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("the agent has no {what} {name:?}, and offers none to choose from");
    }
    let mut list = known.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if known.len() > NAMED {
        list = format!("{list} and {} more", known.len() - NAMED);
    }
    format!("the agent has no {what} {name:?}; it has {list}")
}

#[cfg(test)]
mod tests;
