//! Owns a server's whole definition as text: what a gateway tells the daemon, and what two gateways must have in common to
//! use one copy. It holds secrets: it is never printed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolway_secret::Secret;
use toolway_transport::{ChildConfig, Connector, HttpConfig, Roots};

use crate::gateway::{
    ChildTarget, Protocol, RemoteKind, RemoteTarget, ServerConfig, Share, Target, Timeouts, ToolFilter,
};

/// One server's definition.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Definition {
    /// What its gateway calls it: for texts only.
    pub(super) name: String,
    whole: Whole,
    secrets: Vec<String>,
}

impl fmt::Debug for Definition {
    /// The name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What must be equal.
#[derive(Clone, Serialize, Deserialize)]
struct Whole {
    child: Option<ChildText>,
    remote: Option<RemoteText>,
    startup_ms: u64,
    list_ms: u64,
    call_idle_ms: u64,
    call_max_ms: u64,
    share: String,
    protocol: String,
    roots: Option<Vec<String>>,
}

#[derive(Clone, Serialize, Deserialize)]
struct ChildText {
    command: String,
    args: Vec<Bytes>,
    env: BTreeMap<String, Bytes>,
    cwd: Bytes,
    supervised: bool,
}

#[derive(Clone, Serialize, Deserialize)]
struct RemoteText {
    url: String,
    headers: Vec<(String, String)>,
    kind: String,
    timeout_ms: u64,
    sse_read_timeout_ms: u64,
    max_in_flight: usize,
    title_case: bool,
    /// DER in base64.
    roots: Vec<String>,
    /// Those of the system hold too.
    system_roots: bool,
}

/// What need not be UTF-8, in base64.
#[derive(Clone, Serialize, Deserialize)]
struct Bytes(String);

impl Bytes {
    fn of(text: impl AsRef<std::ffi::OsStr>) -> Self {
        Self(STANDARD.encode(text.as_ref().as_bytes()))
    }

    fn text(&self) -> Option<OsString> {
        STANDARD.decode(&self.0).ok().map(OsString::from_vec)
    }
}

const SHARES: [(Share, &str); 3] =
    [(Share::Auto, "auto"), (Share::Always, "always"), (Share::Never, "never")];
const PROTOCOLS: [(Protocol, &str); 3] =
    [(Protocol::Auto, "auto"), (Protocol::Legacy, "legacy"), (Protocol::Modern, "modern")];
const KINDS: [(RemoteKind, &str); 3] =
    [(RemoteKind::Auto, "auto"), (RemoteKind::StreamableHttp, "http"), (RemoteKind::Sse, "sse")];

fn word<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> String {
    table.iter().find(|(own, _)| own == value).map_or("auto", |(_, word)| word).to_owned()
}

fn meaning<T: Copy>(table: &[(T, &str)], word: &str) -> Option<T> {
    table.iter().find(|(_, own)| *own == word).map(|(value, _)| *value)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Definition {
    /// `None`: it cannot be told to another process.
    pub(super) fn of(config: &ServerConfig) -> Option<Self> {
        let (child, remote) = match &config.target {
            Target::Child(target) => (Some(ChildText::of(target)?), None),
            Target::Remote(target) => (None, Some(RemoteText::of(target)?)),
            Target::Attached(_) | Target::Embedded(_) => return None,
        };
        let Timeouts { startup, list, call_idle, call_max } = config.timeouts;
        Some(Self {
            name: config.name.clone(),
            whole: Whole {
                child,
                remote,
                startup_ms: ms(startup),
                list_ms: ms(list),
                call_idle_ms: ms(call_idle),
                call_max_ms: ms(call_max),
                share: word(&SHARES, &config.share),
                protocol: word(&PROTOCOLS, &config.protocol),
                roots: config.roots.clone(),
            },
            secrets: config.secrets.iter().map(|secret| secret.expose().to_owned()).collect(),
        })
    }

    /// Equal for definitions that may share a copy, and for no others.
    pub(super) fn key(&self) -> String {
        let whole = serde_json::to_vec(&self.whole).unwrap_or_default();
        STANDARD.encode(Sha256::digest(&whole))
    }

    /// The settings to run it with; `supervisor` is our own program. `None`: it makes no sense.
    pub(super) fn config(&self, supervisor: Option<PathBuf>) -> Option<ServerConfig> {
        let whole = &self.whole;
        let target = match (&whole.child, &whole.remote) {
            (Some(child), None) => Target::Child(child.target(supervisor)?),
            (None, Some(remote)) => Target::Remote(remote.target()?),
            _ => return None,
        };
        Some(ServerConfig {
            name: self.name.clone(),
            target,
            digest: self.key(),
            timeouts: Timeouts {
                startup: Duration::from_millis(whole.startup_ms),
                list: Duration::from_millis(whole.list_ms),
                call_idle: Duration::from_millis(whole.call_idle_ms),
                call_max: Duration::from_millis(whole.call_max_ms),
            },
            required: false,
            lazy: false,
            share: meaning(&SHARES, &whole.share)?,
            filter: ToolFilter::default(),
            protocol: meaning(&PROTOCOLS, &whole.protocol)?,
            max_response_chars: None,
            secrets: self.secrets.iter().map(Secret::in_use).collect(),
            roots: whole.roots.clone(),
        })
    }
}

impl ChildText {
    fn of(target: &ChildTarget) -> Option<Self> {
        let ChildTarget { command, child } = target;
        // Its own working directory would be the daemon's.
        let cwd = child.cwd.as_ref()?;
        let variable =
            |(name, value): (&OsString, &OsString)| Some((name.to_str()?.to_owned(), Bytes::of(value)));
        Some(Self {
            command: command.clone(),
            args: child.args.iter().map(Bytes::of).collect(),
            env: child.env.iter().map(variable).collect::<Option<_>>()?,
            cwd: Bytes::of(cwd),
            supervised: child.supervise.is_some(),
        })
    }

    fn target(&self, supervisor: Option<PathBuf>) -> Option<ChildTarget> {
        let variable = |(name, value): (&String, &Bytes)| Some((name.into(), value.text()?));
        let child = ChildConfig {
            program: PathBuf::new(),
            args: self.args.iter().map(Bytes::text).collect::<Option<_>>()?,
            env: self.env.iter().map(variable).collect::<Option<_>>()?,
            cwd: Some(self.cwd.text()?.into()),
            supervise: supervisor.filter(|_| self.supervised),
        };
        Some(ChildTarget { command: self.command.clone(), child })
    }
}

impl RemoteText {
    /// Where somebody signs in, each gateway connects by itself: there is no process to share, tokens are shared by all
    /// processes anyway, and each gateway hears of a login.
    fn of(target: &RemoteTarget) -> Option<Self> {
        let RemoteTarget { http, kind } = target;
        if http.authorizer.is_some() {
            return None;
        }
        if !matches!(http.connector, Connector::Tcp) {
            return None;
        }
        let coded = |certificates: &[Vec<u8>]| certificates.iter().map(|der| STANDARD.encode(der)).collect();
        let (roots, system_roots) = match &http.roots {
            Roots::System => (Vec::new(), true),
            Roots::Only(certificates) => (coded(certificates), false),
            Roots::Besides(certificates) => (coded(certificates), true),
        };
        Some(Self {
            url: http.url.to_string(),
            headers: http
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect(),
            kind: word(&KINDS, kind),
            timeout_ms: ms(http.timeout),
            sse_read_timeout_ms: ms(http.sse_read_timeout),
            max_in_flight: http.max_in_flight,
            title_case: http.title_case,
            roots,
            system_roots,
        })
    }

    fn target(&self) -> Option<RemoteTarget> {
        let mut http = HttpConfig::new(&self.url).ok()?;
        http.headers = self.headers.iter().map(|(name, value)| (name.clone(), Secret::new(value))).collect();
        http.timeout = Duration::from_millis(self.timeout_ms);
        http.sse_read_timeout = Duration::from_millis(self.sse_read_timeout_ms);
        http.max_in_flight = self.max_in_flight;
        http.title_case = self.title_case;
        let roots = self.roots.iter().map(|der| STANDARD.decode(der).ok()).collect::<Option<Vec<_>>>()?;
        http.roots = match (self.system_roots, roots.is_empty()) {
            (true, true) => Roots::System,
            (true, false) => Roots::Besides(roots),
            (false, _) => Roots::Only(roots),
        };
        Some(RemoteTarget { http, kind: meaning(&KINDS, &self.kind)? })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolway_transport::{Authorizer, BoxFuture, Challenge, Retry, SignInError, Signer};

    use super::*;

    fn child(change: impl FnOnce(&mut ServerConfig, &mut ChildConfig)) -> Definition {
        let mut config = ServerConfig {
            name: "s".to_owned(),
            target: Target::Child(ChildTarget {
                command: String::new(),
                child: ChildConfig {
                    program: PathBuf::new(),
                    args: vec![],
                    env: BTreeMap::new(),
                    cwd: None,
                    supervise: None,
                },
            }),
            digest: "d".to_owned(),
            timeouts: Timeouts::default(),
            required: false,
            lazy: false,
            share: Share::Auto,
            filter: ToolFilter::default(),
            protocol: Protocol::Auto,
            max_response_chars: None,
            secrets: vec![Secret::new("hunter2")],
            roots: None,
        };
        let mut own = ChildConfig {
            program: PathBuf::new(),
            args: vec!["-x".into(), OsString::from_vec(vec![0xFF, b'a'])],
            env: [("A".into(), "1".into())].into(),
            cwd: Some("/w".into()),
            supervise: Some("/p".into()),
        };
        change(&mut config, &mut own);
        config.target = Target::Child(ChildTarget { command: "c".to_owned(), child: own });
        Definition::of(&config).unwrap()
    }

    #[test]
    fn a_copy_is_shared_only_where_everything_is_equal() {
        let key = child(|_, _| {}).key();
        assert_eq!(child(|config, _| config.name = "other".to_owned()).key(), key, "the name is for people");
        for other in [
            child(|_, child| child.cwd = Some("/v".into())),
            child(|_, child| drop(child.env.insert("A".into(), "2".into()))),
            child(|_, child| drop(child.env.insert("B".into(), "2".into()))),
            child(|_, child| child.args.push("y".into())),
            child(|config, _| config.protocol = Protocol::Legacy),
            child(|config, _| config.roots = Some(vec!["file:///".to_owned()])),
        ] {
            assert_ne!(other.key(), key);
        }
    }

    #[test]
    fn a_definition_comes_back_whole_and_is_never_printed() {
        let definition = child(|_, _| {});
        assert!(!format!("{definition:?}").contains("hunter2"));
        let text = serde_json::to_string(&definition).unwrap();
        let back: Definition = serde_json::from_str(&text).unwrap();
        let config = back.config(Some("/own".into())).unwrap();
        let Target::Child(target) = &config.target else { panic!() };
        assert_eq!(target.child.args[1], OsString::from_vec(vec![0xFF, b'a']));
        assert_eq!(
            (target.child.supervise.as_deref(), target.command.as_str()),
            (Some("/own".as_ref()), "c")
        );
        assert_eq!(Definition::of(&config).unwrap().key(), definition.key());
        let mut http = HttpConfig::new("https://h.example/mcp?k=1").unwrap();
        http.headers.push(("Authorization".to_owned(), Secret::new("Bearer x")));
        let remote = RemoteTarget { http, kind: RemoteKind::Sse };
        let config = ServerConfig { target: Target::Remote(remote), ..config };
        let back = Definition::of(&config).unwrap().config(None).unwrap();
        let Target::Remote(target) = back.target else { panic!() };
        assert_eq!((target.http.url.as_str(), target.kind), ("https://h.example/mcp?k=1", RemoteKind::Sse));
        assert_eq!(target.http.headers[0].1.expose(), "Bearer x");
    }

    #[test]
    fn a_server_that_somebody_signs_in_to_is_not_shared() {
        let mut http = HttpConfig::new("https://h.example/mcp").unwrap();
        let config = |http| ServerConfig {
            target: Target::Remote(RemoteTarget { http, kind: RemoteKind::Auto }),
            ..child(|_, _| {}).config(None).unwrap()
        };
        assert!(Definition::of(&config(http.clone())).is_some());
        http.authorizer = Some(Signer::new(Arc::new(Nobody)));
        assert!(Definition::of(&config(http)).is_none());
    }

    #[derive(Debug)]
    struct Nobody;

    impl Authorizer for Nobody {
        fn ready(&self) -> Option<http::HeaderValue> {
            None
        }
        fn authorize(&self) -> BoxFuture<'_, Result<Option<http::HeaderValue>, SignInError>> {
            Box::pin(std::future::ready(Ok(None)))
        }
        fn challenged(&self, _: Challenge) -> BoxFuture<'_, Result<Retry, SignInError>> {
            Box::pin(std::future::ready(Ok(Retry::No)))
        }
        fn changed(&self, _: Option<http::HeaderValue>) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
        fn hint(&self) -> String {
            String::new()
        }
    }
}
