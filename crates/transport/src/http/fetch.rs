//! Owns one plain GET of a document that is no MCP message, such as a configuration. It must not know what is in it.

use http::Method;
use tokio::time::timeout;

use super::client::{Call, Client, Signing};
use super::config::{HttpConfig, plain_headers};
use super::failure::Texts;

/// What a document may be.
const ACCEPT: &str = "application/json, text/plain;q=0.9, */*;q=0.1";
/// How much of a refusal is read, for its reason.
const REFUSAL: usize = 16 << 10;

/// The document at the configured address, of at most `limit` bytes. Redirects are followed, and configured headers go
/// to the first origin only. The error is a fragment without secrets.
pub async fn fetch(config: &HttpConfig, limit: usize) -> Result<Vec<u8>, String> {
    let target = std::sync::Arc::new(config.target().map_err(|error| error.to_string())?);
    let headers = config.own_headers(ACCEPT).map_err(|error| error.to_string())?;
    let texts = Texts::new(config);
    let client = Client::new(config, &target);
    let call = Call {
        method: Method::GET,
        message: None,
        repeatable: true,
        headers: &headers,
        public: &plain_headers(ACCEPT),
        bound: &|_, _| {},
        signing: Signing::Quiet,
        flight: None,
    };
    let (mut answer, at) =
        client.send(&target, call).await.map_err(|error| texts.call(&error, &target).message)?;
    let limit = if answer.status.is_success() { limit } else { limit.min(REFUSAL) };
    let mut document = Vec::new();
    loop {
        match timeout(config.timeout, answer.body.next()).await {
            Ok(None) => break,
            Ok(Some(Ok(bytes))) => document.extend_from_slice(&bytes),
            Ok(Some(Err(error))) => {
                return Err(format!("the connection was lost within the document: {error}"));
            }
            Err(_elapsed) => {
                return Err(format!("{at} sends nothing more within {} s", config.timeout.as_secs()));
            }
        }
        if document.len() > limit {
            if !answer.status.is_success() {
                document.truncate(limit);
                break;
            }
            return Err(format!("the document at {at} is larger than {limit} bytes"));
        }
    }
    if !answer.status.is_success() {
        return Err(texts.status(answer.status, &answer.headers, &document, &at).message);
    }
    Ok(document)
}
