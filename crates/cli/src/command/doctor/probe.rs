//! Owns what a start tells: command, process, transport, generation, login, lists and, when asked, a call. Reads no
//! configuration.

use toolway_proxy::gateway::{
    Alone, Carrier, Client, ClientError, Negotiated, OpenError, RawLists, RemoteKind, ServerConfig, Shared,
    Stage, Target,
};

use toolway_transport::{Payload, Signer};

use super::causes;
use super::report::{Check, Layer};

/// A call that is made to see whether a server works.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// The server's own name of the tool.
    pub(super) tool: String,
    /// A JSON object.
    pub(super) arguments: String,
}

/// What a start told.
#[derive(Debug)]
pub(super) struct Probed {
    /// As in [`ServerReport`](super::report::ServerReport).
    pub(super) state: &'static str,
    /// An agent would get its tools.
    pub(super) usable: bool,
    /// Layer by layer, up to the first that fails.
    pub(super) checks: Vec<Check>,
    /// What the server offers.
    pub(super) lists: Option<RawLists>,
}

/// Starts or reaches the server, asks for its lists, makes the call, and ends it.
pub(super) async fn probe(config: &ServerConfig, shared: &Shared, sample: Option<&Sample>) -> Probed {
    let mut client = match Client::open(config, shared).await {
        Ok(client) => client,
        Err(error) => return failed(config, &error),
    };
    let mut checks = connected(config, client.negotiated());
    let lists = match client.lists().await {
        Ok(lists) => lists,
        Err(ClientError::Unanswered(failure)) if failure.needs_auth() => {
            client.close().await;
            checks.retain(|check| check.layer != Layer::Authorised);
            checks.push(Check::fault(
                Layer::Authorised,
                format!("tools/list: {}", failure.message),
                login(failure.hint()),
            ));
            return Probed { state: "needs_auth", usable: false, checks, lists: None };
        }
        Err(error) => {
            let fix = "tell the server's author; other servers are not affected";
            checks.push(Check::fault(Layer::Tools, format!("tools/list failed: {error}"), fix));
            client.close().await;
            return Probed { state: "failed", usable: false, checks, lists: None };
        }
    };
    checks.extend(lists.notes.iter().map(|note| {
        Check::warning(Layer::Tools, note.clone(), "tell the server's author: what came before is used")
    }));
    let mut usable = true;
    if let Some(sample) = sample {
        let check = call(&mut client, sample).await;
        usable = check.fix.is_none();
        checks.push(check);
    }
    client.close().await;
    Probed { state: if usable { "connected" } else { "failed" }, usable, checks, lists: Some(lists) }
}

async fn call(client: &mut Client, sample: &Sample) -> Check {
    let tool = &sample.tool;
    let payload = match client.call(tool, &sample.arguments, &mut Alone).await {
        Ok(payload) => payload,
        Err(error) => {
            let fix = "try other arguments, or raise callIdleTimeoutMs if it only needs longer";
            return Check::fault(Layer::Call, format!("{tool}: {error}"), fix);
        }
    };
    let said_error = matches!(&payload, Payload::Bytes(bytes) if says_error(bytes));
    if said_error {
        let fix = format!("see what it says: toolway call SERVER {tool} '{}'", sample.arguments);
        return Check::fault(Layer::Call, format!("{tool}: answered with isError"), fix);
    }
    Check::ok(Layer::Call, format!("{tool}: answered with {} bytes", payload.len()))
}

fn says_error(result: &[u8]) -> bool {
    let result: Result<serde_json::Value, _> = serde_json::from_slice(result);
    result.is_ok_and(|result| result["isError"] == true)
}

/// What a connection tells, layer by layer.
fn connected(config: &ServerConfig, negotiated: &Negotiated) -> Vec<Check> {
    let mut checks = Vec::new();
    match &config.target {
        Target::Child(child) => {
            checks.push(Check::ok(Layer::Command, format!("{} was found", child.command)));
            checks.push(Check::ok(Layer::Spawn, "started"));
            checks.push(Check::ok(Layer::Transport, "stdio"));
        }
        Target::Remote(remote) => checks.push(carried(remote.kind, negotiated.carrier)),
        // A copy of the daemon's, which the doctor never asks.
        #[cfg(unix)]
        Target::Attached(_) => {}
        Target::Embedded(_) => {}
    }
    let who = negotiated.server_name().unwrap_or_else(|| "a server without a name".to_owned());
    let version = negotiated.server_version().map_or_else(String::new, |version| format!(" {version}"));
    checks.push(Check::ok(Layer::Generation, format!("{who}{version} speaks {}", negotiated.version)));
    let signed = config.target.signer().is_some_and(Signer::has_signed);
    checks.push(Check::ok(Layer::Authorised, if signed { "signed in" } else { "no login was asked for" }));
    checks
}

/// What to do where a login is wanted.
fn login(hint: Option<String>) -> String {
    hint.unwrap_or_else(|| "give a token in headers.Authorization".to_owned())
}

/// Whether the transport is the configured one.
fn carried(kind: RemoteKind, carrier: Carrier) -> Check {
    match (kind, carrier) {
        (RemoteKind::StreamableHttp, Carrier::Sse) => Check::warning(
            Layer::Transport,
            "configured as http, but the server speaks only the older HTTP+SSE: each start costs a refused request, \
             and clients without the fallback have no tools",
            "set \"type\": \"sse\" in the entry",
        ),
        _ => Check::ok(Layer::Transport, carrier.name()),
    }
}

/// Why there is no connection: the layers that were passed, and the one that was not.
fn failed(config: &ServerConfig, error: &OpenError) -> Probed {
    let mut checks = Vec::new();
    let detail = &error.detail;
    if let Some(program) = &detail.program {
        checks.push(Check::ok(Layer::Command, program.display().to_string()));
    }
    if detail.needs_auth {
        checks.push(Check::fault(Layer::Authorised, finding(error), login(error.hint.clone())));
        return Probed { state: "needs_auth", usable: false, checks, lists: None };
    }
    let (layer, fix) = match error.stage {
        Stage::Configure => (Layer::File, "correct the entry".to_owned()),
        Stage::Resolve => (Layer::Command, resolve_fix(config, error)),
        Stage::Spawn => {
            if let Some((cause, fix)) = unstartable(error) {
                checks.push(Check::fault(Layer::Spawn, format!("{}: {cause}", error.reason), fix));
                return Probed { state: "failed", usable: false, checks, lists: None };
            }
            (Layer::Spawn, spawn_fix(error))
        }
        Stage::Connect => (Layer::Transport, connect_fix(error)),
        Stage::Initialize => (Layer::Generation, initialize_fix(config, error)),
        Stage::List => (Layer::Tools, "tell the server's author".to_owned()),
        Stage::Run => {
            (Layer::Transport, "try again; if it happens again, see the server's own log".to_owned())
        }
    };
    checks.push(Check::fault(layer, finding(error), fix));
    Probed { state: "failed", usable: false, checks, lists: None }
}

/// Why the system did not start the program.
fn unstartable(error: &OpenError) -> Option<causes::Cause> {
    let program = error.detail.program.as_deref().filter(|_| error.reason.starts_with("cannot start"));
    program.and_then(causes::of_program)
}

/// What happened, what stood on stdout in the place of messages, then the server's last words.
fn finding(error: &OpenError) -> String {
    let mut finding = error.reason.clone();
    if let Some((found, _)) = causes::of_stdout(error) {
        finding.push('\n');
        finding.push_str(&found);
    }
    for exchange in &error.detail.exchanges {
        let kind = exchange.content_type.as_deref().unwrap_or("no content type");
        let line = format!("{} {}: {} ({kind})", exchange.method, exchange.url, exchange.status);
        if !finding.contains(&line) {
            finding.push('\n');
            finding.push_str(&line);
        }
    }
    let said = error.detail.stderr.as_deref().map(str::trim).unwrap_or_default();
    if !said.is_empty() && !finding.contains(said) {
        finding.push('\n');
        finding.push_str(said);
    }
    finding
}

fn resolve_fix(config: &ServerConfig, error: &OpenError) -> String {
    if let Some(found) = error.detail.found_at.first() {
        return format!(
            "use \"command\": \"{found}\": a version manager or package manager keeps it there, and a desktop program \
             does not have your shell's PATH"
        );
    }
    let command = match &config.target {
        Target::Child(child) => child.command.as_str(),
        _ => "the command",
    };
    if let Some(fix) = causes::of_command(config) {
        return fix;
    }
    error.hint.clone().unwrap_or_else(|| {
        format!("install {command}, or give its absolute path, or add its folder to env.PATH of the entry")
    })
}

fn spawn_fix(error: &OpenError) -> String {
    if error.detail.timed_out {
        return "it started and said nothing: raise startupTimeoutMs if it only needs longer".to_owned();
    }
    if let Some(fix) = causes::of_last_words(error) {
        return fix;
    }
    error.hint.clone().unwrap_or_else(|| {
        "read its last words above; a server gets a small safe set of variables only: name what it needs in env, or \
         set \"inheritEnv\": true"
            .to_owned()
    })
}

fn connect_fix(error: &OpenError) -> String {
    let last = error.detail.exchanges.last();
    let is_html = |kind: &str| kind.to_ascii_lowercase().contains("html");
    match last {
        Some(exchange) if exchange.content_type.as_deref().is_some_and(is_html) => {
            "that is a web page, perhaps a login page or a proxy's: correct the path of the URL (often /mcp or /sse), \
             or give the token that the page wants"
                .to_owned()
        }
        Some(exchange) => match exchange.status {
            404 | 405 => "correct the path of the URL (often /mcp or /sse), or the type".to_owned(),
            429 => "wait, and try again: the server counts requests".to_owned(),
            300..=399 => "use the address that it points to".to_owned(),
            500..=599 => "the server is in trouble: try again later, or tell whoever runs it".to_owned(),
            _ => error.hint.clone().unwrap_or_else(|| "compare the URL with the server's documentation".to_owned()),
        },
        // A record of TLS begins with a byte that no HTTP answer has.
        None if error.reason.contains("InvalidContentType") => {
            "something without TLS answers there: use http:// in the URL, or the port that has TLS".to_owned()
        }
        None if error.reason.contains("UnknownIssuer") => {
            "no known authority signed its certificate: give its own in tls.caBundle, as PEM".to_owned()
        }
        None => error.hint.clone().unwrap_or_else(|| {
            "check host and port of the URL, and that the server is running and can be reached from here".to_owned()
        }),
    }
}

fn initialize_fix(config: &ServerConfig, error: &OpenError) -> String {
    if let Some((_, fix)) = causes::of_stdout(error) {
        return fix;
    }
    if error.detail.timed_out {
        let seconds = config.timeouts.startup.as_secs_f64();
        return format!(
            "is it an MCP server over this transport? Run it by hand and see; if it only needs longer than {seconds} s \
             (a first download), raise startupTimeoutMs"
        );
    }
    error
        .hint
        .clone()
        .unwrap_or_else(|| "is it an MCP server? Set \"protocol\" if only one generation works".to_owned())
}
