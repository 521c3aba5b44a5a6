//! Owns the frame of a command that works with servers: what was typed, the runtime, signals, and the connection to one
//! server. Knows no command.

use std::future::Future;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolway_guard::{Guard, GuardConfig};
use toolway_proxy::gateway::{Client, ClientError, Eras, Face, RawLists, ServerConfig, Shared};
use toolway_transport::{Payload, supervisor};
use tracing::level_filters::LevelFilter;

use super::companion::Voice;
use super::interrupts::Interrupts;
use super::near::near;
use super::refusal::Refusal;
use crate::args::{AdHocArgs, SourceArgs, TalkArgs};
use crate::border;
use crate::compose::servers::{Servers, ad_hoc, with_timeout};
use crate::compose::{Environment, cache_dir};
use crate::exit::Exit;
use crate::render::quoted;
use crate::show::{Shelf, Terminal, json, safe};
use crate::{logs, units};

/// A server, and how the command line named it.
#[derive(Debug)]
pub(crate) struct Choice<'w> {
    /// Its settings.
    pub(crate) config: Arc<ServerConfig>,
    /// The words after it.
    pub(crate) words: &'w [String],
    /// How it is named in a command.
    pub(crate) spelled: String,
}

/// A command that works with servers.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) own: Environment,
    pub(crate) terminal: Terminal,
    /// Print JSON.
    pub(crate) json: bool,
    /// Show what servers log.
    verbose: bool,
    timeout: Option<Duration>,
    interrupts: Interrupts,
    shared: Shared,
}

impl Shell {
    /// Reads the environment, starts logging and watching for signals.
    pub(crate) fn new(talk: &TalkArgs) -> Result<Self, Refusal> {
        let own = Environment::read();
        let terminal = Terminal::now(|name| Some(own.get(name)?.to_str()?.to_owned()));
        let timeout = own.option(talk.timeout.clone(), "timeout", None)?;
        let timeout = timeout.map(|value| value.parse(units::duration)).transpose()?;
        logs::start(match talk.verbose {
            0 | 1 => LevelFilter::WARN,
            2 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        });
        if let Err(error) = supervisor::adopt_orphans() {
            tracing::debug!(%error, "descendants cannot be adopted");
        }
        let cache = cache_dir(&own);
        let spool = cache.clone().unwrap_or_else(std::env::temp_dir).join("spool");
        let guard = Arc::new(Guard::new(GuardConfig::new(spool)));
        let eras = Arc::new(Eras::new(cache.map(|cache| cache.join("eras.json"))));
        let face = Face { capabilities: Voice::capabilities(terminal.asks, false), ..Face::default() };
        Ok(Self {
            terminal,
            json: talk.json,
            verbose: talk.verbose > 0,
            timeout,
            interrupts: Interrupts::watch()?,
            shared: Shared::new(guard, eras, face),
            own,
        })
    }

    /// Everything that is configured.
    pub(crate) fn servers(&self, sources: &SourceArgs) -> Result<Servers, Refusal> {
        Ok(Servers::load(sources, &self.own)?)
    }

    /// The server that the arguments mean, and the words that are left.
    pub(crate) fn choose<'w>(
        &self,
        ad_hoc_args: &AdHocArgs,
        sources: &SourceArgs,
        words: &'w [String],
    ) -> Result<Choice<'w>, Refusal> {
        if let Some(config) = ad_hoc(ad_hoc_args, &self.own)? {
            // What the person typed is not repeated: it may hold a secret.
            let spelled = if ad_hoc_args.url.is_some() { "--url ..." } else { "--command ..." };
            return Ok(Choice { config: self.timed(&config), words, spelled: spelled.to_owned() });
        }
        let servers = self.servers(sources)?;
        let Some((name, words)) = words.split_first() else {
            return Err(Refusal::usage("SERVER is missing").with_hint(known(&servers)));
        };
        let config = self.timed(&chosen(&servers, name)?);
        Ok(Choice { config, words, spelled: quoted(name, cfg!(windows)) })
    }

    /// With the time that the person gives.
    pub(crate) fn timed(&self, config: &Arc<ServerConfig>) -> Arc<ServerConfig> {
        with_timeout(config, self.timeout)
    }

    /// Where pictures and other bytes go.
    pub(crate) fn shelf(&self, given: Option<&std::path::Path>, parts: &[&str]) -> Shelf {
        let directory = match given {
            Some(given) => given.to_owned(),
            None => cache_dir(&self.own).unwrap_or_else(std::env::temp_dir).join("media"),
        };
        Shelf::new(directory, parts)
    }

    /// Runs the work on a runtime; a signal ends it.
    pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Refusal::usage(format!("no runtime: {error}")))?;
        let done = runtime.block_on(async {
            let done = work.await;
            toolway_auth::settle().await;
            done
        });
        logs::finish();
        // A thread may still wait for a line of the person: it ends with the process.
        runtime.shutdown_background();
        done
    }

    /// Prints JSON to stdout.
    pub(crate) fn print_json(&self, value: &Value) -> Result<(), Refusal> {
        Ok(std::io::stdout().lock().write_all(json(value, self.terminal.out).as_bytes())?)
    }

    /// Prints a report of ours as JSON.
    pub(crate) fn report_json(&self, value: &Value) -> Result<(), Refusal> {
        let report = json(value, self.terminal.out);
        Ok(std::io::stdout().lock().write_all(border::json(&report).as_bytes())?)
    }

    /// Prints a report of ours.
    pub(crate) fn report(&self, page: &str) -> Result<(), Refusal> {
        self.print(&border::page(page))
    }

    /// Prints a page to stdout, whatever texts of servers are in it.
    pub(crate) fn print(&self, page: &str) -> Result<(), Refusal> {
        let page = if self.terminal.out { safe(page) } else { page.into() };
        Ok(std::io::stdout().lock().write_all(page.as_bytes())?)
    }

    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Connects to the server.
    pub(crate) async fn open(&self, config: &Arc<ServerConfig>) -> Result<Session, Refusal> {
        let shared = match &config.roots {
            None => self.shared.clone(),
            Some(_) => self.shared.with_face(Face {
                capabilities: Voice::capabilities(self.terminal.asks, true),
                ..Face::default()
            }),
        };
        let opened = tokio::select! {
            biased;
            signal = self.interrupts.next() => return Err(Refusal::signal(signal)),
            opened = Client::open(config, &shared) => opened,
        };
        let client = opened.map_err(|error| Refusal::open(&config.name, &error))?;
        Ok(Session {
            client,
            config: Arc::clone(config),
            terminal: self.terminal,
            verbose: self.verbose,
            interrupts: self.interrupts.clone(),
        })
    }
}

/// The server of this name, if it may be started.
pub(crate) fn chosen(servers: &Servers, name: &str) -> Result<Arc<ServerConfig>, Refusal> {
    if let Some(entry) = servers.find(name) {
        let config = entry.plan.clone().map_err(|state| {
            let refusal = Refusal::state(name, &state);
            match servers.distrust(name) {
                Some(reason) => Refusal { reason: format!("{}: {reason}", refusal.reason), ..refusal },
                None => refusal,
            }
        })?;
        for warning in servers.warnings(name) {
            border::say(format_args!("warning: {}", safe(&warning.to_string())));
        }
        return Ok(config);
    }
    for problem in servers.failed_files() {
        border::say(format_args!("error: {}", safe(&problem.to_string())));
    }
    let nearest = near(name, servers.names());
    let hint = match nearest.as_slice() {
        [] => known(servers),
        nearest => format!("did you mean {}?", nearest.join(" or ")),
    };
    Err(Refusal::usage(format!("no server is called {name:?}")).with_hint(hint))
}

fn known(servers: &Servers) -> String {
    let names = servers.names();
    if names.is_empty() {
        return "no server is configured: toolway list shows which files were read; --command and --url need none"
            .to_owned();
    }
    format!("configured are {}", names.join(", "))
}

/// A connection to one server.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) config: Arc<ServerConfig>,
    terminal: Terminal,
    verbose: bool,
    interrupts: Interrupts,
}

impl Session {
    /// The server's name.
    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    /// A voice for one request.
    pub(crate) fn voice(&self, what: &str) -> Voice {
        let (terminal, roots) = (self.terminal, self.config.roots.clone());
        Voice::new(self.name(), what, terminal, self.verbose, roots, self.interrupts.clone())
    }

    /// Everything that the server offers.
    pub(crate) async fn lists(&mut self) -> Result<RawLists, Refusal> {
        let interrupts = self.interrupts.clone();
        tokio::select! {
            biased;
            signal = interrupts.next() => Err(Refusal::signal(signal)),
            lists = self.client.lists() => lists.map_err(|error| Refusal::client(&self.config.name, &error)),
        }
    }

    /// `tools/call`. A signal cancels it.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: &str,
        voice: &mut Voice,
    ) -> Result<Value, Refusal> {
        let interrupts = self.interrupts.clone();
        let answer = tokio::select! {
            biased;
            signal = interrupts.next() => Err(signal),
            answer = self.client.call(tool, arguments, voice) => Ok(answer),
        };
        self.settled(answer)
    }

    /// `resources/read`. A signal cancels it.
    pub(crate) async fn read(&mut self, uri: &str, voice: &mut Voice) -> Result<Value, Refusal> {
        let interrupts = self.interrupts.clone();
        let answer = tokio::select! {
            biased;
            signal = interrupts.next() => Err(signal),
            answer = self.client.read(uri, voice) => Ok(answer),
        };
        self.settled(answer)
    }

    /// `prompts/get`. A signal cancels it.
    pub(crate) async fn prompt(
        &mut self,
        name: &str,
        arguments: &str,
        voice: &mut Voice,
    ) -> Result<Value, Refusal> {
        let interrupts = self.interrupts.clone();
        let answer = tokio::select! {
            biased;
            signal = interrupts.next() => Err(signal),
            answer = self.client.prompt(name, arguments, voice) => Ok(answer),
        };
        self.settled(answer)
    }

    /// The result; after a signal the server is told that nobody waits any more.
    fn settled(&mut self, answer: Result<Result<Payload, ClientError>, i32>) -> Result<Value, Refusal> {
        let payload = answer.map_err(|signal| {
            self.client.give_up();
            Refusal::signal(signal)
        })?;
        let payload = payload.map_err(|error| Refusal::client(&self.config.name, &error))?;
        parsed(payload).map_err(|reason| Refusal {
            reason: format!("server {:?} answered what cannot be read: {reason}", self.config.name),
            hint: None,
            exit: Exit::Ended,
        })
    }

    /// Ends the connection in good order, and shows what the server wrote to stderr when that is asked for.
    pub(crate) async fn close(self) {
        let stderr = self.client.stderr().filter(|_| self.verbose);
        for line in stderr.iter().flat_map(|text| text.lines()) {
            border::say(format_args!("{} | {}", self.config.name, safe(line)));
        }
        self.client.close().await;
    }
}

fn parsed(payload: Payload) -> Result<Value, String> {
    match payload {
        Payload::Bytes(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        Payload::File { mut file, len } => {
            use std::io::{Read as _, Seek as _};
            file.rewind().map_err(|error| error.to_string())?;
            let reader = std::io::BufReader::with_capacity(1 << 16, file.take(len));
            serde_json::from_reader(reader).map_err(|error| error.to_string())
        }
    }
}

/// The exit of a command, its refusal told.
pub(crate) fn told(result: Result<Exit, Refusal>) -> Exit {
    result.unwrap_or_else(|refusal| refusal.tell())
}
