//! What the tests share: an issuer with the server that it protects, a store of its own, people with browsers, a client
//! that calls tools as a transport does, and the search for secrets where none may be.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use futures_core::future::BoxFuture;
use http::{HeaderValue, StatusCode};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolway_auth::{Auth, AuthError, AuthSettings, KeyringUse, Opener, ServerAuth, Session, TlsSource};
use toolway_testkit::oauth::{Ask, Browser, Issuer, IssuerOptions, Site};
use url::Url;

/// Everything that this process logs, at every level.
static LOGGED: LazyLock<Arc<Mutex<Vec<u8>>>> = LazyLock::new(Arc::default);

struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn listen_to_logs() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(|| Log(Arc::clone(&LOGGED)))
            .with_ansi(false)
            .init();
    });
}

/// What this process has logged so far.
pub(crate) fn logged() -> String {
    let bytes = LOGGED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// TLS that trusts nobody: no test leaves this machine.
pub(crate) fn tls() -> TlsSource {
    Arc::new(|| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        Ok(Arc::new(config))
    })
}

/// An issuer, and the store of one user.
pub(crate) struct Desk {
    pub(crate) issuer: Issuer,
    pub(crate) home: TempDir,
    pub(crate) auth: Auth,
    /// All errors and answers that were looked at: nothing secret may be in them.
    said: Mutex<Vec<String>>,
}

impl Desk {
    pub(crate) fn new(options: IssuerOptions) -> Result<Self> {
        listen_to_logs();
        let issuer = Issuer::start(options)?;
        let home = TempDir::new()?;
        let auth = Auth::new(settings(home.path().join("sign-ins")));
        Ok(Self { issuer, home, auth, said: Mutex::default() })
    }

    /// The default issuer.
    pub(crate) fn plain() -> Result<Self> {
        Self::new(IssuerOptions::default())
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.home.path().join("sign-ins")
    }

    /// As another process of the same user.
    pub(crate) fn again(&self, change: impl FnOnce(&mut AuthSettings)) -> Auth {
        let mut settings = settings(self.directory());
        change(&mut settings);
        Auth::new(settings)
    }

    pub(crate) fn server(&self) -> Result<ServerAuth> {
        Ok(ServerAuth::new(Url::parse(self.issuer.resource_url())?)?)
    }

    pub(crate) fn session(&self) -> Result<Session> {
        Ok(self.auth.session(self.server()?))
    }

    /// Signed in by a person, whose browser does all at once.
    pub(crate) async fn signed_in(&self) -> Result<Session> {
        let session = self.session()?;
        session.login(&[], false, &Person::default()).await?;
        Ok(session)
    }

    /// The text of an error, which is searched for secrets in the end.
    pub(crate) fn text(&self, error: &AuthError) -> String {
        let text = error.to_string();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push(format!("{error:?}"));
        said.push(text.clone());
        text
    }

    /// No request came to the third origin.
    pub(crate) fn nothing_went_elsewhere(&self) -> bool {
        self.issuer.journal().exchanges.iter().all(|exchange| exchange.site != Site::Elsewhere)
    }

    /// Waits until the issuer holds a token request, while the requests of this process go on.
    pub(crate) async fn held(&self) -> Result<()> {
        soon(async {
            while self.issuer.all_held().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }

    /// The files of the store that hold sign-ins.
    pub(crate) fn sealed(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for file in std::fs::read_dir(self.directory())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "sealed") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    /// Nothing that the issuer ever gave stands in a log, an error, the journal, or a file as it is.
    pub(crate) fn clean(&self) -> Result<()> {
        let mut places = vec![("the logs".to_owned(), logged())];
        places.push(("the journal".to_owned(), self.issuer.journal().told()));
        places.push(("debug".to_owned(), format!("{:?} {:?}", self.auth, self.session()?)));
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        places.push(("an error".to_owned(), said));
        for file in std::fs::read_dir(self.directory()).into_iter().flatten() {
            let path = file?.path();
            if path.is_file() {
                let bytes = std::fs::read(&path)?;
                places.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        for secret in self.issuer.secrets() {
            let base64 = base64::engine::general_purpose::STANDARD.encode(&secret);
            let percent: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            for (place, text) in &places {
                let found = [&secret, &base64, &percent].into_iter().any(|form| text.contains(form.as_str()));
                ensure!(!found, "{place} has {:?}", self.issuer.label(&secret));
            }
        }
        Ok(())
    }
}

/// Settings with nobody's keyring, and bounds that a test can wait for.
pub(crate) fn settings(directory: PathBuf) -> AuthSettings {
    let mut settings = AuthSettings::new(directory, tls());
    settings.keyring = KeyringUse::Never;
    settings
}

/// A person before a browser, and what they saw.
#[derive(Default)]
pub(crate) struct Person {
    browser: Browser,
    lazy: bool,
    pub(crate) shown: Arc<Mutex<Vec<String>>>,
    pub(crate) waits: AtomicUsize,
    copies: Option<Copies>,
}

struct Copies {
    sender: mpsc::Sender<String>,
    receiver: tokio::sync::Mutex<mpsc::Receiver<String>>,
}

impl Person {
    /// One who sees the address and does nothing.
    pub(crate) fn away() -> Self {
        Self { lazy: true, ..Self::default() }
    }

    /// One whose browser is on another machine, and who copies the address where it ended.
    pub(crate) fn who_copies() -> Self {
        let (sender, receiver) = mpsc::channel(4);
        let copies = Copies { sender, receiver: tokio::sync::Mutex::new(receiver) };
        Self { browser: Browser::on_another_machine(), copies: Some(copies), ..Self::default() }
    }

    /// The same, who pastes this first.
    pub(crate) async fn pasting(self, text: &str) -> Result<Self> {
        self.copies.as_ref().context("one who copies nothing")?.sender.send(text.to_owned()).await?;
        Ok(self)
    }

    /// How often an address was shown.
    pub(crate) fn count(&self) -> usize {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Opener for Person {
    fn show(&self, url: &Url) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).push(url.to_string());
        if self.lazy {
            return;
        }
        let (browser, url) = (self.browser.clone(), url.to_string());
        let sender = self.copies.as_ref().map(|copies| copies.sender.clone());
        std::thread::spawn(move || {
            let visit = browser.visit(&url);
            if let (Some(sender), Ok(visit)) = (sender, visit) {
                sender.blocking_send(visit.redirect.unwrap_or_default()).ok();
            }
        });
    }

    fn waits(&self) {
        self.waits.fetch_add(1, Ordering::SeqCst);
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            match &self.copies {
                Some(copies) => match copies.receiver.lock().await.recv().await {
                    Some(text) => text,
                    None => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        })
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Called {
    /// It was answered with this.
    Good(String),
    /// The server refused it, and signing in is no help.
    Status(u16),
    /// The request was not sent, or not sent again.
    Failed(AuthError),
}

impl Called {
    pub(crate) fn error(self) -> Result<AuthError> {
        match self {
            Self::Failed(error) => Ok(error),
            other => anyhow::bail!("no error: {other:?}"),
        }
    }

    pub(crate) fn text(self) -> Result<String> {
        match self {
            Self::Good(text) => Ok(text),
            other => anyhow::bail!("no answer: {other:?}"),
        }
    }
}

/// Calls a tool as a transport does: with a token where there is one, and again when it was refused, once for each kind
/// of refusal.
pub(crate) async fn call(session: &Session, tool: &str) -> Result<Called> {
    let mut refusals = Vec::new();
    loop {
        let header = match session.authorize().await {
            Ok(header) => header,
            Err(error) => return Ok(Called::Failed(error)),
        };
        let reply = sent(session, tool, header.clone()).await?;
        if reply.status == 200 {
            let body = reply.json()?;
            let text = body.pointer("/result/content/0/text").and_then(serde_json::Value::as_str);
            return Ok(Called::Good(text.unwrap_or_default().to_owned()));
        }
        if refusals.contains(&reply.status) {
            return Ok(Called::Status(reply.status));
        }
        refusals.push(reply.status);
        let challenges: Vec<&str> = reply.headers_named("www-authenticate");
        let status = StatusCode::from_u16(reply.status)?;
        match session.challenged(status, &challenges, header.as_ref()).await {
            Ok(true) => {}
            Ok(false) => return Ok(Called::Status(reply.status)),
            Err(error) => return Ok(Called::Failed(error)),
        }
    }
}

/// The same, begun and not waited for.
pub(crate) fn calling(session: &Session) -> JoinSet<Result<Called>> {
    let (mut calls, session) = (JoinSet::new(), session.clone());
    calls.spawn(async move { call(&session, "whoami").await });
    calls
}

/// What became of it.
pub(crate) async fn called(mut calls: JoinSet<Result<Called>>) -> Result<Called> {
    soon(calls.join_next()).await?.context("nothing was begun")??
}

pub(crate) async fn sent(
    session: &Session,
    tool: &str,
    header: Option<HeaderValue>,
) -> Result<toolway_testkit::oauth::Reply> {
    let params = json!({ "name": tool, "arguments": { "text": "hello" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut ask = Ask::json(session.server().resource.as_str(), &body);
    if let Some(header) = header {
        ask = ask.header("Authorization", header.to_str()?);
    }
    tokio::task::spawn_blocking(move || ask.send()).await?
}

/// Waits as long as a test may, on a machine that is busy.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(Duration::from_mins(1), Box::pin(what)).await.context("it does not happen")
}
