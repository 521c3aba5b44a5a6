//! The legacy era's session: id, negotiated revision, the client's own handshake to begin another one with, and
//! the headers that follow from them. It must not send anything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::watch;
use toolway_wire::Id;
use toolway_wire::era::header;

use super::body::Message;
use super::target::{Origin, Target};
use crate::limits::MAX_HANDSHAKE;

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);

/// The session of one transport.
#[derive(Debug)]
pub(crate) struct Session {
    state: Mutex<State>,
    /// Headers of a POST to the configured origin, before any session.
    base: HeaderMap,
    home: Arc<Target>,
    stage: watch::Sender<Stage>,
}

/// How far the session has come: what the GET stream waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stage {
    /// Grows with each session that is begun.
    pub(crate) generation: u64,
    /// `notifications/initialized` was acknowledged.
    pub(crate) initialized: bool,
}

#[derive(Debug)]
struct State {
    generation: u64,
    id: Option<HeaderValue>,
    /// Who issued the id: it goes to no other origin.
    issuer: Option<Arc<Origin>>,
    version: Option<HeaderValue>,
    headers: Arc<HeaderMap>,
    handshake: Option<Handshake>,
}

/// The client's own messages, to begin another session with.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    pub(crate) initialize: Message,
    pub(crate) id: Id,
    pub(crate) initialized: Option<Message>,
}

/// The session as one request sees it.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) generation: u64,
    /// Headers of a POST to the configured origin.
    pub(crate) headers: Arc<HeaderMap>,
    pub(crate) id: Option<HeaderValue>,
    issuer: Option<Arc<Origin>>,
    version: Option<HeaderValue>,
}

impl Snapshot {
    /// What of the session may be told to `origin`.
    pub(crate) fn bind(&self, origin: &Origin, headers: &mut HeaderMap) {
        if let (Some(id), Some(issuer)) = (&self.id, &self.issuer)
            && **issuer == *origin
        {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = &self.version {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
    }
}

impl Session {
    /// `base`: what goes to the configured origin with every request.
    pub(crate) fn new(mut base: HeaderMap, home: Arc<Target>) -> Self {
        if !base.contains_key(HOST) {
            base.insert(HOST, home.host.clone());
        }
        let state = State {
            generation: 0,
            id: None,
            issuer: None,
            version: None,
            headers: Arc::new(base.clone()),
            handshake: None,
        };
        Self { state: Mutex::new(state), base, home, stage: watch::Sender::new(Stage::default()) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the next request of the session.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        Snapshot {
            generation: state.generation,
            headers: Arc::clone(&state.headers),
            id: state.id.clone(),
            issuer: state.issuer.clone(),
            version: state.version.clone(),
        }
    }

    /// For a request outside of any session: `initialize`, and the modern era.
    pub(crate) fn outside(&self) -> Snapshot {
        Snapshot {
            generation: self.lock().generation,
            headers: Arc::new(self.base.clone()),
            id: None,
            issuer: None,
            version: None,
        }
    }

    /// The headers of [`Session::outside`], to add to.
    pub(crate) fn base(&self) -> HeaderMap {
        self.base.clone()
    }

    /// The client begins a session: its message is kept for another one, when it is not huge.
    pub(crate) fn begin(&self, initialize: &Message, id: &Id) {
        let keep = initialize.len() <= MAX_HANDSHAKE as u64;
        let mut state = self.lock();
        state.handshake =
            keep.then(|| Handshake { initialize: initialize.clone(), id: id.clone(), initialized: None });
        state.id = None;
        state.issuer = None;
        state.version = None;
        state.headers = Arc::new(self.base.clone());
    }

    /// The client said that it is initialized.
    pub(crate) fn keep_initialized(&self, message: &Message) {
        if let Some(handshake) = &mut self.lock().handshake
            && message.len() <= MAX_HANDSHAKE as u64
        {
            handshake.initialized = Some(message.clone());
        }
    }

    pub(crate) fn handshake(&self) -> Option<Handshake> {
        self.lock().handshake.clone()
    }

    /// The server has accepted a session.
    pub(crate) fn install(&self, id: Option<HeaderValue>, issuer: &Arc<Origin>, version: Option<&str>) {
        let mut state = self.lock();
        state.generation += 1;
        state.id = id.map(|mut id| {
            id.set_sensitive(true);
            id
        });
        state.issuer = state.id.is_some().then(|| Arc::clone(issuer));
        state.version = version.and_then(|version| HeaderValue::try_from(version).ok());
        let generation = state.generation;
        drop(state);
        let mut headers = self.base.clone();
        self.snapshot().bind(&self.home.origin, &mut headers);
        self.lock().headers = Arc::new(headers);
        self.stage.send_replace(Stage { generation, initialized: false });
    }

    /// The server has acknowledged `notifications/initialized`.
    pub(crate) fn initialized(&self) {
        self.stage.send_modify(|stage| stage.initialized = true);
    }

    pub(crate) fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Arc<Target> {
        Arc::new(Target::new(url.parse().unwrap()).unwrap())
    }

    fn sent(headers: &HeaderMap) -> (Option<&str>, Option<&str>) {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap());
        (text(SESSION_ID), text(PROTOCOL_VERSION))
    }

    #[test]
    fn the_session_goes_to_its_issuer_only() {
        let (home, other) = (target("http://a/mcp"), target("http://b/mcp"));
        let session = Session::new(HeaderMap::new(), Arc::clone(&home));
        assert_eq!(sent(&session.snapshot().headers), (None, None));
        session.install(Some(HeaderValue::from_static("S1")), &home.origin, Some("2025-11-25"));
        let snapshot = session.snapshot();
        assert_eq!(sent(&snapshot.headers), (Some("S1"), Some("2025-11-25")));
        let mut headers = HeaderMap::new();
        snapshot.bind(&other.origin, &mut headers);
        assert_eq!(sent(&headers), (None, Some("2025-11-25")));
        session.install(Some(HeaderValue::from_static("S2")), &other.origin, None);
        assert_eq!(sent(&session.snapshot().headers), (None, None));
        session.snapshot().bind(&other.origin, &mut headers);
        assert_eq!(sent(&headers).0, Some("S2"));
    }

    #[test]
    fn a_new_handshake_ends_the_old_session() {
        let home = target("http://a/mcp");
        let session = Session::new(HeaderMap::new(), Arc::clone(&home));
        session.install(Some(HeaderValue::from_static("S1")), &home.origin, Some("2025-11-25"));
        let stages = session.stages();
        session.begin(&Message::Bytes("{}".into()), &Id::from_number(1));
        assert_eq!(sent(&session.snapshot().headers), (None, None));
        session.install(None, &home.origin, Some("2025-06-18"));
        assert_eq!(sent(&session.snapshot().headers), (None, Some("2025-06-18")));
        assert_eq!(*stages.borrow(), Stage { generation: 2, initialized: false });
        assert!(!format!("{session:?}").contains("S1"));
    }
}
