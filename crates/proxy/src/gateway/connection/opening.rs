//! Owns the way from a definition to a connection: which transport, which generation, and why not. What it leaves behind
//! when it fails is given back, to be closed.

use std::sync::Arc;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_transport::{Failure, HttpConfig, HttpTransport, SseTransport, Transport as _, TransportError};
use toolway_wire::era::Era;

use super::handshake::{Handshake, Refusal};
use super::inbox::Inbox;
use super::link::Link;
use super::masks::{Masks, last_words};
use super::start;
use super::words::Words;
use super::{Carrier, Connection, Exchange, Known, Negotiated, OpenError, Shared};
use crate::gateway::config::{Protocol, RemoteKind, RemoteTarget, ServerConfig, Target};
use crate::gateway::state::Stage;

/// A connection in the making.
#[derive(Debug)]
pub(super) struct Opening<'a> {
    config: &'a ServerConfig,
    shared: &'a Shared,
    masks: Masks,
    words: Words,
    /// What was begun last.
    begun: Option<(Link, Inbox)>,
    exchanges: Vec<Exchange>,
    program: Option<std::path::PathBuf>,
}

impl<'a> Opening<'a> {
    pub(super) fn new(config: &'a ServerConfig, shared: &'a Shared) -> Self {
        Self {
            config,
            shared,
            masks: Masks::new(&config.secrets),
            words: Words::new(Arc::clone(&shared.face)),
            begun: None,
            exchanges: Vec::new(),
            program: None,
        }
    }

    /// Opens the connection within the startup time. A failure comes with what is to be closed.
    pub(super) async fn open(
        mut self,
        stop: &CancellationToken,
    ) -> Result<Connection, (OpenError, Option<Link>)> {
        let limit = self.config.timeouts.startup;
        let opened = tokio::select! {
            biased;
            () = stop.cancelled() => Err(OpenError::new(Stage::Spawn, "stopped while it started")),
            opened = timeout(limit, self.target()) => opened.unwrap_or_else(|_elapsed| Err(self.too_late())),
        };
        match (opened, self.begun.take()) {
            (Ok(negotiated), Some((link, inbox))) => {
                let known = Known { era: negotiated.era, carrier: negotiated.carrier };
                if negotiated.carrier != Carrier::Memory {
                    self.shared.eras.set(&self.config.digest, known);
                }
                Ok(Connection {
                    link,
                    inbox,
                    words: self.words,
                    negotiated: Arc::new(negotiated),
                    masks: self.masks,
                    program: self.program,
                    exchanges: self.exchanges,
                })
            }
            (opened, begun) => {
                let error =
                    opened.err().unwrap_or_else(|| OpenError::new(Stage::Connect, "nothing was begun"));
                Err(self.with_detail(error, begun))
            }
        }
    }

    /// The same over a transport that is there already.
    pub(super) async fn over(mut self, link: Link) -> Result<Connection, (OpenError, Option<Link>)> {
        self.begin(link);
        self.open(&CancellationToken::new()).await
    }

    async fn target(&mut self) -> Result<Negotiated, OpenError> {
        if self.begun.is_some() {
            return self.shake(None).await;
        }
        let known = self.shared.eras.get(&self.config.digest);
        let era = known.map(|known| known.era);
        match &self.config.target {
            Target::Child(target) => {
                let (link, program) = start::start(target, self.shared).await?;
                self.program = Some(program);
                self.begin(Link::Child(Box::new(link)));
                self.shake(era).await
            }
            Target::Remote(target) => self.remote(target, era, known.map(|known| known.carrier)).await,
            Target::Embedded(target) => {
                self.begin(Link::Memory(Box::new(target.connect())));
                self.shake(era).await
            }
            #[cfg(unix)]
            Target::Attached(target) => {
                let attached = target.attach().await;
                let link = attached.map_err(|fault| {
                    let error = OpenError::new(Stage::Connect, fault.reason);
                    fault.hint.into_iter().fold(error, OpenError::hint)
                })?;
                self.begin(Link::Socket(Box::new(link)));
                self.shake(era).await
            }
        }
    }

    fn begin(&mut self, link: Link) {
        let lines = link.carrier() == Carrier::Stdio;
        self.begun = Some((link, Inbox::new(&self.shared.guard, lines)));
    }

    async fn shake(&mut self, known: Option<Era>) -> Result<Negotiated, OpenError> {
        let Some((link, inbox)) = &mut self.begun else {
            return Err(OpenError::new(Stage::Connect, "nothing was begun"));
        };
        let carrier = link.carrier();
        let mut handshake = Handshake { link, inbox, words: &mut self.words };
        let shaken = handshake.shake(self.config.protocol, known).await;
        self.note_exchanges();
        shaken.map_err(|refusal| self.refused(refusal, carrier))
    }

    /// Streamable HTTP, legacy SSE, or one after a definite refusal of the other.
    async fn remote(
        &mut self,
        target: &RemoteTarget,
        era: Option<Era>,
        known: Option<Carrier>,
    ) -> Result<Negotiated, OpenError> {
        const BOTH: [Carrier; 2] = [Carrier::StreamableHttp, Carrier::Sse];
        const SSE_FIRST: [Carrier; 2] = [Carrier::Sse, Carrier::StreamableHttp];
        let by_path = target.kind == RemoteKind::Auto && target.http.url.path().ends_with("/sse");
        let order = match (target.kind, known) {
            (RemoteKind::Sse, _) => &SSE_FIRST[..1],
            // The modern generation has no such transport.
            _ if self.config.protocol == Protocol::Modern => &BOTH[..1],
            (_, Some(Carrier::Sse)) => &SSE_FIRST[..],
            (_, Some(Carrier::StreamableHttp)) => &BOTH[..],
            _ if by_path => &SSE_FIRST[..],
            _ => &BOTH[..],
        };
        let mut http = target.http.clone();
        http.advice = false;
        let mut first: Option<OpenError> = None;
        for carrier in order {
            let before = self.exchanges.len();
            if let Some((mut link, _)) = self.begun.take() {
                link.close().await;
            }
            let link = remote_link(*carrier, &http).map_err(|error| unusable(&error))?;
            self.begin(link);
            match self.shake(era.filter(|_| *carrier == Carrier::StreamableHttp)).await {
                Ok(negotiated) => return Ok(negotiated),
                Err(error) if error.detail.needs_auth => return Err(error),
                Err(error) => {
                    let refused = self.is_refusal(*carrier, before, &error);
                    if let Some(mut first) = first.take() {
                        first.reason = format!("{}; {}: {}", first.reason, carrier.name(), error.reason);
                        return Err(first);
                    }
                    if !refused {
                        return Err(error);
                    }
                    first = Some(error);
                }
            }
        }
        Err(first.unwrap_or_else(|| OpenError::new(Stage::Connect, "no transport is left")))
    }

    /// The server said clearly that it does not have this transport.
    fn is_refusal(&self, carrier: Carrier, before: usize, error: &OpenError) -> bool {
        let method = if carrier == Carrier::Sse { "GET" } else { "POST" };
        let mut answers = self.exchanges.get(before..).unwrap_or_default().iter();
        let Some(answer) = answers.find(|exchange| exchange.method == method) else { return false };
        match (carrier, answer.status) {
            (_, 400 | 404 | 405) | (Carrier::Sse, 406 | 200..=299) => true,
            (_, 402..=499) => error.reason.to_ascii_lowercase().contains("session"),
            _ => false,
        }
    }

    fn note_exchanges(&mut self) {
        let Some((link, _)) = &self.begun else { return };
        let carrier = link.carrier();
        let noted = self.exchanges.iter().filter(|exchange| exchange.carrier == carrier).count();
        self.exchanges.extend(exchanges(link).skip(noted));
    }

    /// What a refusal of the handshake means.
    fn refused(&self, refusal: Refusal, carrier: Carrier) -> OpenError {
        match refusal {
            Refusal::Rpc { code, message, supported } => {
                let message = self.masks.mask(&message);
                let mut error = OpenError::new(
                    Stage::Initialize,
                    format!("the server refused the handshake: {message} ({code})"),
                );
                error.detail.rpc_error = Some((code, message));
                match (self.config.protocol, supported.is_empty()) {
                    (Protocol::Auto, _) | (_, true) => error,
                    (_, false) => {
                        error.hint(format!("it supports {}: set protocol to auto", supported.join(", ")))
                    }
                }
            }
            Refusal::Failed(failure) => self.failed(&failure),
            Refusal::Closed(reason) if carrier == Carrier::Stdio => {
                OpenError::new(Stage::Spawn, format!("{reason} before it answered the handshake"))
            }
            Refusal::Closed(reason) => OpenError::new(Stage::Connect, reason),
            Refusal::Odd(reason) => OpenError::new(Stage::Initialize, reason),
            Refusal::Silent => OpenError::new(Stage::Initialize, "no answer to server/discover"),
        }
    }

    fn failed(&self, failure: &Failure) -> OpenError {
        let reason = self.masks.mask(&failure.message);
        let html = reason.contains("answered HTML, not MCP");
        let mut error = OpenError::new(Stage::Connect, reason);
        if failure.needs_auth() {
            error.detail.needs_auth = true;
            return error.hint(self.login_hint(failure));
        }
        if let Some(hint) = failure.hint() {
            return error.hint(hint);
        }
        match failure.status() {
            _ if html => error.hint("the URL leads to a web page: a login page, or not the MCP endpoint"),
            Some(404 | 405) => error.hint("check the path of the URL: there is no MCP endpoint at this one"),
            Some(301..=399) => error.hint("give the URL that it redirects to"),
            _ => error,
        }
    }

    /// What to do about a refusal that another token would lift.
    fn login_hint(&self, failure: &Failure) -> String {
        if let Some(hint) = failure.hint() {
            return hint;
        }
        let status = failure.status().unwrap_or_default();
        let own = matches!(&self.config.target, Target::Remote(target) if has_authorization(&target.http));
        if own {
            return format!(
                "the server does not accept the configured Authorization header: give it a valid one (HTTP {status})"
            );
        }
        match self.config.target.signer() {
            Some(signer) => {
                format!(
                    "the server refuses whoever asks so (HTTP {status}); to sign in with an account that may, {}",
                    signer.hint()
                )
            }
            None => format!(
                "the server wants a login: give it a token, as the header Authorization in headers (HTTP {status})"
            ),
        }
    }

    fn too_late(&self) -> OpenError {
        let seconds = self.config.timeouts.startup.as_secs_f64();
        let mut error = match (&self.begun, &self.config.target) {
            (_, target) if let Some(signer) = target.signer().filter(|signer| signer.is_waiting()) => {
                let reason = format!("waited {seconds} s for a token, which another process may be getting");
                OpenError::new(Stage::Connect, reason).hint(signer.hint())
            }
            (None, Target::Child(_)) => {
                OpenError::new(Stage::Spawn, format!("the process was not started within {seconds} s"))
            }
            (_, Target::Remote(_)) if self.exchanges.is_empty() && !self.answered() => {
                OpenError::new(Stage::Connect, format!("no answer within {seconds} s"))
                    .hint("raise startupTimeoutMs if it needs longer; check that the address can be reached")
            }
            (_, target) => {
                let asked = if self.words.era == Era::Modern { "server/discover" } else { "initialize" };
                let hint = match target {
                    Target::Child(child) => start::slow_hint(&child.command),
                    _ => "raise startupTimeoutMs if it needs longer".to_owned(),
                };
                OpenError::new(Stage::Initialize, format!("no answer to {asked} in {seconds} s")).hint(hint)
            }
        };
        error.detail.timed_out = true;
        error
    }

    fn answered(&self) -> bool {
        self.begun.as_ref().is_some_and(|(link, _)| !link.heads().is_empty())
    }

    fn with_detail(
        mut self,
        mut error: OpenError,
        begun: Option<(Link, Inbox)>,
    ) -> (OpenError, Option<Link>) {
        self.begun = begun;
        self.note_exchanges();
        error.detail.exchanges = std::mem::take(&mut self.exchanges);
        if let Some(program) = self.program.take() {
            error.detail.program = Some(program);
        }
        let Some((link, inbox)) = self.begun.take() else { return (error, None) };
        if let Some((line, count)) = inbox.ignored() {
            let line = self.masks.mask(line);
            error.detail.garbage = Some((line.clone(), count));
            if error.hint.is_none() || error.detail.timed_out {
                error.hint = Some(format!(
                    "it wrote {count} line(s) to stdout that are no MCP messages, the first: {line}"
                ));
            }
        }
        if let Some(child) = link.child() {
            if let Some(failure) = child.start_failure() {
                let found = start::failed(failure);
                error.stage = found.stage;
                error.reason = found.reason;
            }
            error.detail.exit = child.exit();
            let stderr = self.masks.mask(&child.stderr().text());
            if error.stage == Stage::Spawn
                && let Some(words) = last_words(&stderr).filter(|_| child.start_failure().is_none())
            {
                error.reason = format!("{}; its last words: {words}", error.reason);
            }
            error.detail.stderr = (!stderr.is_empty()).then_some(stderr);
        }
        (error, Some(link))
    }
}

/// How the server answered the first requests over this link.
pub(super) fn exchanges(link: &Link) -> impl Iterator<Item = Exchange> {
    let carrier = link.carrier();
    link.heads().into_iter().map(move |head| Exchange {
        carrier,
        method: head.method,
        url: head.url,
        status: head.status,
        content_type: head.content_type,
    })
}

fn remote_link(carrier: Carrier, http: &HttpConfig) -> Result<Link, TransportError> {
    Ok(match carrier {
        Carrier::Sse => Link::Sse(Box::new(SseTransport::new(http)?)),
        _ => Link::Http(Box::new(HttpTransport::new(http)?)),
    })
}

fn has_authorization(http: &HttpConfig) -> bool {
    http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
}

fn unusable(error: &TransportError) -> OpenError {
    OpenError::new(Stage::Configure, error.to_string())
}
