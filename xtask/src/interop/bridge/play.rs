//! The steps that one client takes at the bridge, and whether it saw what stands beside them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{expect, printed};
use crate::interop::client::{Client, Target};
use crate::interop::transcript;
use crate::interop::{DEADLINE, Stage};
use crate::process::Step;

/// A client with its steps.
#[derive(Debug)]
pub(in crate::interop) struct Play {
    client: Client,
    steps: Vec<Value>,
    /// What starts it; `{url}` is in place of the address.
    pub(in crate::interop) command: Vec<String>,
}

impl Play {
    /// The steps are written to that file.
    pub(in crate::interop) fn prepare(
        stage: &Stage,
        client: Client,
        steps: &Value,
        file: &Path,
    ) -> Result<Self> {
        let steps = steps.as_array().context("a scenario has steps")?;
        let own = steps.iter().filter(|step| is_for(step, client));
        let steps = own.map(repeated).collect::<Result<Vec<Value>>>()?;
        fs::write(file, json!({ "steps": steps }).to_string())?;
        let command = client.play(stage, file, &Target::Http("{url}".to_owned()))?.words();
        Ok(Self { client, steps, command })
    }

    /// One line for each step that ended otherwise; `tools` are those of the host, with what they answer.
    pub(in crate::interop) fn problems(&self, agent: &Value, tools: &Value) -> Result<Vec<String>> {
        let transcript = printed(agent)?;
        let transcript: Value = serde_json::from_str(transcript).context("the client wrote no transcript")?;
        let mut found = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let came = &transcript["steps"][index];
            let problems = match step["saved"].as_str() {
                Some(tool) => transcript::large(&answer_of(tools, tool), came),
                None => expect::problems(self.wanted(step), came),
            };
            let place = format!("{}: {}", self.client.name(), transcript::name_of(index, step));
            found.extend(problems.into_iter().map(|problem| format!("{place}: {problem}")));
        }
        Ok(found)
    }

    /// One line for each difference between what the client saw at the bridge and what it sees at an ordinary server
    /// with the same tools. Steps that say `"plain": false` are about what only a bridge has.
    pub(super) fn unlike_plain(&self, url: &str, agent: &Value) -> Result<Vec<String>> {
        let words: Vec<String> = self.command.iter().map(|word| word.replace("{url}", url)).collect();
        let (program, arguments) = words.split_first().context("a client has a command")?;
        let output = Step::new(program).args(arguments).output(DEADLINE).context("at the ordinary server")?;
        let both = [&output, printed(agent)?].map(serde_json::from_str::<Value>);
        let [Ok(plain), Ok(bridged)] = both else { bail!("the client wrote no transcript") };
        let compared = |steps: &[Value]| -> Vec<Value> {
            let own = self.steps.iter().zip(steps).filter(|(step, _)| step["plain"] != false);
            own.map(|(_, value)| without_default(value)).collect()
        };
        let transcript = |whole: &Value| {
            let steps = whole["steps"].as_array().map_or(&[][..], Vec::as_slice);
            json!({ "server": null, "steps": compared(steps), "events": whole["events"] })
        };
        let mut steps = compared(&self.steps);
        for step in &mut steps {
            step["expect"] = "either".into();
        }
        transcript::differences(&json!({ "steps": steps }), &transcript(&plain), &transcript(&bridged))
    }

    /// Clients may show one thing in several ways: then each has its own.
    fn wanted<'a>(&self, step: &'a Value) -> &'a Value {
        let members = step["want"].as_object().into_iter().flatten();
        let mut own = members.filter(|(name, _)| self.client.name().starts_with(name.as_str()));
        own.next().map_or(&step["want"], |(_, want)| want)
    }
}

/// `isError: false` is what a result without it says too: some servers write it.
fn without_default(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| *name != "isError" || **value != false);
            Value::Object(kept.map(|(name, value)| (name.clone(), without_default(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_default).collect()),
        other => other.clone(),
    }
}

/// A step may be for clients of one language, or of one generation of the protocol, only.
fn is_for(step: &Value, client: Client) -> bool {
    match step["only"].as_str() {
        Some("legacy") => !client.is_probing(),
        Some(language) => client.name().starts_with(language),
        None => true,
    }
}

/// A step of `count` calls at once is written once; the number of each call stands where `{n}` is.
fn repeated(step: &Value) -> Result<Value> {
    let Some(count) = step["count"].as_u64() else { return Ok(step.clone()) };
    let copies = |value: &Value| -> Result<Vec<Value>> {
        let text = value.to_string();
        let copy = |n: u64| text.replace("\"{n}\"", &n.to_string()).replace("{n}", &n.to_string());
        (0..count).map(|n| serde_json::from_str(&copy(n)).context("a call with its number")).collect()
    };
    let (calls, want) = (copies(&step["call"])?, copies(&step["want"])?);
    Ok(json!({ "do": "calls", "calls": calls, "want": { "result": want } }))
}

/// What the tool of this name answers, as a client has it without a limit.
fn answer_of(tools: &Value, name: &str) -> Value {
    let mut named = tools.as_array().into_iter().flatten().filter(|tool| tool["name"] == name);
    json!({ "result": { "content": named.next().map(|tool| &tool["does"]["content"]) } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_repeated_and_chosen_by_client() {
        let step = json!({
            "do": "calls", "count": 2, "call": { "tool": "t", "args": { "n": "{n}" } }, "want": { "text": "n is {n}" },
        });
        let want = json!({
            "do": "calls",
            "calls": [{ "tool": "t", "args": { "n": 0 } }, { "tool": "t", "args": { "n": 1 } }],
            "want": { "result": [{ "text": "n is 0" }, { "text": "n is 1" }] },
        });
        assert_eq!(repeated(&step).unwrap(), want);
        for (only, is_there) in [("legacy", false), ("python", true), ("typescript", false)] {
            assert_eq!(is_for(&json!({ "only": only }), Client::Python2Auto), is_there, "{only}");
        }
    }

    #[test]
    fn a_client_has_its_own_expectation_before_that_of_all() {
        let play = |client| Play { client, steps: Vec::new(), command: Vec::new() };
        let step = json!({ "want": { "python-1": { "a": 1 }, "python-2": { "a": 2 } } });
        assert_eq!(play(Client::Python2Auto).wanted(&step), &json!({ "a": 2 }));
        assert_eq!(play(Client::Python1).wanted(&step), &json!({ "a": 1 }));
        assert_eq!(
            play(Client::Python1).wanted(&json!({ "want": { "result": 1 } })),
            &json!({ "result": 1 })
        );
    }
}
