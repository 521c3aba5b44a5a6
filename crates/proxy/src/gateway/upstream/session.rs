//! Owns one connection of an upstream from its handshake to its end: carries messages both ways, keeps the lists
//! current. Own requests have ids of their own kind and never reach the hub.

use bytes::Bytes;
use tokio::time::Instant;
use toolway_transport::{Failure, Members, Outbound};
use toolway_wire::find::{Step, find, string};
use toolway_wire::{Id, Kind, METHOD_NOT_FOUND, UPSTREAM_ERROR};

use super::UpstreamEvent;
use super::listing::{Listed, Listing};
use super::task::{Stopping, Task, requests};
use crate::gateway::connection::{Connection, Received, Words, answer};
use crate::gateway::lists::ListKind;
use crate::gateway::message::Message;
use crate::gateway::state::ServerState;
use crate::gateway::until;
use listen::Listen;

mod listen;

/// Messages that are handed on in one go, before the other direction has its turn.
const AT_ONCE: usize = 64;

/// How a session ends.
#[derive(Debug)]
pub(super) enum End {
    /// It is to stop.
    Stopping,
    /// The connection is lost.
    Lost(String),
    /// The server does not list its tools.
    Unlisted(String),
    /// It does not list them before somebody has signed in; the text says how.
    NeedsLogin(String),
}

/// One of our own requests.
#[derive(Debug)]
struct Own {
    id: Id,
    purpose: Purpose,
    deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    List(ListKind),
    Listen,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session<'a> {
    task: &'a mut Task,
    connection: Connection,
    own: Vec<Own>,
    listing: Listing,
    listen: Listen,
    /// Something was heard of the lists. To compare them all is not for every message.
    stirred: bool,
    connected: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(task: &'a mut Task, connection: Connection) -> Self {
        let listing = Listing::new(connection.negotiated(), Instant::now());
        let listen = Listen::new(connection.negotiated());
        Self { task, connection, own: Vec::new(), listing, listen, stirred: true, connected: false }
    }

    /// The connection comes back, to be closed: after a loss that ends what is left of the process tree.
    pub(super) async fn run(mut self) -> (End, Connection) {
        let end = self.serve().await.unwrap_or_else(|end| end);
        (end, self.connection)
    }

    async fn serve(&mut self) -> Result<End, End> {
        let up = UpstreamEvent::Up(std::sync::Arc::clone(self.connection.negotiated()));
        self.task.outlet.emit(up).await?;
        // Both are made once: they are asked at each turn.
        let mut stopped = std::pin::pin!(self.task.outlet.stop.clone().cancelled_owned());
        let queue = std::sync::Arc::clone(&self.task.queue);
        let mut changed = std::pin::pin!(queue.changed());
        loop {
            self.ask_lists()?;
            self.push().await?;
            let at = self.next_time();
            let received = tokio::select! {
                biased;
                () = stopped.as_mut() => return Ok(End::Stopping),
                received = self.connection.receive() => received,
                () = changed.as_mut() => {
                    changed.set(queue.changed());
                    continue;
                }
                () = until(at), if at.is_some() => {
                    self.time().await?;
                    continue;
                }
            };
            self.take_all(received).await?;
            self.tell_lists().await?;
        }
    }

    /// Hands the connection what it has room for.
    async fn push(&mut self) -> Result<(), End> {
        let wishes = self.task.queue.take_wishes();
        if wishes.list_again {
            self.listing.all_changed(Instant::now());
        }
        let queue = std::sync::Arc::clone(&self.task.queue);
        while let Some(message) = queue.pop(self.connection.ready(), self.connection.ready_for_note()) {
            self.send(message).await?;
        }
        if queue.has_room_again() {
            self.task.outlet.emit(UpstreamEvent::Room).await?;
        }
        Ok(())
    }

    async fn send(&mut self, message: Outbound) -> Result<(), End> {
        let (one, mut ids) = match &message.members {
            Members::One(envelope) => {
                (envelope.id().filter(|_| envelope.kind() == Kind::Request).cloned(), vec![])
            }
            members @ Members::Batch(_) => (None, requests(members)),
        };
        if let Err(error) = self.connection.send(message) {
            ids.extend(one);
            if ids.is_empty() {
                return Ok(());
            }
            let failure = Failure { code: UPSTREAM_ERROR, message: error.to_string(), data: None };
            self.task.outlet.emit(UpstreamEvent::Failed { ids, failure }).await?;
        }
        Ok(())
    }

    /// What has come, and what has come meanwhile.
    async fn take_all(&mut self, first: Option<Received>) -> Result<(), End> {
        let mut next = first;
        if next.is_none() {
            return Err(End::Lost("the connection was closed".to_owned()));
        }
        let mut taken = 0;
        while let Some(received) = next {
            self.take(received).await?;
            taken += 1;
            next = if taken < AT_ONCE { self.connection.try_receive() } else { None };
        }
        Ok(())
    }

    async fn take(&mut self, received: Received) -> Result<(), End> {
        match received {
            Received::Message(message) => self.message(message).await,
            Received::Failed { mut ids, failure } => {
                let own: Vec<Id> = ids.extract_if(.., |id| is_own(id)).collect();
                for id in own {
                    self.own_failed(&id, &failure)?;
                }
                if !ids.is_empty() {
                    self.task.outlet.emit(UpstreamEvent::Failed { ids, failure }).await?;
                }
                Ok(())
            }
            Received::Ready => Ok(()),
            Received::Closed { reason } => Err(End::Lost(reason)),
        }
    }

    async fn message(&mut self, message: Message) -> Result<(), End> {
        let envelope = &message.envelope;
        match envelope.kind() {
            Kind::Response | Kind::ErrorResponse | Kind::Fault => {
                if let Some(id) = envelope.id().filter(|id| is_own(id)).cloned() {
                    return self.own_answered(&id, &message);
                }
            }
            Kind::Notification => {
                let method = envelope.method().unwrap_or_default();
                if self.listing.heard(method, Instant::now()) || Listen::is_ours(&message) {
                    return Ok(());
                }
            }
            Kind::Request => {
                if let (Some("ping"), Some(id)) = (envelope.method(), envelope.id()) {
                    if let Some(pong) = answer(id, b"{}") {
                        self.send(pong).await?;
                    }
                    return Ok(());
                }
            }
            Kind::Stranger => return Ok(()),
        }
        self.task.outlet.emit(UpstreamEvent::Message(message)).await?;
        Ok(())
    }

    /// Asks for the lists whose time has come, and for their changes.
    fn ask_lists(&mut self) -> Result<(), End> {
        // The time is asked for only where something depends on it: this is on the way of every message.
        if self.listing.due().is_none() && self.listen.due().is_none() {
            return Ok(());
        }
        let now = Instant::now();
        if self.listing.due().is_some_and(|due| due <= now) {
            for kind in self.listing.begin(now) {
                self.ask_page(kind, None)?;
            }
        }
        if self.connected && self.listen.is_due(now) {
            self.listen.begun();
            let filter = self.listen.filter();
            let asked =
                self.connection.words().request("subscriptions/listen", &[("notifications", &filter)], false);
            self.ask(asked, Purpose::Listen, None)?;
        }
        Ok(())
    }

    fn ask_page(&mut self, kind: ListKind, cursor: Option<&Bytes>) -> Result<(), End> {
        let cursor = cursor.and_then(|raw| std::str::from_utf8(raw).ok());
        let params: Vec<(&str, &str)> = cursor.map(|raw| ("cursor", raw)).into_iter().collect();
        let asked = self.connection.words().request(kind.method(), &params, false);
        let deadline = Instant::now() + self.task.config.timeouts.list;
        self.ask(asked, Purpose::List(kind), Some(deadline))
    }

    fn ask(
        &mut self,
        asked: Option<(Id, Outbound)>,
        purpose: Purpose,
        deadline: Option<Instant>,
    ) -> Result<(), End> {
        let Some((id, message)) = asked else { return Ok(()) };
        self.own.push(Own { id: id.clone(), purpose, deadline });
        if let Err(error) = self.connection.send(message) {
            let failure = Failure { code: UPSTREAM_ERROR, message: error.to_string(), data: None };
            self.own_failed(&id, &failure)?;
        }
        Ok(())
    }

    fn finished(&mut self, id: &Id) -> Option<Purpose> {
        let at = self.own.iter().position(|own| own.id == *id)?;
        Some(self.own.swap_remove(at).purpose)
    }

    fn own_answered(&mut self, id: &Id, message: &Message) -> Result<(), End> {
        let Some(purpose) = self.finished(id) else { return Ok(()) };
        self.stirred = true;
        let now = Instant::now();
        let envelope = &message.envelope;
        match (purpose, envelope.kind()) {
            (Purpose::List(kind), Kind::Response) => {
                if let Listed::Ask(cursor) = self.listing.page(kind, message, now) {
                    return self.ask_page(kind, Some(&cursor));
                }
                Ok(())
            }
            (Purpose::List(kind), _) => {
                let (code, reason) = error_of(message);
                let unknown = code == METHOD_NOT_FOUND;
                self.list_failed(
                    kind,
                    &format!("the server answered with an error: {reason} ({code})"),
                    unknown,
                )
            }
            (Purpose::Listen, Kind::Response) => {
                self.listen.ended(true, now);
                Ok(())
            }
            (Purpose::Listen, _) => {
                self.listen.refused();
                Ok(())
            }
        }
    }

    fn own_failed(&mut self, id: &Id, failure: &Failure) -> Result<(), End> {
        match self.finished(id) {
            Some(Purpose::List(kind)) => {
                let listed = self.list_failed(kind, &failure.message, failure.code == METHOD_NOT_FOUND);
                match listed {
                    // Some let everybody in, and want a login for what they have.
                    Err(End::Unlisted(reason)) if failure.needs_auth() => {
                        Err(End::NeedsLogin(failure.hint().unwrap_or(reason)))
                    }
                    listed => listed,
                }
            }
            Some(Purpose::Listen) => {
                self.listen.ended(false, Instant::now());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn list_failed(&mut self, kind: ListKind, reason: &str, unknown: bool) -> Result<(), End> {
        self.stirred = true;
        match self.listing.failed(kind, reason, unknown, Instant::now()) {
            Some(reason) => Err(End::Unlisted(reason)),
            None => Ok(()),
        }
    }

    async fn tell_lists(&mut self) -> Result<(), End> {
        if std::mem::take(&mut self.stirred)
            && let Some(news) = self.listing.news()
        {
            self.task.outlet.emit(UpstreamEvent::Lists(news)).await?;
            if !std::mem::replace(&mut self.connected, true) {
                self.task.set(ServerState::Connected).await?;
            }
        }
        Ok(())
    }

    /// When something is to be done without an event.
    fn next_time(&self) -> Option<Instant> {
        let deadlines = self.own.iter().filter_map(|own| own.deadline);
        let listen = self.listen.due().filter(|_| self.connected);
        deadlines.chain(self.listing.due()).chain(listen).min()
    }

    /// A time has come: requests that were waited for long enough are given up.
    async fn time(&mut self) -> Result<(), End> {
        let now = Instant::now();
        let late: Vec<Own> =
            self.own.extract_if(.., |own| own.deadline.is_some_and(|deadline| deadline <= now)).collect();
        for own in late {
            if let Some(cancel) = Words::cancel(&own.id, "no answer in time") {
                self.send(cancel).await?;
            }
            if let Purpose::List(kind) = own.purpose {
                let seconds = self.task.config.timeouts.list.as_secs_f64();
                self.list_failed(kind, &format!("no answer in {seconds} s"), false)?;
            }
        }
        self.tell_lists().await
    }
}

impl From<Stopping> for End {
    fn from(_: Stopping) -> Self {
        Self::Stopping
    }
}

/// The id is one of ours.
fn is_own(id: &Id) -> bool {
    id.raw().starts_with(b"\"toolway-")
}

/// Code and text of an error response.
pub(crate) fn error_of(message: &Message) -> (i64, String) {
    let bytes = message.content.bytes().cloned().unwrap_or_default();
    let part = |name| find(&bytes, &[Step::Key("error"), Step::Key(name)]);
    let code = part("code").and_then(|at| std::str::from_utf8(bytes.get(at)?).ok()?.parse().ok());
    let text = part("message").and_then(|at| string(&bytes, at));
    (code.unwrap_or_default(), text.unwrap_or_else(|| "no reason given".to_owned()))
}
