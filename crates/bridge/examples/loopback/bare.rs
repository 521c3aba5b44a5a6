//! A bare loopback MCP server on the same HTTP library: it knows two tools, and answers their calls itself.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpSocket;
use tokio::sync::Notify;
use toolway_transport::http_server::{AcceptLimits, Accepted, ConnectionTimes, accept_all, serve_http1};

/// What the two servers share: the calls that wait for each other.
#[derive(Debug, Default)]
struct Gate {
    there: Mutex<usize>,
    open: Notify,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A body in one piece.
struct Whole(Option<Bytes>);

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Serves until the process ends; says where first.
pub(crate) async fn run() -> Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(4096)?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    println!("{}", serde_json::json!({"url": url, "echo": "echo", "gate": "gate"}));
    let gate = Arc::new(Gate::default());
    let limits = AcceptLimits { max_connections: 4096, grace: Duration::from_secs(1) };
    accept_all(listener, limits, std::future::pending(), |accepted| connection(accepted, Arc::clone(&gate)))
        .await;
    Ok(())
}

async fn connection(accepted: Accepted, gate: Arc<Gate>) {
    let Accepted { stream, stop, standing, .. } = accepted;
    stream.set_nodelay(true).ok();
    standing.admit();
    let long = Duration::from_mins(10);
    let times = ConnectionTimes { admission: long, idle: long, stall: long, half_open: false };
    serve_http1(stream, times, &stop, &standing, |request| answer(request, Arc::clone(&gate))).await.ok();
}

async fn answer(request: http::Request<Incoming>, gate: Arc<Gate>) -> Response<Whole> {
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    let mut response = Response::new(Whole(None));
    let Ok(Request { id: Some(id), method, params }) = serde_json::from_slice(&bytes) else {
        *response.status_mut() = StatusCode::ACCEPTED;
        return response;
    };
    let result = match (method, params) {
        ("tools/call", Some(Params { name: Some(name), arguments })) => call(name, arguments, &gate).await,
        ("initialize", _) => {
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"1"}}"#
                .to_owned()
        }
        _ => r#"{"tools":[]}"#.to_owned(),
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get());
    *response.body_mut() = Whole(Some(body.into()));
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    headers.insert("mcp-session-id", http::HeaderValue::from_static("bare"));
    response
}

async fn call(name: &str, arguments: Option<&RawValue>, gate: &Gate) -> String {
    let arguments = arguments.map_or("{}", RawValue::get);
    if name == "gate" {
        wait(gate, wanted(arguments)).await;
    }
    let text = serde_json::Value::from(arguments);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#)
}

/// How many calls are to be there before one is answered.
pub(crate) fn wanted(arguments: &str) -> usize {
    let tree: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    tree["wait"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1)
}

async fn wait(gate: &Gate, wanted: usize) {
    let opened = gate.open.notified();
    let last = {
        let Ok(mut there) = gate.there.lock() else { return };
        *there += 1;
        let last = *there >= wanted;
        if last {
            *there = 0;
        }
        last
    };
    if last {
        gate.open.notify_waiters();
    } else {
        opened.await;
    }
}
