//! A scripted HTTP/1.1 server in memory or over TCP: hands each request to the test, which writes raw bytes back.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use toolway_transport::Connector;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
type Socket = Box<dyn Stream>;

pub(crate) struct Server {
    pub(crate) connector: Connector,
    pub(crate) origin: String,
    requests: mpsc::Receiver<Request>,
    tasks: JoinSet<()>,
    killed: CancellationToken,
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Which connection, from 0.
    pub(crate) connection: usize,
    /// The client has closed the connection.
    pub(crate) gone: CancellationToken,
    out: Arc<Mutex<WriteHalf<Socket>>>,
}

impl Server {
    pub(crate) fn memory() -> Self {
        let (to_server, mut connections) = mpsc::channel::<DuplexStream>(64);
        let (found, requests) = mpsc::channel(256);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            let mut number = 0;
            while let Some(stream) = connections.recv().await {
                serving.spawn(connection(Box::new(stream), number, found.clone()));
                number += 1;
            }
        });
        let origin = "http://server.example".to_owned();
        Self {
            connector: Connector::Memory(to_server),
            origin,
            requests,
            tasks,
            killed: CancellationToken::new(),
        }
    }

    /// One TLS connection after the other over `listener`.
    pub(crate) fn tls(listener: TcpListener, acceptor: TlsAcceptor) -> io::Result<Self> {
        let origin = format!("https://localhost:{}", listener.local_addr()?.port());
        let (found, requests) = mpsc::channel(256);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serving.spawn(connection(Box::new(stream), number, found.clone()));
                    number += 1;
                }
            }
        });
        Ok(Self { connector: Connector::Tcp, origin, requests, tasks, killed: CancellationToken::new() })
    }

    pub(crate) fn on(listener: TcpListener) -> io::Result<Self> {
        let origin = format!("http://{}", listener.local_addr()?);
        let (found, requests) = mpsc::channel(256);
        let mut tasks = JoinSet::new();
        let killed = CancellationToken::new();
        let kill = killed.clone();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            let mut number = 0;
            while let Some(Ok((stream, _))) = kill.run_until_cancelled(listener.accept()).await {
                serving.spawn(connection(Box::new(stream), number, found.clone()));
                number += 1;
            }
            serving.shutdown().await;
        });
        Ok(Self { connector: Connector::Tcp, origin, requests, tasks, killed })
    }

    /// The next request, whatever connection it comes on.
    pub(crate) async fn next(&mut self) -> Request {
        match self.requests.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    /// Ends like a server that is killed: its port and its connections are closed.
    pub(crate) async fn kill(mut self) {
        self.killed.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    /// A request that has come already.
    pub(crate) fn already(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

async fn connection(socket: Socket, number: usize, found: mpsc::Sender<Request>) {
    let (mut input, output) = tokio::io::split(socket);
    let out = Arc::new(Mutex::new(output));
    let gone = CancellationToken::new();
    let mut buffer = Vec::new();
    while let Some(mut request) = head(&mut input, &mut buffer, number, &out, &gone).await {
        let length = request.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
        while buffer.len() < length {
            if input.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                break;
            }
        }
        let rest = buffer.split_off(length.min(buffer.len()));
        request.body = String::from_utf8_lossy(&buffer).into_owned();
        buffer = rest;
        if found.send(request).await.is_err() {
            return;
        }
    }
    gone.cancel();
}

async fn head(
    input: &mut ReadHalf<Socket>,
    buffer: &mut Vec<u8>,
    connection: usize,
    out: &Arc<Mutex<WriteHalf<Socket>>>,
    gone: &CancellationToken,
) -> Option<Request> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if input.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(buffer.get(..end)?).into_owned();
    buffer.drain(..end + 4);
    let mut lines = text.split("\r\n");
    let mut line = lines.next()?.split(' ').map(str::to_owned);
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let (method, path) = (line.next()?, line.next()?);
    let (out, gone) = (Arc::clone(out), gone.clone());
    Some(Request { method, path, headers, body: String::new(), connection, gone, out })
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Headers whose names begin so, for comparing a group at once.
    pub(crate) fn headers_of(&self, prefix: &str) -> Vec<(&str, &str)> {
        let mut found: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        found.sort_unstable();
        found
    }

    /// Raw bytes. A peer that is gone is no fault of the script.
    pub(crate) async fn raw(&self, bytes: impl AsRef<[u8]>) {
        let mut out = self.out.lock().await;
        if out.write_all(bytes.as_ref()).await.is_ok() {
            out.flush().await.ok();
        }
    }

    /// A whole answer. `status` is like `404 Not Found`; `headers` are lines that end in CR LF.
    pub(crate) async fn answer(&self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        self.raw(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")).await;
    }

    pub(crate) async fn json(&self, body: &str) {
        self.answer("200 OK", "content-type: application/json\r\n", body).await;
    }

    pub(crate) async fn accepted(&self) {
        self.answer("202 Accepted", "", "").await;
    }

    /// The head of an event stream that ends with the connection.
    pub(crate) async fn stream(&self) {
        self.raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await;
    }

    pub(crate) async fn close(&self) {
        self.out.lock().await.shutdown().await.ok();
    }

    /// The id of the message in the body, as spelled.
    pub(crate) fn id(&self) -> String {
        let value: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        value["id"].to_string()
    }
}
