//! Owns the choice between transports as a value. Knows no messages.

#[cfg(unix)]
use toolway_transport::SocketTransport;
use toolway_transport::memory::MemoryEnd;
use toolway_transport::{
    ChildTransport, Head, HttpTransport, Inbound, Outbound, SseTransport, Transport, TransportError,
};

use super::Carrier;

/// One of the transports.
#[derive(Debug)]
pub(crate) enum Link {
    Child(Box<ChildTransport>),
    Http(Box<HttpTransport>),
    Sse(Box<SseTransport>),
    Memory(Box<MemoryEnd>),
    #[cfg(unix)]
    Socket(Box<SocketTransport>),
}

impl Link {
    pub(super) fn carrier(&self) -> Carrier {
        match self {
            Self::Child(_) => Carrier::Stdio,
            Self::Http(_) => Carrier::StreamableHttp,
            Self::Sse(_) => Carrier::Sse,
            Self::Memory(_) => Carrier::Memory,
            #[cfg(unix)]
            Self::Socket(_) => Carrier::Stdio,
        }
    }

    /// The first HTTP answers.
    pub(super) fn heads(&self) -> Vec<Head> {
        match self {
            Self::Http(link) => link.heads(),
            Self::Sse(link) => link.heads(),
            _ => Vec::new(),
        }
    }

    pub(super) fn child(&self) -> Option<&ChildTransport> {
        if let Self::Child(link) = self { Some(link) } else { None }
    }
}

impl Transport for Link {
    fn ready(&self) -> bool {
        match self {
            Self::Child(link) => link.ready(),
            Self::Http(link) => link.ready(),
            Self::Sse(link) => link.ready(),
            Self::Memory(link) => link.ready(),
            #[cfg(unix)]
            Self::Socket(link) => link.ready(),
        }
    }

    fn ready_for_note(&self) -> bool {
        match self {
            Self::Child(link) => link.ready_for_note(),
            Self::Http(link) => link.ready_for_note(),
            Self::Sse(link) => link.ready_for_note(),
            Self::Memory(link) => link.ready_for_note(),
            #[cfg(unix)]
            Self::Socket(link) => link.ready_for_note(),
        }
    }

    fn send(&mut self, message: Outbound) -> Result<(), TransportError> {
        match self {
            Self::Child(link) => link.send(message),
            Self::Http(link) => link.send(message),
            Self::Sse(link) => link.send(message),
            Self::Memory(link) => link.send(message),
            #[cfg(unix)]
            Self::Socket(link) => link.send(message),
        }
    }

    async fn receive(&mut self) -> Option<Inbound> {
        match self {
            Self::Child(link) => link.receive().await,
            Self::Http(link) => link.receive().await,
            Self::Sse(link) => link.receive().await,
            Self::Memory(link) => link.receive().await,
            #[cfg(unix)]
            Self::Socket(link) => link.receive().await,
        }
    }

    fn try_receive(&mut self) -> Option<Inbound> {
        match self {
            Self::Child(link) => link.try_receive(),
            Self::Http(link) => link.try_receive(),
            Self::Sse(link) => link.try_receive(),
            Self::Memory(link) => link.try_receive(),
            #[cfg(unix)]
            Self::Socket(link) => link.try_receive(),
        }
    }

    async fn close(&mut self) {
        match self {
            Self::Child(link) => link.close().await,
            Self::Http(link) => link.close().await,
            Self::Sse(link) => link.close().await,
            Self::Memory(link) => link.close().await,
            #[cfg(unix)]
            Self::Socket(link) => link.close().await,
        }
    }
}
