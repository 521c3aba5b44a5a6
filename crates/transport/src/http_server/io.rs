//! Owns the byte stream below a served connection, and its clock. A peer that takes nothing for too long is given up.
//! Knows no HTTP.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

const SCRATCH: usize = 64 << 10;

thread_local! {
    /// One buffer for all connections of a thread: an idle connection holds no memory of its own here.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

/// A stream for hyper.
#[derive(Debug)]
pub(crate) struct Io<S> {
    stream: S,
    /// How long a write may wait for the peer.
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Io<S> {
    pub(crate) fn new(stream: S, stall: Duration) -> Self {
        Self { stream, stall, stalled: None }
    }

    /// Lets a write wait, but not for ever.
    fn waiting<T>(&mut self, polled: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stall = self.stall;
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        if sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> hyper::rt::Read for Io<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        BUFFER.with_borrow_mut(|scratch| {
            let room = out.remaining().min(scratch.len());
            let mut buffer = ReadBuf::new(scratch.get_mut(..room).unwrap_or_default());
            let polled = Pin::new(&mut this.stream).poll_read(cx, &mut buffer);
            polled.map_ok(|()| out.put_slice(buffer.filled()))
        })
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for Io<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.waiting(polled, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(cx);
        this.waiting(polled, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.waiting(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.waiting(polled, cx)
    }
}

/// The runtime's clock, for hyper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock;

struct Alarm(Pin<Box<Sleep>>);

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl hyper::rt::Sleep for Alarm {}

impl hyper::rt::Timer for Clock {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Alarm(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Alarm(Box::pin(tokio::time::sleep_until(Instant::from_std(deadline)))))
    }
}
