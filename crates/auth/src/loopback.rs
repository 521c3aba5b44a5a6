//! Owns the small server on this machine to which the browser is sent with the answer (RFC 8252, 7.3). It lives for one
//! login, and lets nobody end it who does not know the login's state.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::{Host, Url};

use crate::answer::{Answered, Expected};
use crate::error::AuthError;
use crate::settings::Redirect;

/// The path of our own redirects.
const PATH: &str = "/callback";
/// Bytes of a request's head that are read.
const HEAD: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at the same time: browsers open some in advance.
const MOST: usize = 32;

/// A port at which the answer is waited for.
#[derive(Debug)]
pub(crate) struct Loopback {
    listeners: Vec<TcpListener>,
    redirect: Url,
}

impl Loopback {
    /// Listens for a redirect; where any port will do, on `port` if it is free.
    pub(crate) async fn listen(redirect: &Redirect, port: Option<u16>) -> Result<Option<Self>, AuthError> {
        match redirect {
            Redirect::Elsewhere(_) => Ok(None),
            Redirect::Fixed(url) => Self::fixed(url).await.map(Some),
            Redirect::Loopback => Self::free(port).await.map(Some),
        }
    }

    async fn free(port: Option<u16>) -> Result<Self, AuthError> {
        let at = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let wanted = match port {
            Some(port) => at(port).await.ok(),
            None => None,
        };
        let failed =
            |error: std::io::Error| AuthError::Redirect { reason: format!("no port is free: {error}") };
        let listener = match wanted {
            Some(listener) => listener,
            None => at(0).await.map_err(failed)?,
        };
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect = Url::parse(&format!("http://127.0.0.1:{port}{PATH}"))
            .map_err(|error| AuthError::Redirect { reason: error.to_string() })?;
        Ok(Self { listeners: vec![listener], redirect })
    }

    async fn fixed(url: &Url) -> Result<Self, AuthError> {
        let port = url.port().unwrap_or(80);
        // `localhost` is both, and browsers try the one or the other first.
        let hosts: &[IpAddr] = match url.host() {
            Some(Host::Ipv4(address)) => &[IpAddr::V4(address)],
            Some(Host::Ipv6(address)) => &[IpAddr::V6(address)],
            _ => &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
        };
        let (mut listeners, mut failed) = (Vec::new(), None);
        for host in hosts {
            match TcpListener::bind(SocketAddr::new(*host, port)).await {
                Ok(listener) => listeners.push(listener),
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let in_use = failed.as_ref().is_some_and(|error| error.kind() == std::io::ErrorKind::AddrInUse);
        match failed {
            Some(error) if listeners.is_empty() || in_use => {
                let reason = format!(
                    "port {port} cannot be listened on ({error}): end the program that has it, or give another redirect that is registered"
                );
                Err(AuthError::Redirect { reason })
            }
            _ => Ok(Self { listeners, redirect: url.clone() }),
        }
    }

    /// Where the browser is to be sent.
    pub(crate) fn redirect(&self) -> &Url {
        &self.redirect
    }

    /// The answer to this login. Others are turned away, and do not end it.
    pub(crate) async fn answer(self, expected: &Expected) -> Result<Answered, AuthError> {
        let (sender, mut answers) = mpsc::channel::<(Answered, TcpStream)>(4);
        let mut tasks = JoinSet::new();
        for listener in self.listeners {
            let (sender, path) = (sender.clone(), self.redirect.path().to_owned());
            tasks.spawn(accept(listener, path, sender));
        }
        drop(sender);
        while let Some((answered, stream)) = answers.recv().await {
            if answered.is_of(expected) {
                // The page is shown before this ends, and with it the connection.
                show(
                    stream,
                    "200 OK",
                    "Signed in",
                    "You can close this window and go back to your terminal.",
                    &answered,
                )
                .await;
                return Ok(answered);
            }
            tracing::warn!("an answer with another state came to the redirect, and is of no login of ours");
            page(
                stream,
                "400 Bad Request",
                "Not accepted",
                "This answer is not of the login that is under way.",
            )
            .await;
        }
        Err(AuthError::Redirect { reason: "nobody listens any more".to_owned() })
    }
}

async fn accept(listener: TcpListener, path: String, answers: mpsc::Sender<(Answered, TcpStream)>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MOST {
            connections.join_next().await;
        }
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, say: not at full speed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (path, answers) = (path.clone(), answers.clone());
        connections.spawn(async move {
            if let Ok(Some(answer)) = tokio::time::timeout(PATIENCE, request(stream, &path)).await {
                answers.send(answer).await.ok();
            }
        });
    }
}

/// One request; `None` where it is none of ours, which was answered then.
async fn request(mut stream: TcpStream, path: &str) -> Option<(Answered, TcpStream)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > HEAD {
            page(stream, "431 Request Header Fields Too Large", "Too large", "").await;
            return None;
        }
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let url = Url::parse("http://localhost").and_then(|base| base.join(target)).ok();
    let Some(url) = url.filter(|url| url.path() == path && target.starts_with('/')) else {
        page(stream, "404 Not Found", "Not found", "").await;
        return None;
    };
    if method != "GET" {
        page(stream, "405 Method Not Allowed", "Not allowed", "").await;
        return None;
    }
    Some((Answered::of(&url), stream))
}

async fn show(stream: TcpStream, status: &str, title: &str, text: &str, answered: &Answered) {
    if answered.is_refusal() {
        page(stream, "200 OK", "Not signed in", "The sign-in was refused. Your terminal says why.").await;
    } else {
        page(stream, status, title, text).await;
    }
}

/// Nothing of the request is in it.
async fn page(mut stream: TcpStream, status: &str, title: &str, text: &str) {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Toolway: {title}</title>\
         <style>body{{font:1.1em system-ui;margin:4em auto;max-width:30em}}</style><h1>{title}</h1><p>{text}</p></html>\n"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    let write = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    if !matches!(tokio::time::timeout(PATIENCE, write).await, Ok(Ok(()))) {
        tracing::debug!("the browser did not take the page");
    }
}
