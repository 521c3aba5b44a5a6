//! Owns the rounds of input that a modern server asks for in place of requests: the same request again, with what was
//! asked for. The state of the server's goes back byte for byte.
//!
//! Specification 2026-07-28, "Multi round-trip requests".

use bytes::Bytes;
use toolway_transport::Payload;
use toolway_wire::find::{Step, find, members, string};

use super::exchange::{Limits, result_of};
use super::{Client, ClientError, Companion, quoted};

/// A server that asks more often than this asks for ever.
const MAX_ROUNDS: usize = 16;

impl Client {
    /// Sends a request until its result is complete; gives that, raw.
    pub(super) async fn rounds(
        &mut self,
        method: &str,
        params: &[(&str, &str)],
        companion: &mut dyn Companion,
    ) -> Result<Payload, ClientError> {
        let limits = Limits { idle: self.timeouts.call_idle, max: self.timeouts.call_max };
        let mut more: Vec<(&str, String)> = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let mut all = params.to_vec();
            all.extend(more.iter().map(|(name, value)| (*name, &**value)));
            let message = self.once(method, &all, limits, companion).await?;
            let result = result_of(&message)?;
            if message.envelope.result_type() != Some("input_required") {
                return Ok(Payload::Bytes(result));
            }
            more = answers(&result, companion)?;
        }
        Err(ClientError::Refused(format!("{method}: the server asked for input {MAX_ROUNDS} times")))
    }
}

/// What goes into the next round.
fn answers(
    result: &Bytes,
    companion: &mut dyn Companion,
) -> Result<Vec<(&'static str, String)>, ClientError> {
    let mut next = Vec::new();
    if let Some(requests) = find(result, &[Step::Key("inputRequests")]) {
        let mut responses = String::from("{");
        for member in members(result, requests) {
            let request = result.slice(member.value);
            let raw = |name: &str| Some(request.slice(find(&request, &[Step::Key(name)])?));
            let method = raw("method").and_then(|raw| string(&raw, 0..raw.len())).unwrap_or_default();
            let params = raw("params").unwrap_or_else(|| Bytes::from_static(b"{}"));
            let answer = companion.answer(&method, &params).map_err(ClientError::Failed)?;
            let name = string(result, member.name).unwrap_or_default();
            if responses.len() > 1 {
                responses.push(',');
            }
            responses.push_str(&quoted(&name));
            responses.push(':');
            responses.push_str(&String::from_utf8_lossy(&answer));
        }
        responses.push('}');
        next.push(("inputResponses", responses));
    }
    if let Some(state) = find(result, &[Step::Key("requestState")]).and_then(|at| result.get(at)) {
        next.push(("requestState", String::from_utf8_lossy(state).into_owned()));
    }
    if next.is_empty() {
        return Err(ClientError::Refused("the server wants input and does not say which".to_owned()));
    }
    Ok(next)
}
