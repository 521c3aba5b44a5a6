//! Owns what becomes of each configured entry: the gateway's settings to run it with, or the state that says why not. It
//! starts nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolway_config::{
    Entry, Expanded, ExpandedRemote, ExpandedStdio, ExpandedTarget, HeaderCase, InheritEnv, Options, Problem,
    Resolved, Standing,
};
use toolway_guard::Glob;
use toolway_proxy::gateway::{
    ChildTarget, Protocol, RemoteKind, RemoteTarget, ServerConfig, ServerEntry, ServerState, Share, Stage,
    Target, Timeouts, ToolFilter,
};
use toolway_transport::environment::environment;
use toolway_transport::{ChildConfig, HttpConfig, Platform, Roots, Signer};

use super::depth;
use crate::options::Machine;

/// How much longer than a call its transport waits.
const MARGIN: Duration = Duration::from_secs(5);

/// Every entry for the gateway, in the order of the configuration. `timeouts` hold where an entry says nothing of them.
/// Reads files of variables and runs the commands that values come from, so it blocks.
pub fn server_entries(resolved: &Resolved, machine: &Machine, timeouts: Timeouts) -> Vec<ServerEntry> {
    let entry = |entry: &Entry| ServerEntry {
        name: entry.name.clone(),
        source: entry.place.to_string(),
        plan: plan(entry, &resolved.problems, machine, timeouts),
    };
    resolved.entries.iter().map(entry).collect()
}

fn plan(
    entry: &Entry,
    problems: &[Problem],
    machine: &Machine,
    timeouts: Timeouts,
) -> Result<Arc<ServerConfig>, ServerState> {
    match &entry.standing {
        Standing::Ready => {}
        Standing::Invalid => return Err(invalid(&of_entry(entry, problems))),
        Standing::Shadowed { by } => return Err(ServerState::Shadowed { by: by.to_string() }),
        Standing::Blocked { policy } => return Err(ServerState::Blocked { policy: policy.clone() }),
        Standing::Itself => {
            let by = format!("{}: it runs toolway serve, which does not serve itself", entry.place);
            return Err(ServerState::Disabled { by });
        }
        Standing::Disabled { by } => return Err(ServerState::Disabled { by: by.to_string() }),
        Standing::Untrusted { .. } => return Err(ServerState::Untrusted { hint: approve(&entry.name) }),
        Standing::Unset { variables } => return Err(unset(entry, variables, problems)),
        Standing::NeedsInput { inputs } => return Err(ServerState::NeedsInput { inputs: inputs.clone() }),
    }
    let expanded = entry.expand(machine.environment());
    let expanded = expanded.map_err(|problems| invalid(&problems.iter().collect::<Vec<_>>()))?;
    config(expanded, machine, timeouts).map(Arc::new)
}

/// The command that approves a server.
fn approve(name: &str) -> String {
    format!("toolway trust {}", quoted(name, cfg!(windows)))
}

/// A word for a shell.
pub(crate) fn quoted(word: &str, windows: bool) -> String {
    let safe = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c) || (windows && c == '\\');
    match (!word.is_empty() && word.chars().all(safe), windows) {
        (true, _) => word.to_owned(),
        (false, true) => format!("\"{word}\""),
        (false, false) => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What is wrong with this very entry, errors only.
fn of_entry<'a>(entry: &Entry, problems: &'a [Problem]) -> Vec<&'a Problem> {
    let own = |problem: &&Problem| {
        problem.is_error()
            && problem.server.as_deref() == Some(&entry.name)
            && problem.file == entry.place.file
    };
    problems.iter().filter(own).collect()
}

fn invalid(problems: &[&Problem]) -> ServerState {
    let line = |problem: &&Problem| {
        let place = problem.place();
        let field = problem.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        let text = format!("{field}{}", problem.message);
        if place.is_empty() { text } else { format!("{text} ({place})") }
    };
    let reason = problems.iter().map(line).collect::<Vec<_>>().join("; ");
    let reason = if reason.is_empty() { "the definition has faults".to_owned() } else { reason };
    let hint = problems.iter().find_map(|problem| problem.hint.clone());
    ServerState::Failed { stage: Stage::Configure, reason, hint }
}

fn unset(entry: &Entry, variables: &[String], problems: &[Problem]) -> ServerState {
    let own = of_entry(entry, problems);
    if !own.is_empty() {
        return invalid(&own);
    }
    let (names, verb) = (variables.join(", "), if variables.len() == 1 { "is" } else { "are" });
    ServerState::Failed {
        stage: Stage::Configure,
        reason: format!("{names} {verb} not set ({})", entry.place),
        hint: Some("set it, or give a default: ${NAME:-default}".to_owned()),
    }
}

/// The gateway's settings of a server whose placeholders are replaced.
fn config(expanded: Expanded, machine: &Machine, timeouts: Timeouts) -> Result<ServerConfig, ServerState> {
    let options = expanded.options;
    let timeouts = timeouts_of(&options, timeouts);
    let target = match expanded.target {
        ExpandedTarget::Stdio(stdio) => Target::Child(child(stdio, machine)),
        ExpandedTarget::Remote(remote) => {
            let sign_ins = machine.sign_ins();
            let signed = sign_ins.map(|all| all.sign(&expanded.name, &remote, machine.opener())).transpose();
            let signed = signed.map_err(|error| faulty(format!("auth: {error}")))?.flatten();
            let mut remote = self::remote(remote)?;
            remote.http.authorizer = signed.map(Signer::new);
            wait_for_calls(&mut remote.http, &timeouts);
            Target::Remote(remote)
        }
    };
    Ok(ServerConfig {
        name: expanded.name,
        target,
        digest: expanded.digest,
        timeouts,
        required: options.required.unwrap_or(false),
        lazy: options.lazy.unwrap_or(false),
        share: match options.share.unwrap_or_default() {
            toolway_config::Share::Auto => Share::Auto,
            toolway_config::Share::Always => Share::Always,
            toolway_config::Share::Never => Share::Never,
        },
        protocol: match options.protocol.unwrap_or_default() {
            toolway_config::Protocol::Auto => Protocol::Auto,
            toolway_config::Protocol::Legacy => Protocol::Legacy,
            toolway_config::Protocol::Modern => Protocol::Modern,
        },
        max_response_chars: options.max_response_chars,
        secrets: expanded.secrets,
        roots: expanded.roots,
        filter: filter(options)?,
    })
}

fn timeouts_of(options: &Options, default: Timeouts) -> Timeouts {
    Timeouts {
        startup: options.startup_timeout.unwrap_or(default.startup),
        list: options.list_timeout.unwrap_or(default.list),
        call_idle: options.call_idle_timeout.unwrap_or(default.call_idle),
        call_max: options.call_max.unwrap_or(default.call_max),
    }
}

fn filter(options: Options) -> Result<ToolFilter, ServerState> {
    let globs = |patterns: Vec<String>, field: &str| {
        let parse = |pattern: &String| {
            Glob::new(pattern).map_err(|error| ServerState::Failed {
                stage: Stage::Configure,
                reason: format!("tools.{field}: {pattern:?}: {error}"),
                hint: None,
            })
        };
        patterns.iter().map(parse).collect::<Result<Vec<_>, _>>()
    };
    let tools = options.tools;
    Ok(ToolFilter {
        allow: tools.allow.map(|allow| globs(allow, "allow")).transpose()?,
        deny: globs(tools.deny, "deny")?,
        rename: tools.rename,
        describe: tools.describe,
    })
}

fn child(stdio: ExpandedStdio, machine: &Machine) -> ChildTarget {
    let mut given: Vec<(OsString, OsString)> = Vec::new();
    if let InheritEnv::Names(names) = &stdio.inherit_env {
        let value = |name: &String| Some((name.into(), machine.variable(name)?.to_owned()));
        given.extend(names.iter().filter_map(value));
    }
    given.extend(stdio.env.iter().map(|(name, value)| (name.into(), value.expose().into())));
    let args = stdio.args.iter().map(|arg| arg.expose().into()).collect();
    child_target(stdio.command, args, &given, stdio.inherit_env == InheritEnv::All, Some(stdio.cwd), machine)
}

/// A child process with `given` variables over the safe base set, or over all of ours with `inherit`.
pub fn child_target(
    command: String,
    args: Vec<OsString>,
    given: &[(OsString, OsString)],
    inherit: bool,
    cwd: Option<PathBuf>,
    machine: &Machine,
) -> ChildTarget {
    let own = machine.variables().iter().cloned();
    let mut env = environment(own, given, inherit, Platform::CURRENT).variables;
    let (name, depth) = depth::below(machine);
    env.insert(name, depth);
    let supervise = machine.helper().map(std::path::Path::to_path_buf);
    ChildTarget { command, child: ChildConfig { program: PathBuf::new(), args, env, cwd, supervise } }
}

/// HTTP waits no shorter than a call may take: what is too long is said by who knows the call, not by its transport.
pub fn wait_for_calls(http: &mut HttpConfig, timeouts: &Timeouts) {
    let least = timeouts.call_idle.max(timeouts.startup) + MARGIN;
    http.timeout = http.timeout.max(least);
    http.sse_read_timeout = http.sse_read_timeout.max(least);
}

fn faulty(reason: String) -> ServerState {
    ServerState::Failed { stage: Stage::Configure, reason, hint: None }
}

fn remote(remote: ExpandedRemote) -> Result<RemoteTarget, ServerState> {
    let mut http = HttpConfig::new(remote.url.expose()).map_err(|error| faulty(error.to_string()))?;
    http.headers = remote.headers;
    http.title_case = remote.header_case == HeaderCase::Title;
    if let Some(bundle) = remote.tls.as_ref().and_then(|tls| tls.ca_bundle.as_deref()) {
        let only = remote.tls.as_ref().is_some_and(|tls| tls.strict);
        http.roots =
            Roots::from_pem(bundle, only).map_err(|reason| faulty(format!("tls.caBundle: {reason}")))?;
    }
    let kind = match remote.kind {
        toolway_config::RemoteKind::Auto => RemoteKind::Auto,
        toolway_config::RemoteKind::Http => RemoteKind::StreamableHttp,
        toolway_config::RemoteKind::Sse => RemoteKind::Sse,
    };
    Ok(RemoteTarget { http, kind })
}
