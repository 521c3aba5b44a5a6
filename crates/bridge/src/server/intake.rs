//! Owns the taking in of a request's body: no further than it may go, and of large ones only so many at once. Knows no
//! messages.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::Server;

/// Bodies up to this need no place in the budget.
const SMALL: u64 = 64 << 10;

/// Why a body was not taken in.
#[derive(Debug)]
pub(super) enum Untaken {
    /// It is larger than allowed. The rest of it is given back.
    TooLarge(Incoming),
    /// The client sends no more of it.
    Slow,
    /// Other large bodies take all the room there is.
    Crowded,
    /// The connection was lost within it, or it is not well framed.
    Broken,
}

/// Takes the body in. `announced` is what the head says of its length.
pub(super) async fn take(
    server: &Server,
    announced: Option<u64>,
    mut body: Incoming,
) -> Result<Bytes, Untaken> {
    let options = &server.options;
    if announced.is_some_and(|length| length > options.max_body) {
        return Err(Untaken::TooLarge(body));
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0;
    let mut place = None;
    loop {
        // Before more than a little is held, there must be room for the whole of it: what is announced, or the most.
        if place.is_none() && announced.unwrap_or(length) > SMALL {
            let whole = announced.unwrap_or(options.max_body).min(options.max_body);
            let kib = u32::try_from(whole >> 10).unwrap_or(u32::MAX);
            let kib = kib.min(u32::try_from(options.body_budget >> 10).unwrap_or(u32::MAX));
            let free = timeout(options.stall, server.budget.acquire_many(kib)).await;
            place = Some(free.map_err(|_| Untaken::Crowded)?.map_err(|_| Untaken::Crowded)?);
        }
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let frame = match timeout(options.stall, next).await {
            Err(_) => return Err(Untaken::Slow),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Untaken::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(bytes) = frame.into_data() else { continue };
        length += bytes.len() as u64;
        if length > options.max_body {
            return Err(Untaken::TooLarge(body));
        }
        // A body in one piece is not copied.
        if first.is_empty() && rest.is_empty() {
            first = bytes;
        } else {
            rest.extend_from_slice(&std::mem::take(&mut first));
            rest.extend_from_slice(&bytes);
        }
    }
    drop(place);
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}
