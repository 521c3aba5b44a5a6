//! The byte stream below a connection: TCP, TLS over it, or memory. It must not know HTTP.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use url::Host;

use super::target::Origin;
use super::tcp::Tcp;
use super::tls::Tls;
use crate::limits::{CONNECT_STAGGER, READ_BUFFER};

/// How the transport reaches its server.
#[derive(Debug, Clone, Default)]
pub enum Connector {
    /// TCP, and TLS for https.
    #[default]
    Tcp,
    /// In memory: the far end of each new connection is sent here. TLS is left out. For tests and embedding.
    Memory(mpsc::Sender<DuplexStream>),
}

#[derive(Debug)]
pub(crate) enum Io {
    Tcp(Tcp),
    Tls(Box<TlsStream<Tcp>>),
    Memory(DuplexStream),
}

impl Io {
    /// A second handle on the TCP stream below.
    pub(crate) fn tcp(&self) -> Option<Tcp> {
        match self {
            Self::Tcp(stream) => Some(stream.clone()),
            Self::Tls(stream) => Some(stream.get_ref().0.clone()),
            Self::Memory(_) => None,
        }
    }
}

/// Opens a connection to `origin`. The error is a fragment for a sentence.
pub(crate) async fn connect(origin: &Origin, connector: &Connector, tls: &Tls) -> Result<Io, String> {
    if let Connector::Memory(listener) = connector {
        let (near, far) = tokio::io::duplex(READ_BUFFER);
        listener.send(far).await.map_err(|_| "connection refused".to_owned())?;
        return Ok(Io::Memory(near));
    }
    let stream = Tcp::new(connect_tcp(origin).await?);
    if origin.tls {
        return tls.connect(&origin.host, stream).await.map(|stream| Io::Tls(Box::new(stream)));
    }
    Ok(Io::Tcp(stream))
}

/// Tries the addresses of the host one after the other, a new one each time the last is slow or has failed
/// (RFC 8305, section 5).
async fn connect_tcp(origin: &Origin) -> Result<TcpStream, String> {
    let port = origin.port;
    let addresses = match &origin.host {
        Host::Ipv4(ip) => vec![(*ip, port).into()],
        Host::Ipv6(ip) => vec![(*ip, port).into()],
        Host::Domain(name) => {
            let found = tokio::net::lookup_host((name.as_str(), port)).await;
            let found = found.map_err(|error| format!("cannot resolve {name}: {error}"))?;
            interleave(found.collect())
        }
    };
    let mut waiting = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = None;
    loop {
        match waiting.next() {
            Some(address) => drop(attempts.spawn(TcpStream::connect(address))),
            None if attempts.is_empty() => {
                return Err(failure.map_or("the host has no address".to_owned(), |e: io::Error| reason(&e)));
            }
            None => {}
        }
        let joined = if waiting.len() == 0 {
            attempts.join_next().await
        } else {
            timeout(CONNECT_STAGGER, attempts.join_next()).await.unwrap_or(None)
        };
        match joined {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(error))) => failure = Some(error),
            Some(Err(_)) | None => {}
        }
    }
}

/// Families in turn, the resolver's first choice first.
fn interleave(addresses: Vec<std::net::SocketAddr>) -> Vec<std::net::SocketAddr> {
    let six_first = addresses.first().is_some_and(std::net::SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|a| a.is_ipv6() == six_first);
    let mut mixed = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        match (first.next(), second.next()) {
            (None, None) => return mixed,
            (a, b) => mixed.extend(a.into_iter().chain(b)),
        }
    }
}

/// The reason without the operating system's number.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::TimedOut => "the connection attempt timed out".to_owned(),
        _ => error.to_string(),
    }
}

thread_local! {
    /// One buffer for all connections of a thread: an idle connection holds no memory of its own here.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BUFFER].into_boxed_slice());
}

impl hyper::rt::Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let room = out.remaining().min(scratch.len());
            let mut buffer = ReadBuf::new(scratch.get_mut(..room).unwrap_or_default());
            let polled = match self.get_mut() {
                Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
                Self::Tls(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
                Self::Memory(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            };
            polled.map_ok(|()| out.put_slice(buffer.filled()))
        })
    }
}

impl hyper::rt::Write for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Memory(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Memory(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Memory(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Memory(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }
}

/// TLS set-up that is shared by the connections of a transport.
pub(crate) type SharedTls = Arc<Tls>;

#[cfg(test)]
mod tests {
    use super::interleave;

    #[test]
    fn address_families_take_turns() {
        let list = |text: &[&str]| text.iter().map(|a| a.parse().unwrap()).collect::<Vec<_>>();
        let given = list(&["[::1]:1", "[::2]:1", "10.0.0.1:1", "[::3]:1", "10.0.0.2:1"]);
        let mixed = list(&["[::1]:1", "10.0.0.1:1", "[::2]:1", "10.0.0.2:1", "[::3]:1"]);
        assert_eq!(interleave(given), mixed);
    }
}
