//! Owns signing in to an agent, and what is said where nobody has.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Broken, Live};
use crate::acp::frame::{AUTH_REQUIRED, RpcError};
use crate::error::AgentError;

impl Live {
    /// Signs in to it by the way that was chosen, where one was.
    pub(super) async fn sign_in(&mut self, cancel: &CancellationToken) -> Result<(), Broken> {
        let Some(way) = self.command.authenticate.clone() else { return Ok(()) };
        if !self.about.ways_in.iter().any(|offered| offered.id == way) {
            let why =
                self.teller.say(&format!("it offers no way to sign in named {way:?}{}", self.ways_in()));
            return Err(Broken::Refused(AgentError::fault("local.acp.authenticate", why)));
        }
        let within = self.command.timeouts.sign_in;
        let answer = self.ask("authenticate", &json!({"methodId": way}), within, cancel).await?;
        match answer {
            Ok(_) => Ok(()),
            Err(error) => {
                let why = format!("it could not be signed in to by {way:?}: {}", error.text());
                Err(Broken::Refused(AgentError::Authentication { message: self.teller.say(&why) }))
            }
        }
    }

    /// The ways to sign in that it offers, as the end of a sentence.
    fn ways_in(&self) -> String {
        let ways: Vec<String> =
            self.about.ways_in.iter().map(|way| format!("{:?} ({})", way.id, way.text)).collect();
        if ways.is_empty() {
            "; it offers none".to_owned()
        } else {
            format!("; it offers {}", ways.join(", "))
        }
    }

    /// An error of the agent's, as ours.
    pub(in crate::acp) fn refusal(&self, what: &str, error: &RpcError) -> AgentError {
        if !is_about_signing_in(error) {
            return self.teller.failure_of(&format!("it {what}: {}", error.text()), &self.peer);
        }
        let mut advice: Vec<String> =
            self.command.preset.map(|preset| preset.sign_in.to_owned()).into_iter().collect();
        if !self.about.ways_in.is_empty() && self.command.authenticate.is_none() {
            advice.push(format!("name a way to sign in as `authenticate`{}", self.ways_in()));
        }
        let advice = if advice.is_empty() { String::new() } else { format!(" ({})", advice.join("; or ")) };
        let message = self.teller.say(&format!("nobody is signed in to it: {}{advice}", error.text()));
        AgentError::Authentication { message }
    }
}

pub(super) fn is_about_signing_in(error: &RpcError) -> bool {
    let text = error.text().to_ascii_lowercase();
    let words =
        ["authentication required", "not authenticated", "not logged in", "please log in", "login required"];
    error.code == AUTH_REQUIRED || words.iter().any(|words| text.contains(words))
}
