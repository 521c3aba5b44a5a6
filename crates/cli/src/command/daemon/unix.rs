//! The daemon where there are local sockets: its directory, its processes, its status.

use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolway_guard::{Guard, GuardConfig, OutputSchema, UnknownResults};
use toolway_proxy::daemon::{Daemon, DaemonClient, DaemonConfig, DaemonStatus, Launch, VERSION, peer_user};
use toolway_proxy::gateway::{Eras, Face, ServerEntry, Shared};
use toolway_transport::supervisor;
use tracing::level_filters::LevelFilter;

use crate::args::DaemonArgs;
use crate::compose::{Environment, UsageError, cache_dir, log_level, output_dir, runtime_dir};
use crate::exit::Exit;
use crate::{logs, render, units};

/// How long a server stays that nobody uses.
const IDLE: Duration = Duration::from_mins(5);
/// The longest path that a socket may have on any system.
const LONGEST: usize = 100;

pub(super) fn run(args: &DaemonArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    if args.background {
        return background(args);
    }
    let log = own.option(args.log.clone(), "log", None)?;
    let log = log.map_or(Ok(LevelFilter::WARN), |value| log_level(&value))?;
    let idle = own.option(args.idle.clone(), "idle", None)?;
    let idle = idle.map_or(Ok(IDLE), |value| value.parse(units::duration))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let client = client(&own, None)?;
    if args.status || args.stop {
        return runtime.block_on(async {
            if args.stop { stop(&client).await } else { status(&client, args.json).await }
        });
    }
    logs::start(log);
    let config = config(&own, client.socket, idle)?;
    let mut signals = super::super::serve::signals()?;
    let served: io::Result<()> = runtime.block_on(async {
        let daemon = Daemon::bind(config)?;
        let end = CancellationToken::new();
        let mut running = std::pin::pin!(daemon.run(end.clone()));
        tokio::select! {
            () = running.as_mut() => {}
            Some(_) = signals.recv() => {
                end.cancel();
                running.await;
            }
        }
        Ok(())
    });
    logs::finish();
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Err(UsageError::new("daemon", "one runs already").with_hint("toolway daemon --status"))
        }
        Err(error) => Err(system(error)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn system(error: io::Error) -> UsageError {
    UsageError::new("daemon", error.to_string())
}

/// Starts the daemon in a process of its own, which nobody waits for.
fn background(args: &DaemonArgs) -> Result<Exit, UsageError> {
    use std::os::unix::process::CommandExt as _;
    let program = supervisor::own_binary().map_err(system)?;
    let mut command = Command::new(program);
    command.arg("daemon").stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    for (flag, value) in [("--idle", &args.idle), ("--log", &args.log)] {
        if let Some(value) = value {
            command.args([flag, value.as_str()]);
        }
    }
    command.spawn().map_err(system)?;
    Ok(Exit::Done)
}

/// The way to the daemon of this version; `launch`: how it is started.
fn client(own: &Environment, launch: Option<Launch>) -> Result<DaemonClient, UsageError> {
    let directory = directory(own)?;
    let socket = directory.join(format!("daemon-{VERSION}.sock"));
    if socket.as_os_str().len() > LONGEST {
        let text = format!("the path of its socket is too long: {}", socket.display());
        return Err(UsageError::new("daemon", text).with_hint("set XDG_RUNTIME_DIR to a shorter directory"));
    }
    let lock = directory.join(format!("daemon-{VERSION}.lock"));
    Ok(DaemonClient { socket, lock, launch, user: rustix::process::geteuid().as_raw() })
}

/// The directory of our sockets, made where it is missing: ours, and closed to others.
fn directory(own: &Environment) -> Result<PathBuf, UsageError> {
    let directory = runtime_dir(own)
        .ok_or_else(|| UsageError::new("daemon", "there is neither a home nor XDG_RUNTIME_DIR"))?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(&directory).map_err(|error| {
        UsageError::new("daemon", format!("cannot make {}: {error}", directory.display()))
    })?;
    check(&directory).map(|()| directory)
}

fn check(directory: &Path) -> Result<(), UsageError> {
    let metadata = std::fs::symlink_metadata(directory).map_err(system)?;
    let ours = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    let private = metadata.mode().trailing_zeros() >= 6;
    if ours && private {
        return Ok(());
    }
    let text = format!("{} is not a directory that is ours alone", directory.display());
    Err(UsageError::new("daemon", text).with_hint(format!("chmod 700 {}", directory.display())))
}

/// It passes everything: the size policy is for the gateways that use it.
fn config(own: &Environment, socket: PathBuf, idle: Duration) -> Result<DaemonConfig, UsageError> {
    let mut guard = GuardConfig::new(output_dir(own.option(None, "output-dir", Some("OUTPUT_DIR"))?, own)?);
    guard.max_response_chars = u64::MAX;
    guard.output_schema = OutputSchema::Keep;
    guard.unknown_results = UnknownResults::Pass;
    let guard = Arc::new(Guard::new(guard));
    let eras = Eras::new(cache_dir(own).map(|cache| cache.join("eras.jsonl")));
    Ok(DaemonConfig {
        socket,
        idle,
        shared: Shared::new(Arc::clone(&guard), Arc::new(eras), Face::of_gateway()),
        guard,
        supervisor: supervisor::own_binary().ok(),
        user: rustix::process::geteuid().as_raw(),
        peer_user,
    })
}

fn say(text: &str) {
    // Whoever looks may have gone.
    let mut out = render::Output::new();
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

async fn stop(client: &DaemonClient) -> Result<Exit, UsageError> {
    let stopped = client.stop().await.map_err(system)?;
    say(if stopped { "the daemon has ended" } else { "no daemon runs" });
    Ok(Exit::Done)
}

async fn status(client: &DaemonClient, json: bool) -> Result<Exit, UsageError> {
    let found = client.status().await.map_err(system)?;
    if json {
        let text = serde_json::to_string(&found).unwrap_or_default();
        say(&text);
        return Ok(Exit::Done);
    }
    let Some(DaemonStatus { pid, version, servers }) = found else {
        say("no daemon runs: the first `toolway serve --shared` starts it");
        return Ok(Exit::Done);
    };
    say(&format!("toolway {version}, process {pid}, {} servers", servers.len()));
    for copy in servers {
        let used = match copy.clients {
            0 => format!("unused for {} s", copy.idle_s),
            1 => "1 gateway".to_owned(),
            more => format!("{more} gateways"),
        };
        say(&format!("  {}: {}, {used}, {} running", copy.name, copy.state, copy.instances));
    }
    Ok(Exit::Done)
}

pub(super) fn share(entries: Vec<ServerEntry>, own: &Environment) -> Result<Vec<ServerEntry>, UsageError> {
    let program = supervisor::own_binary().map_err(system)?;
    let log = None;
    let args = ["daemon", "--background"].map(str::to_owned).to_vec();
    let client = Arc::new(client(own, Some(Launch { program, args, log }))?);
    let shared = |entry: ServerEntry| {
        let plan = entry.plan.map(|config| client.share(&config).map_or(config, Arc::new));
        ServerEntry { plan, ..entry }
    };
    Ok(entries.into_iter().map(shared).collect())
}
