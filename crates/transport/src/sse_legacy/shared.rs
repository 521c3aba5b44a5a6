//! What the tasks of one legacy SSE transport share, and its two kinds of requests. It must not know the order of messages.

use std::sync::Arc;

use http::{HeaderMap, Method};
use tokio::sync::mpsc;

use crate::http::HttpConfig;
use crate::http::body::Message;
use crate::http::client::{ACCEPT_ANSWER, ACCEPT_STREAM, Call, Client, Signing, read_bounded};
use crate::http::config::plain_headers;
use crate::http::conn::Answer;
use crate::http::failure::Texts;
use crate::http::flight::Flight;
use crate::http::listen::is_stream;
use crate::http::shared::Slots;
use crate::http::target::Target;
use crate::limits::{ERROR_BODY_TIME, MAX_ERROR_BODY};
use crate::transport::{Failure, Inbound, TransportError};

/// Shared by the tasks of a transport.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) target: Arc<Target>,
    pub(super) client: Client,
    pub(super) texts: Texts,
    own_stream: HeaderMap,
    public_stream: HeaderMap,
    own_post: HeaderMap,
    public_post: HeaderMap,
    pub(super) events: mpsc::Sender<Inbound>,
    pub(super) slots: Arc<Slots>,
}

impl Shared {
    pub(super) fn new(config: &HttpConfig, events: mpsc::Sender<Inbound>) -> Result<Self, TransportError> {
        let target = Arc::new(config.target()?);
        Ok(Self {
            client: Client::new(config, &target),
            target,
            texts: Texts::new(config),
            own_stream: config.own_headers(ACCEPT_STREAM)?,
            public_stream: plain_headers(ACCEPT_STREAM),
            own_post: config.own_headers(ACCEPT_ANSWER)?,
            public_post: plain_headers(ACCEPT_ANSWER),
            slots: Slots::new(config.max_in_flight, events.clone()),
            events,
        })
    }

    /// Opens the event stream.
    pub(super) async fn open(&self) -> Result<(Answer, Arc<Target>), Failure> {
        let call = Call {
            method: Method::GET,
            message: None,
            repeatable: true,
            headers: &self.own_stream,
            public: &self.public_stream,
            bound: &|_, _| {},
            signing: Signing::Full,
            flight: None,
        };
        let sent = self.client.send(&self.target, call).await;
        let (mut answer, at) = sent.map_err(|error| self.texts.call(&error, &self.target))?;
        if is_stream(&answer) {
            return Ok((answer, at));
        }
        let (body, _) = read_bounded(&mut answer, MAX_ERROR_BODY, ERROR_BODY_TIME).await;
        Err(if answer.status.is_success() {
            self.texts.not_mcp(answer.status, &answer.headers, &body, &at)
        } else {
            self.texts.refusal(&answer, &body, &at)
        })
    }

    /// Posts a message to the endpoint. The answers come on the stream.
    pub(super) async fn post(
        &self,
        endpoint: &Arc<Target>,
        message: &Message,
        flight: &Flight,
    ) -> Result<(), Failure> {
        let own = endpoint.same_origin(&self.target);
        let call = Call {
            method: Method::POST,
            message: Some(message),
            repeatable: false,
            headers: if own { &self.own_post } else { &self.public_post },
            public: &self.public_post,
            bound: &|_, _| {},
            signing: Signing::Full,
            flight: Some(flight),
        };
        let sent = self.client.send(endpoint, call).await;
        let (mut answer, at) = sent.map_err(|error| self.texts.call(&error, endpoint))?;
        let (body, _) = read_bounded(&mut answer, MAX_ERROR_BODY, ERROR_BODY_TIME).await;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(self.texts.refusal(&answer, &body, &at))
    }
}
