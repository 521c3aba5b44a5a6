//! Owns the meaning of the arguments of `serve`: the gateway's settings without its servers, and its front over HTTP.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolway_guard::{Glob, Guard};
use toolway_proxy::Recorder;
use toolway_proxy::gateway::{
    AuditConfig, Expose, GatewayConfig, HttpFrontConfig, MAX_NAME_CHARS, MetricsConfig, ObserveConfig,
    ServerEntry, TracesConfig, Wait, server_tls,
};
use toolway_secret::Secret;
use tracing::level_filters::LevelFilter;

use super::value::Environment;
use super::{UsageError, cache_dir, common, seen};
use crate::args::{CommonArgs, GatewayArgs, HttpArgs};
use crate::units;

/// What `serve` runs with, but for the servers.
#[derive(Debug)]
pub(crate) struct Serving {
    expose: Expose,
    bare: bool,
    wait: Wait,
    pin_tools: bool,
    catalogue_dir: Option<PathBuf>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) drain: Duration,
    pub(crate) record: Option<Recorder>,
    pub(crate) log: LevelFilter,
    pub(crate) observe: ObserveConfig,
    /// Servers are shared with other gateways.
    pub(crate) shared: bool,
}

impl Serving {
    /// Checks the arguments.
    pub(crate) fn new(
        args: GatewayArgs,
        mut common_args: CommonArgs,
        own: &Environment,
    ) -> Result<Self, UsageError> {
        // A gateway offers the tool that reads saved results unless it is told not to.
        if own.option(common_args.read_back.clone(), "read-back", None)?.is_none() {
            common_args.read_back = Some("session".to_owned());
        }
        let common = common(common_args, own)?;
        let expose = match own.option(args.expose, "expose", None)? {
            Some(value) => value.choice(&[("all", false), ("search", true)])?,
            None => false,
        };
        if !expose && !args.pin.is_empty() {
            return Err(UsageError::new("--pin", "is for --expose search"));
        }
        let wait = match own.option(args.wait, "wait", None)? {
            Some(value) => {
                value.choice(&[("all", Wait::All), ("required", Wait::Required), ("none", Wait::None)])?
            }
            None => Wait::None,
        };
        let glob = |text: &String| {
            Glob::new(text).map_err(|error| UsageError::new("--pin", format!("{text:?}: {error}")))
        };
        let pinned = args.pin.iter().map(glob).collect::<Result<_, _>>()?;
        Ok(Self {
            expose: if expose { Expose::Search { pinned } } else { Expose::All },
            bare: args.bare || switch(own, "bare")?,
            wait,
            pin_tools: args.pin_tools || switch(own, "pin-tools")?,
            catalogue_dir: cache_dir(own).map(|cache| cache.join("catalogues")),
            guard: Arc::new(Guard::new(common.guard)),
            drain: common.drain,
            record: common.record,
            log: common.log,
            observe: observe(args.metrics, args.audit, own)?,
            shared: args.shared || switch(own, "shared")?,
        })
    }

    /// With these servers.
    pub(crate) fn with(&self, servers: Vec<ServerEntry>) -> GatewayConfig {
        GatewayConfig {
            servers,
            expose: self.expose.clone(),
            bare: self.bare,
            max_name_chars: MAX_NAME_CHARS,
            wait: self.wait,
            pin_tools: self.pin_tools,
            catalogue_dir: self.catalogue_dir.clone(),
            guard: Arc::clone(&self.guard),
        }
    }
}

/// A switch that its variable may turn on.
fn switch(own: &Environment, name: &str) -> Result<bool, UsageError> {
    Ok(own.option(None, name, None)?.is_some_and(|value| value.text != "0"))
}

fn observe(
    metrics: Option<String>,
    audit: Option<String>,
    own: &Environment,
) -> Result<ObserveConfig, UsageError> {
    let metrics = own.option(metrics, "metrics", None)?;
    let metrics = metrics.map(|value| value.parse(address)).transpose()?;
    let audit = own.option(audit, "audit", None)?;
    let traces = TracesConfig::from_variables(|name| Some(own.get(name)?.to_str()?.to_owned()));
    let traces = traces.map_err(|reason| UsageError::new("traces", reason))?;
    let traces = traces.map(|(traces, remarks)| {
        for remark in &remarks {
            tracing::warn!("{remark}");
        }
        traces
    });
    Ok(ObserveConfig {
        metrics: metrics.map(|listen| MetricsConfig { listen, open: false }),
        audit: audit.map(|value| AuditConfig::new(PathBuf::from(value.text))),
        traces,
    })
}

/// The front over HTTP.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    pub(crate) http: HttpFrontConfig,
    /// What is said of the token on stderr.
    pub(crate) said: String,
}

/// The front over HTTP, where one is asked for.
pub(crate) fn listening(args: HttpArgs, own: &Environment) -> Result<Option<Listening>, UsageError> {
    let Some(value) = own.option(args.listen, "listen", None)? else {
        return Ok(None);
    };
    let address = value.parse(address)?;
    let mut http = HttpFrontConfig::default();
    if let Some(value) = own.option(args.max_body, "max-body", None)? {
        http.max_body = value.parse(units::bytes)?;
    }
    for host in args.allow_host {
        http.hosts.push(host.to_ascii_lowercase());
    }
    http.origins = args.allow_origin;
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let certificate = read("--tls-cert", certificate)?;
        let key = read("--tls-key", key)?;
        let tls = server_tls(&certificate, &key).map_err(|reason| UsageError::new("--tls-cert", reason))?;
        http.tls = Some(tls);
    }
    let no_auth = args.no_auth || switch(own, "no-auth")?;
    let given = own.option(args.token, "token", None)?;
    let file = own.option(args.token_file, "token-file", None)?;
    let said = match (no_auth, given, file) {
        (true, None, None) => {
            if !address.ip().is_loopback() {
                let text = "is for loopback addresses: everybody in the network could use your servers";
                return Err(
                    UsageError::new("--no-auth", text).with_hint("leave it out, or listen on 127.0.0.1")
                );
            }
            "no token is asked for (--no-auth)".to_owned()
        }
        (_, Some(value), _) => {
            if value.from == "--token" {
                seen("--token", "--token-file FILE, or the variable TOOLWAY_TOKEN");
            }
            http.token = Some(token(&value.from, &value.text)?);
            "the token is the configured one".to_owned()
        }
        (_, None, Some(value)) => {
            let path = Path::new(&value.text);
            http.token = Some(token_of_file(&value.from, path)?);
            format!("the token is in {}", path.display())
        }
        (false, None, None) => {
            let new = new_token()?;
            let said = format!("send: Authorization: Bearer {}", new.expose());
            http.token = Some(new);
            said
        }
    };
    Ok(Some(Listening { address, http, said }))
}

/// `ADDRESS:PORT`, `localhost:PORT` or `PORT`.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse::<u16>().ok()) {
        return Ok((IpAddr::V4(Ipv4Addr::LOCALHOST), port).into());
    }
    text.parse().map_err(|_| "is no ADDRESS:PORT".to_owned())
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, UsageError> {
    std::fs::read(path)
        .map_err(|error| UsageError::new(what, format!("cannot read {}: {error}", path.display())))
}

fn token(what: &str, text: &str) -> Result<Secret, UsageError> {
    let text = text.trim();
    let fits = text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        return Err(UsageError::new(what, "a token has at least 16 visible ASCII characters and no blanks"));
    }
    Ok(Secret::in_use(text))
}

/// The token in a file, which is made when it is not there.
fn token_of_file(what: &str, path: &Path) -> Result<Secret, UsageError> {
    let failed = |doing: &str, error: std::io::Error| {
        UsageError::new(what, format!("cannot {doing} {}: {error}", path.display()))
    };
    match std::fs::read_to_string(path) {
        Ok(text) => {
            #[cfg(unix)]
            if let Ok(metadata) = std::fs::metadata(path)
                && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
            {
                tracing::warn!("others can read {}: chmod 600", path.display());
            }
            token(what, &text)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let new = new_token()?;
            let mut options = std::fs::File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(path).map_err(|error| failed("make", error))?;
            writeln!(file, "{}", new.expose()).map_err(|error| failed("write", error))?;
            Ok(new)
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// 256 bits that nobody can guess.
fn new_token() -> Result<Secret, UsageError> {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| UsageError::new("token", format!("the system has no randomness: {error}")))?;
    Ok(Secret::in_use(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(args: HttpArgs, own: &[(&str, &str)]) -> Result<Listening, String> {
        let found = listening(args, &Environment::of(own)).map_err(|error| error.to_string())?;
        found.ok_or_else(|| "nothing".to_owned())
    }

    fn at(address: &str) -> HttpArgs {
        HttpArgs { listen: Some(address.to_owned()), ..HttpArgs::default() }
    }

    #[test]
    fn an_address_is_loopback_unless_it_says_more() {
        for (text, address) in [
            ("8080", "127.0.0.1:8080"),
            (":8080", "127.0.0.1:8080"),
            ("localhost:0", "127.0.0.1:0"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(listen(at(text), &[]).unwrap().address.to_string(), address);
        }
        assert!(listen(at("example.com:80"), &[]).is_err());
        assert_eq!(listen(HttpArgs::default(), &[]).unwrap_err(), "nothing");
        assert!(listen(HttpArgs::default(), &[("TOOLWAY_LISTEN", "1")]).is_ok());
    }

    #[test]
    fn a_front_without_a_token_is_for_loopback_only() {
        let open = |address: &str| HttpArgs { no_auth: true, ..at(address) };
        assert!(listen(open("127.0.0.1:1"), &[]).unwrap().http.token.is_none());
        assert!(listen(open("[::1]:1"), &[]).is_ok());
        assert!(listen(open("0.0.0.0:1"), &[]).unwrap_err().contains("loopback"));
        let new = listen(at("1"), &[]).unwrap();
        assert_eq!(new.http.token.unwrap().expose().len(), 43);
        let own = listen(at("1"), &[("TOOLWAY_TOKEN", "0123456789abcdef")]).unwrap();
        assert_eq!(own.http.token.unwrap().expose(), "0123456789abcdef");
        assert!(!own.said.contains("0123456789abcdef"));
        assert!(listen(HttpArgs { token: Some("short".to_owned()), ..at("1") }, &[]).is_err());
    }

    #[test]
    fn a_file_for_the_token_is_made_once_and_read_then() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let args = || HttpArgs { token_file: Some(path.to_str().unwrap().to_owned()), ..at("1") };
        let first = listen(args(), &[]).unwrap();
        let second = listen(args(), &[]).unwrap();
        assert_eq!(first.http.token.unwrap().expose(), second.http.token.unwrap().expose());
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::write(&path, "short").unwrap();
        assert!(listen(args(), &[]).is_err());
    }
}
