//! Owns the first prompt of an agent: boundary, manifest, system instructions, transcript, closing, tail guard.

use super::budget::Demand;
use super::tail::{self, Occasion, plan_rule};
use super::transcript::{self, HEADING};
use super::{Prompt, PromptInput, joined};

/// Everything that an agent must know which was sent nothing yet.
///
/// The sections come in a fixed order with an empty line between them. If a budget is set, all of them and the latest user
/// message are sent in any case; of the other messages come the newest, up to the first that does not fit.
pub fn bootstrap(input: &PromptInput<'_>) -> Prompt {
    let latest = input.messages.iter().rposition(super::Message::is_user);
    let images =
        latest.and_then(|latest| input.messages.get(latest)).map(transcript::images).unwrap_or_default();
    let entries: Vec<String> = input
        .messages
        .iter()
        .enumerate()
        .map(|(place, message)| transcript::entry(input.profile, message, latest == Some(place)))
        .collect();
    let boundary = boundary(input);
    let tail = tail::guard(input, Occasion::Bootstrap);
    let compose = |transcript: &str| {
        let manifest = input.manifest.unwrap_or_default();
        joined(&[&boundary, manifest, input.system, transcript, CLOSING, &tail])
    };
    let costs: Vec<usize> = entries.iter().map(|entry| cost(entry)).collect();
    let fit = Demand {
        entries: &costs,
        kept: latest,
        fixed: compose("").chars().count() + cost(HEADING),
        notice: cost(&notice(entries.len())),
        images: images.len(),
        budget_tokens: input.budget_tokens,
    }
    .fit();
    let missing = (fit.omitted > 0).then(|| notice(fit.omitted));
    let shown = entries.iter().zip(&fit.shown).filter(|(_, shown)| **shown).map(|(entry, _)| entry.as_str());
    let body: Vec<&str> = missing.as_deref().into_iter().chain(shown).collect();
    let body = joined(&body);
    let transcript = if body.is_empty() { String::new() } else { joined(&[HEADING, &body]) };
    Prompt { text: compose(&transcript), images, omitted: fit.omitted }
}

const CLOSING: &str = "Now answer the latest request of the user, with the tools that this run offers you and with nothing else.";

/// The characters of an entry and of the empty line before it.
fn cost(entry: &str) -> usize {
    if entry.is_empty() { 0 } else { entry.chars().count() + 2 }
}

fn notice(omitted: usize) -> String {
    let messages =
        if omitted == 1 { "1 earlier message is" } else { &format!("{omitted} earlier messages are") };
    format!("[{messages} left out here: they did not fit.]")
}

/// The boundary block alone: what can be called and what cannot.
pub fn boundary(input: &PromptInput<'_>) -> String {
    let host = input.profile.host;
    let mut lines = vec![
        "Tools in this run".to_owned(),
        "- Call only tools that are really offered to you in this run, by exactly the names under which they are offered. \
         Names, ids and labels of tools in the conversation below belong to the past; none of them can be called."
            .to_owned(),
    ];
    if !input.exposed.is_empty() {
        lines.push(format!(
            "- Tools of the bridge to {host} are called by the names that begin with `{}`, never by the names that \
             {host} shows for them.",
            input.profile.prefix
        ));
    }
    lines.push(format!(
        "- Do not say that you used a {host} tool, searched the web or fetched a page unless such a tool really ran in this \
         run."
    ));
    if input.plan_mode {
        lines.push(format!("- {}", plan_rule(input)));
    }
    lines.push(
        "- Of all images in the conversation, only those of the latest user message are sent.".to_owned(),
    );
    if input.manifest.is_some_and(|manifest| !manifest.trim().is_empty()) {
        lines.push("- The surfaces of this run are listed below.".to_owned());
    }
    lines.join("\n")
}
