//! Owns tokens: how a server's answer gives them, how long they are good, how they are attached. It asks nobody.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use oauth2::basic::BasicTokenType;
use oauth2::{AccessToken, RefreshToken, Scope, TokenResponse};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use toolway_secret::Secret;

use crate::settings::scopes_of;

/// No token is believed to be good for longer; what is longer is looked at again then.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// Tokens as they are kept.
#[derive(Clone)]
pub(crate) struct Tokens {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    /// When they were asked for, by this machine's clock, in milliseconds since 1970.
    pub(crate) obtained_at_ms: u64,
    /// For how long the access token is good; `None`: until it is refused.
    pub(crate) expires_in: Option<Duration>,
    /// What was granted.
    pub(crate) scopes: Vec<String>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("refresh", &self.refresh.is_some())
            .field("obtained_at_ms", &self.obtained_at_ms)
            .field("expires_in", &self.expires_in)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// Of an answer to what was asked then: the answer may have been long on its way. `asked` are the scopes where it does
    /// not say which (RFC 6749, 5.1), `refresh` the token that stays where it gives no other (RFC 6749, 6).
    pub(crate) fn of(
        reply: &TokenReply,
        asked_at_ms: u64,
        asked: &[String],
        refresh: Option<&Secret>,
    ) -> Self {
        // Some send an empty one where they mean none.
        let new =
            reply.refresh_token.as_ref().map(|token| token.secret().as_str()).filter(|new| !new.is_empty());
        let new = new.map(Secret::in_use);
        Self {
            access: Secret::in_use(reply.access_token.secret().as_str()),
            refresh: new.or_else(|| refresh.cloned()),
            obtained_at_ms: asked_at_ms,
            expires_in: reply.life(),
            scopes: reply.scope.as_deref().map_or_else(|| asked.to_vec(), scopes_of),
        }
    }

    /// For how long the access token is still good: `None` is until it is refused. Where the clock went back behind the
    /// moment the token came, its age is not known, and the server is asked by using it.
    pub(crate) fn left(&self, at_ms: u64) -> Option<Duration> {
        let life = self.expires_in?;
        let age = at_ms.checked_sub(self.obtained_at_ms)?;
        Some(life.saturating_sub(Duration::from_millis(age)))
    }

    /// `Bearer TOKEN`; `None` where the token is empty, or holds what no token has (RFC 6750, 2.1): a header could be
    /// split with it.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let text = self.access.expose();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut text = String::with_capacity(self.access.expose().len() + 7);
        text.push_str("Bearer ");
        text.push_str(self.access.expose());
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// How long before its end a token is renewed: so that one which is sent is still good when it arrives.
pub(crate) fn margin(life: Duration) -> Duration {
    Duration::from_secs(30).min(life / 10)
}

/// This machine's clock, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The same in milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An answer of the token endpoint (RFC 6749, 5.1), read with patience: servers send numbers as texts, and null.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TokenReply {
    access_token: AccessToken,
    #[serde(default = "bearer_type", deserialize_with = "bearer")]
    token_type: BasicTokenType,
    #[serde(default)]
    expires_in: Option<Value>,
    #[serde(default)]
    refresh_token: Option<RefreshToken>,
    #[serde(default)]
    scope: Option<String>,
}

impl TokenReply {
    fn life(&self) -> Option<Duration> {
        let seconds = match self.expires_in.as_ref()? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        // A life that is over at once says nothing: the token would be renewed for ever.
        if !seconds.is_finite() || seconds < 1.0 {
            return None;
        }
        Some(Duration::try_from_secs_f64(seconds.floor()).unwrap_or(LONGEST).min(LONGEST))
    }

    /// It can be attached as a bearer token.
    pub(crate) fn is_bearer(&self) -> bool {
        self.token_type == BasicTokenType::Bearer
    }
}

fn bearer_type() -> BasicTokenType {
    BasicTokenType::Bearer
}

fn bearer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BasicTokenType, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(match text.as_deref() {
        Some(text) if text.eq_ignore_ascii_case("mac") => BasicTokenType::Mac,
        Some(text) if !text.eq_ignore_ascii_case("bearer") => BasicTokenType::Extension(text.to_owned()),
        _ => BasicTokenType::Bearer,
    })
}

impl TokenResponse for TokenReply {
    type TokenType = BasicTokenType;

    fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    fn token_type(&self) -> &BasicTokenType {
        &self.token_type
    }

    fn expires_in(&self) -> Option<Duration> {
        self.life()
    }

    fn refresh_token(&self) -> Option<&RefreshToken> {
        self.refresh_token.as_ref()
    }

    fn scopes(&self) -> Option<&Vec<Scope>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn life(expires_in: &Value) -> Option<u64> {
        let reply = json!({"access_token": "a", "token_type": "bearer", "expires_in": expires_in});
        let reply: TokenReply = serde_json::from_value(reply).unwrap();
        reply.life().map(|life| life.as_secs())
    }

    #[test]
    fn lives_are_read_whatever_they_are_written_as() {
        assert_eq!(life(&json!(3600)), Some(3600));
        assert_eq!(life(&json!("3600")), Some(3600));
        assert_eq!(life(&json!(3599.9)), Some(3599));
        for unknown in
            [json!(null), json!(0), json!(-5), json!("soon"), json!(true), json!("-1"), json!("NaN")]
        {
            assert_eq!(life(&unknown), None, "{unknown}");
        }
        for long in [json!(1e300), json!(u64::MAX), json!("99999999999999999999999")] {
            assert_eq!(life(&long), Some(LONGEST.as_secs()), "{long}");
        }
    }

    #[test]
    fn a_clock_that_went_back_makes_no_token_old_or_young() {
        let reply = json!({"access_token": "a", "expires_in": 100});
        let mut tokens = Tokens::of(&serde_json::from_value(reply).unwrap(), now_ms(), &[], None);
        tokens.obtained_at_ms = 1_000_000;
        assert_eq!(tokens.left(1_040_500), Some(Duration::from_millis(59_500)));
        assert_eq!(tokens.left(9_999_999), Some(Duration::ZERO));
        assert_eq!(tokens.left(10), None);
    }

    #[test]
    fn neither_an_answer_nor_tokens_can_be_printed() {
        let reply = json!({"access_token": "s3cret-a", "refresh_token": "s3cret-r", "token_type": null});
        let reply: TokenReply = serde_json::from_value(reply).unwrap();
        let tokens = Tokens::of(&reply, now_ms(), &[], None);
        let printed = format!("{reply:?} {tokens:?} {:?}", tokens.header().unwrap());
        assert!(!printed.contains("s3cret"), "{printed}");
        assert!(reply.is_bearer());
    }
}
