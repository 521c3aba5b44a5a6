//! Owns one legacy session: which stream each message of the hub goes to. Knows no HTTP.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolway_transport::Payload;
use toolway_wire::Id;
use toolway_wire::era::ProtocolVersion;
use toolway_wire::find::{Step, find, string};

use super::heard::Listening;
use super::stream::{Data, Stream};
use crate::gateway::message::ClientMessage;
use crate::gateway::run::ClientSession;

/// Streams that nobody reads but somebody may come back to.
const KEPT_STREAMS: usize = 16;
/// For so long.
const KEPT_FOR: Duration = Duration::from_mins(5);
/// Messages that belong to no request, held until the client opens a stream for them.
const HELD: usize = 256;
/// Streams of GET at the same time.
const GENERAL: usize = 8;

/// A legacy client's session.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) client: ClientSession,
    /// Ended, from either side.
    pub(super) closed: CancellationToken,
    initialize: Id,
    version: OnceLock<ProtocolVersion>,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    by_request: HashMap<Id, Arc<Stream>>,
    /// Those of them that stand for a batch.
    batches: HashSet<Id>,
    /// Who listens to an answer that is still to come.
    listening: HashMap<Id, Listening>,
    /// Streams of GET, the newest last.
    general: Vec<Arc<Stream>>,
    held: VecDeque<Data>,
    /// Left by their clients, with the time of that.
    left: VecDeque<(Instant, Arc<Stream>)>,
    streams: u64,
    used: Instant,
}

impl HttpSession {
    /// `initialize` is the id of the request that opens it.
    pub(super) fn new(client: ClientSession, initialize: Id) -> Self {
        let table = Table {
            by_request: HashMap::new(),
            batches: HashSet::new(),
            listening: HashMap::new(),
            general: Vec::new(),
            held: VecDeque::new(),
            left: VecDeque::new(),
            streams: 0,
            used: Instant::now(),
        };
        Self {
            client,
            closed: CancellationToken::new(),
            initialize,
            version: OnceLock::new(),
            table: Mutex::new(table),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the hub's messages to their streams until either side ends.
    pub(super) async fn pump(&self) {
        let mut arrived = Vec::new();
        // Answers that somebody listens to, on their way. The others do not wait for them.
        let mut hearing: JoinSet<(Id, Payload)> = JoinSet::new();
        loop {
            let more = tokio::select! {
                biased;
                () = self.closed.cancelled() => false,
                Some(heard) = hearing.join_next(), if !hearing.is_empty() => {
                    if let Ok((id, payload)) = heard {
                        self.answered(&id, Data::of(payload));
                    }
                    continue;
                }
                more = self.client.outlet.receive(&mut arrived) => more,
            };
            for message in arrived.drain(..) {
                match self.listener(&message) {
                    None => self.route(message),
                    Some(listening) => {
                        let id = listening.id.clone();
                        hearing.spawn(async move { (id, listening.heard(message.payload).await) });
                    }
                }
            }
            if !more {
                break;
            }
        }
        self.closed.cancel();
        let table = self.table();
        table.by_request.values().chain(&table.general).for_each(|stream| stream.end());
    }

    /// Somebody wants to hear the answer to a request before the client gets it.
    pub(super) fn listen(&self, listening: Listening) {
        self.table().listening.insert(listening.id.clone(), listening);
    }

    fn listener(&self, message: &ClientMessage) -> Option<Listening> {
        let id = message.about.as_ref().filter(|_| message.is_answer)?;
        self.table().listening.remove(id)
    }

    /// The answer to a request, unless the client has given it up meanwhile.
    fn answered(&self, id: &Id, data: Data) {
        let stream = self.table().by_request.remove(id);
        if let Some(stream) = stream {
            stream.push(data, Some(id));
        }
    }

    fn route(&self, message: ClientMessage) {
        let ClientMessage { about, is_answer, payload } = message;
        if is_answer && about.as_ref() == Some(&self.initialize) {
            self.note_version(&payload);
        }
        let mut table = self.table();
        let data = Data::of(payload);
        let answers = about.as_ref().filter(|_| is_answer);
        let stream = about.as_ref().and_then(|id| table.by_request.get(id));
        match stream {
            Some(stream) if is_answer || !stream.answers_only => {
                stream.push(data, answers);
                if let Some(id) = answers {
                    table.by_request.remove(id);
                    table.batches.remove(id);
                }
            }
            // The client has gone before it was answered, and cannot come back for it.
            None if is_answer => {}
            _ => table.general(data),
        }
    }

    fn note_version(&self, payload: &Payload) {
        if let Payload::Bytes(bytes) = payload
            && let Some(at) = find(bytes, &[Step::Key("result"), Step::Key("protocolVersion")])
            && let Some(version) = string(bytes, at).as_deref().and_then(ProtocolVersion::parse)
        {
            self.version.get_or_init(|| version);
        }
    }

    /// The revision that was agreed on.
    pub(super) fn version(&self) -> Option<ProtocolVersion> {
        self.version.get().copied()
    }

    /// Somebody uses it.
    pub(super) fn touch(&self) {
        self.table().used = Instant::now();
    }

    /// Since when nobody has used it; `None`: it is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let table = self.table();
        let busy = !table.by_request.is_empty() || table.general.iter().any(|stream| stream.is_attached());
        (!busy).then_some(table.used)
    }

    /// A stream for the answers to these requests; `about` are the ids that the hub names them by. `None`: one of them
    /// is still open, and two answers could not be told apart.
    pub(super) fn open(&self, about: &[Id], answers_only: bool) -> Option<Arc<Stream>> {
        let mut table = self.table();
        if about.iter().any(|id| table.by_request.contains_key(id)) {
            return None;
        }
        table.streams += 1;
        let stream = Arc::new(Stream::new(table.streams, about.iter().cloned(), answers_only));
        for id in about {
            table.by_request.insert(id.clone(), Arc::clone(&stream));
        }
        Some(stream)
    }

    /// As [`HttpSession::open`], for a batch: the hub names it by its first request.
    pub(super) fn open_batch(&self, first: &Id, answers_only: bool) -> Option<Arc<Stream>> {
        let stream = self.open(std::slice::from_ref(first), answers_only)?;
        self.table().batches.insert(first.clone());
        Some(stream)
    }

    /// A stream for what belongs to no request. `None`: there are enough.
    pub(super) fn open_general(&self) -> Option<Arc<Stream>> {
        let mut table = self.table();
        if table.general.iter().filter(|stream| stream.is_attached()).count() >= GENERAL {
            return None;
        }
        table.streams += 1;
        let stream = Arc::new(Stream::new(table.streams, [], false));
        for data in std::mem::take(&mut table.held) {
            stream.push(data, None);
        }
        table.general.push(Arc::clone(&stream));
        // Of those that nobody reads the oldest go.
        let excess = table.general.len().saturating_sub(GENERAL);
        let mut gone = 0;
        table.general.retain(|stream| {
            let keep = gone >= excess || stream.is_attached();
            gone += usize::from(!keep);
            keep
        });
        Some(stream)
    }

    /// The stream of that number, for a client that comes back.
    pub(super) fn resume(&self, number: u64) -> Option<Arc<Stream>> {
        let mut table = self.table();
        table.sweep();
        let all = table
            .by_request
            .values()
            .chain(&table.general)
            .chain(table.left.iter().map(|(_, stream)| stream));
        all.into_iter().find(|stream| stream.number == number).cloned()
    }

    /// The client has left a stream before its end: it is kept for a while.
    pub(super) fn keep(&self, stream: Arc<Stream>) {
        let mut table = self.table();
        table.sweep();
        if !stream.is_spent() {
            table.left.push_back((Instant::now(), stream));
            if table.left.len() > KEPT_STREAMS {
                table.left.pop_front();
            }
        }
    }

    /// The client has given a request up: nothing is owed for it any more, and its stream ends. (An answer that was under
    /// way goes nowhere.)
    pub(super) fn cancelled(&self, id: &Id) {
        let mut table = self.table();
        // The others of a batch are still owed, and come with it.
        if *id == self.initialize || table.batches.contains(id) {
            return;
        }
        table.listening.remove(id);
        if let Some(stream) = table.by_request.remove(id) {
            stream.end();
        }
    }

    /// The client has left before a byte was sent: what comes for these requests goes nowhere.
    pub(super) fn forget(&self, about: &[Id]) {
        let mut table = self.table();
        for id in about {
            table.by_request.remove(id);
            table.batches.remove(id);
            table.listening.remove(id);
        }
    }
}

impl Table {
    /// A message that belongs to no request goes to the newest stream that is read, or waits for one.
    fn general(&mut self, data: Data) {
        if let Some(stream) = self.general.iter().rev().find(|stream| stream.is_attached()) {
            return stream.push(data, None);
        }
        if self.held.len() >= HELD {
            self.held.pop_front();
        }
        self.held.push_back(data);
    }

    fn sweep(&mut self) {
        let now = Instant::now();
        self.left.retain(|(since, stream)| now - *since < KEPT_FOR && !stream.is_spent());
    }
}
