//! Owns the parameters of a model's choice: their names, their types, and how they are told to the library. It must not
//! know messages.

use genai::chat::{ChatOptions, ReasoningEffort, ServiceTier, Verbosity};
use serde_json::Value;

use super::facts::{ModelFacts, Prices};
use crate::error::{AgentError, Fault};
use crate::options::ModelChoice;

pub(super) const NAMES: &str = "temperature, topP, maxTokens, stop, seed, reasoningEffort, verbosity, serviceTier, extra, \
                     baseUrl, contextWindow, images, prices";
/// The words for how much a model thinks.
const EFFORTS: &str = "none, minimal, low, medium, high, xhigh, max, or a number of tokens";

/// What the parameters say.
#[derive(Debug, Clone, Default)]
pub(super) struct Params {
    pub(super) options: ChatOptions,
    /// Another address of the service.
    pub(super) base_url: Option<String>,
    facts: Facts,
}

#[derive(Debug, Clone, Default)]
struct Facts {
    context: Option<u64>,
    images: Option<bool>,
    prices: Option<Prices>,
}

impl Params {
    /// Reads them; all that is wrong is told at once.
    pub(super) fn of(choice: &ModelChoice) -> Result<Self, AgentError> {
        let mut this = Self::default();
        let faults: Vec<Fault> = choice
            .params
            .iter()
            .filter_map(|(name, value)| {
                let message = this.set(name, value).err()?;
                Some(Fault { subject: None, field: format!("model.params.{name}"), message })
            })
            .collect();
        if faults.is_empty() { Ok(this) } else { Err(AgentError::Configuration(faults)) }
    }

    /// What the parameters say of the model, over what is known of it.
    pub(super) fn facts(&self, known: ModelFacts) -> ModelFacts {
        ModelFacts {
            images: self.facts.images.unwrap_or(known.images),
            context: self.facts.context.or(known.context),
            prices: self.facts.prices.or(known.prices),
        }
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let options = &mut self.options;
        match camel(name).as_str() {
            "temperature" => options.temperature = Some(number(value)?),
            "topP" => options.top_p = Some(number(value)?),
            "maxTokens" | "maxOutputTokens" => options.max_tokens = Some(count(value)?),
            "seed" => options.seed = Some(value.as_u64().ok_or("it must be a whole number")?),
            "stop" | "stopSequences" => options.stop_sequences = texts(value)?,
            "reasoningEffort" | "effort" => options.reasoning_effort = Some(effort(value)?),
            "verbosity" => {
                let word = value.as_str().and_then(Verbosity::from_keyword);
                options.verbosity = Some(word.ok_or("it must be low, medium or high")?);
            }
            "serviceTier" => {
                let word = value.as_str().and_then(ServiceTier::from_keyword);
                options.service_tier = Some(word.ok_or("it must be flex, auto or default")?);
            }
            "extra" => {
                if !value.is_object() {
                    return Err(
                        "it must be an object: members for the request, as the service names them".to_owned()
                    );
                }
                options.extra_body = Some(value.clone());
            }
            "baseUrl" | "baseURL" => {
                self.base_url = Some(value.as_str().ok_or("it must be a text")?.to_owned());
            }
            "contextWindow" => self.facts.context = Some(count(value)?.into()),
            "images" => self.facts.images = Some(value.as_bool().ok_or("it must be true or false")?),
            "prices" => self.facts.prices = Some(prices(value)?),
            _ => return Err(format!("there is no such parameter: there are {NAMES}")),
        }
        Ok(())
    }
}

/// `max_tokens` is `maxTokens`.
fn camel(name: &str) -> String {
    let mut upper = false;
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '_' | '-' => upper = !out.is_empty(),
            _ if upper => {
                out.push(letter.to_ascii_uppercase());
                upper = false;
            }
            _ => out.push(letter),
        }
    }
    out
}

fn number(value: &Value) -> Result<f64, String> {
    value
        .as_f64()
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "it must be a number of at least 0".to_owned())
}

fn count(value: &Value) -> Result<u32, String> {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| *number > 0)
        .ok_or_else(|| "it must be a whole number above 0".to_owned())
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    let fault = || "it must be a text or a list of texts".to_owned();
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(fault)).collect()
        }
        _ => Err(fault()),
    }
}

fn effort(value: &Value) -> Result<ReasoningEffort, String> {
    let budget = value.as_u64().and_then(|tokens| u32::try_from(tokens).ok()).map(ReasoningEffort::Budget);
    value
        .as_str()
        .and_then(ReasoningEffort::from_keyword)
        .or(budget)
        .ok_or_else(|| format!("it must be one of {EFFORTS}"))
}

fn prices(value: &Value) -> Result<Prices, String> {
    let fault = || {
        "it must be an object {input, output, cacheRead?, cacheWrite?} in US dollars for a million tokens"
            .to_owned()
    };
    let price = |name: &str| match value.get(name) {
        None => Ok(None),
        Some(price) => price.as_f64().filter(|price| *price >= 0.0).map(Some).ok_or_else(fault),
    };
    let (input, output) = (price("input")?.ok_or_else(fault)?, price("output")?.ok_or_else(fault)?);
    Ok(Prices {
        input,
        output,
        cache_read: price("cacheRead")?.unwrap_or(input),
        cache_write: price("cacheWrite")?.unwrap_or(input),
    })
}
