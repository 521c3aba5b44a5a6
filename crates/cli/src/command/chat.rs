//! `toolway chat`: a host in a terminal. It drives an agent through the bridge, and offers it tools of its own.

mod calls;
mod card;
mod config;
mod host;
mod input;
mod log;
mod markdown;
mod opening;
mod process;
mod screen;
mod slash;
mod tools;
mod turn;
mod working;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use toolway_agent::{AgentOptions, ContextSources, EngineChoice, LocalPort, Place, Run, SkillsBy, Sources};
use toolway_bridge::{
    AgentMode, AgentPort as _, Coordinator, HostTools, Message, NoticeLevel, Profile, Session, Settings,
    SkillList, ToolConditions, Warning, is_tool_active, settings_path, skill_tool,
};
use toolway_config::SettingSource;
use toolway_guard::{Guard, ReadBack};

use self::config::ChatConfig;
use self::host::Host;
use self::log::Log;
use self::opening::Opening;
use self::screen::Screen;
use self::slash::Slash;
use self::tools::Tools;
use self::turn::{Outcome, signalled};
use self::working::Working;
use super::agent::{not_there, runtime};
use super::person::{Asker, Console};
use super::serve::signals;
use crate::args::{ChatArgs, CommonArgs, OfferArgs};
use crate::compose::agent::{agent_log, agent_options};
use crate::compose::servers::machine;
use crate::compose::{Environment, UsageError, common, state_dir};
use crate::exit::Exit;
use crate::logs;
use crate::show::Terminal;

/// The names that are used here.
const PROFILE: Profile = Profile::HOST;

/// A chat.
struct Chat {
    console: Console,
    /// A person sits at a terminal.
    asks: bool,
    signals: mpsc::Receiver<i32>,
    screen: Screen,
    tools: Arc<Tools>,
    /// Whether one of the chat's own tools may be called.
    choice: Choice,
    host: Arc<Host>,
    opening: Opening,
    session: Session,
    settings: Arc<Settings>,
    warnings: Vec<Warning>,
    skills: SkillList,
    messages: Vec<Message>,
    log: Log,
    model: String,
    mode: AgentMode,
    /// Whose files the agent reads.
    sources: Vec<String>,
    files: Files,
    last_run: Arc<Mutex<Option<Run>>>,
    working: Working,
    told: Told,
}

/// What was said of servers and files.
#[derive(Debug, Default)]
struct Told {
    /// The run that it was said of.
    run: String,
    /// Each once.
    lines: BTreeSet<String>,
}

/// Which of the chat's own tools are active.
#[derive(Debug)]
struct Choice {
    only: Option<Vec<String>>,
    without: Vec<String>,
    none: bool,
}

/// What is read again by `/reload`.
struct Files {
    config: PathBuf,
    is_named: bool,
    sources: Sources,
}

/// Talks until the user ends it.
pub(super) fn run(args: ChatArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    logs::start(agent_log(args.runtime.log.clone(), &own)?);
    let terminal = Terminal::now(|name| Some(own.get(name)?.to_str()?.to_owned()));
    let runtime = runtime()?;
    let exit = runtime.block_on(talk(args, &own, terminal));
    runtime.block_on(toolway_auth::settle());
    // A thread may still wait for input: it ends with the process.
    runtime.shutdown_background();
    logs::finish();
    exit
}

async fn talk(args: ChatArgs, own: &Environment, terminal: Terminal) -> Result<Exit, UsageError> {
    let console = Console::new(terminal.asks);
    let asker = Asker::new(console.clone(), terminal.asks, args.runtime.yes);
    let ChatArgs { tools, exclude_tools, no_tools, resume, plan, chat_config, settings, mut runtime } = args;
    // The chat itself keeps what was said.
    runtime.store.get_or_insert_with(|| "memory".to_owned());
    let options = agent_options(runtime, OfferArgs::default(), asker.person(), own)?;
    let (cwd, sources) = place(&options)?;
    let machine = machine(own)?;
    let (config_path, is_named) = match chat_config {
        Some(path) => (path, true),
        None => (machine.config_dir.join("chat.json"), false),
    };
    let config = ChatConfig::read(&config_path, is_named)?;
    let own_tools = Tools::new(config, asker, own.clone(), cwd.clone(), terminal.asks);
    let choice = Choice { only: tools.as_deref().map(words), without: words(&exclude_tools), none: no_tools };
    choice.check(&own_tools.names())?;
    let settings_file = settings.or_else(|| {
        let home = (!machine.home.as_os_str().is_empty()).then_some(machine.home.as_path());
        settings_path(&PROFILE, home, machine.config_dir.parent(), None)
    });
    let chosen = options.local_options().map(|local| local.setting_sources.clone()).unwrap_or_default();
    let files = Files { config: config_path, is_named, sources: Sources::new(machine, cwd.clone(), chosen) };
    let model = options.model.as_ref().map(|model| model.id.clone()).unwrap_or_default();
    let last_run = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&last_run);
    let working = Working::default();
    let told = working.clone();
    let port = LocalPort::new(with_own_skills(options))
        .with_observer(move |run| {
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone());
        })
        .with_watcher(move |delta| told.delta(delta));
    let log = Log::new(state_dir(own).map(|dir| dir.join("chats")), &cwd, &port.secrets());
    let host = Arc::new(Host::default());
    let mut common = common(CommonArgs::default(), own)?;
    common.guard.read_back = ReadBack::Off;
    let opening = Opening {
        coordinator: Coordinator::new(port),
        host: Arc::clone(&host),
        file: settings_file,
        is_terminal: terminal.out,
        guard: Arc::new(Guard::new(common.guard)),
    };
    let (settings, warnings) = opening.settings();
    let session = opening.open(&settings)?;
    let variable = |name: &str| Some(own.get(name)?.to_str()?.to_owned());
    let mut chat = Chat {
        screen: Screen::new(console.clone(), terminal, variable),
        console,
        asks: terminal.asks,
        signals: signals()?,
        tools: Arc::new(own_tools),
        choice,
        host,
        opening,
        session,
        settings,
        warnings,
        skills: SkillList::default(),
        messages: Vec::new(),
        log,
        model,
        mode: if plan { AgentMode::Plan } else { AgentMode::Agent },
        sources,
        files,
        last_run,
        working,
        told: Told::default(),
    };
    chat.read_again().await?;
    chat.tell_warnings();
    if let Some(which) = resume
        && chat.resume(&which) == Slash::Failed
    {
        return Ok(Exit::Ended);
    }
    let exit = chat.talk().await;
    chat.opening.coordinator.shutdown("the chat ended").await;
    Ok(exit)
}

/// The chat tells of skills with its prompts: an agent that read them itself would have each of them twice.
fn with_own_skills(mut options: AgentOptions) -> AgentOptions {
    if let Place::Local(local) = &mut options.place {
        local.skills = SkillsBy::Host;
    }
    options
}

/// The folder, and whose files are read.
fn place(options: &AgentOptions) -> Result<(PathBuf, Vec<String>), UsageError> {
    let local = options.local_options();
    if options.model.is_none() && local.is_some_and(|local| matches!(local.engine, EngineChoice::Native)) {
        return Err(UsageError::new("--model", "is missing").with_hint(
            "name a model: --model ID, or TOOLWAY_MODEL; or an agent of the protocol: --acp PRESET",
        ));
    }
    let sources = local.map(|local| local.setting_sources.as_slice()).unwrap_or_default();
    let sources = sources.iter().map(|source: &SettingSource| source.name().to_owned()).collect();
    Ok((options.work_machine().cwd().to_owned(), sources))
}

impl Choice {
    /// What is named must be there.
    fn check(&self, names: &[String]) -> Result<(), UsageError> {
        let lists =
            [("--tools", self.only.as_deref().unwrap_or_default()), ("--exclude-tools", &self.without)];
        for (flag, list) in lists {
            if let Some(unknown) = list.iter().find(|name| !names.contains(name)) {
                return Err(UsageError::new(flag, format!("this chat has no tool {unknown:?}")).with_hint(
                    format!("it has {}; the agent's own tools are not touched here", names.join(", ")),
                ));
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        let is = |list: &[String]| list.iter().any(|one| one == name);
        !self.none && !is(&self.without) && self.only.as_deref().is_none_or(is)
    }
}

impl Chat {
    async fn talk(&mut self) -> Exit {
        if self.asks {
            self.screen.page("/help shows the commands, /quit ends.\n");
        }
        let mut last = Outcome::Answered;
        loop {
            if self.screen.gone {
                return Exit::Ended;
            }
            let line = match self.next_line().await {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(exit) => return exit,
            };
            if line.trim().is_empty() {
                continue;
            }
            match self.slash(&line).await {
                Slash::Prompt => last = self.prompt(&line).await,
                Slash::Quit => return Exit::Done,
                // What came of the last prompt stays.
                Slash::Done => {}
                Slash::Failed => last = Outcome::Failed,
            }
            if let Outcome::End(exit) = last {
                return exit;
            }
        }
        if !self.asks && last != Outcome::Answered { Exit::Ended } else { Exit::Done }
    }

    /// What the user says next; `None`: nothing more. Two signals in a row end the chat.
    async fn next_line(&mut self) -> Result<Option<String>, Exit> {
        let mut warned = false;
        loop {
            if self.asks {
                self.screen.prompt("\n> ");
            }
            let (asks, screen) = (self.asks, &mut self.screen);
            let more = || {
                if asks {
                    screen.prompt("… ");
                }
            };
            tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => {
                    if signal != 2 || warned || !self.asks {
                        return Err(signalled(signal));
                    }
                    warned = true;
                    self.screen.notice(NoticeLevel::Info, "Ctrl-C once more, or /quit, ends the chat");
                }
                line = input::read(&self.console, more) => return Ok(line),
            }
        }
    }

    /// The names of tools that the agent may call now.
    fn active(&self) -> Vec<String> {
        let mut active: Vec<String> =
            self.tools.names().into_iter().filter(|name| self.choice.has(name)).collect();
        let skills = ToolConditions {
            host_has_active_tools: !active.is_empty(),
            is_agent_model: true,
            bridge_enabled: self.settings.tools.bridge.enabled,
            has_visible_skill: !self.skills.is_empty(),
        };
        if is_tool_active(skills) {
            active.push(PROFILE.skill_tool.to_owned());
        }
        active
    }

    /// Reads commands and skills, and registers what there is.
    async fn read_again(&mut self) -> Result<(), UsageError> {
        let sources = self.files.sources.clone();
        let loaded =
            tokio::task::spawn_blocking(move || ContextSources::load(&sources)).await.unwrap_or_default();
        self.skills = SkillList::load(loaded.skills).await;
        let config = ChatConfig::read(&self.files.config, self.files.is_named);
        let read = config.map(|config| {
            if let Some(tools) = Arc::get_mut(&mut self.tools) {
                tools.config = config;
            }
        });
        let mut all = self.tools.definitions();
        all.push(skill_tool(&PROFILE));
        self.host.register(HostTools { all, active: self.active() });
        read
    }

    /// Reads the settings of the bridge. Where they are others, the conversation goes on in another session: whether it
    /// does.
    async fn settings_again(&mut self) -> Result<bool, UsageError> {
        let (settings, warnings) = self.opening.settings();
        self.warnings = warnings;
        if settings == self.settings {
            return Ok(false);
        }
        self.session.shutdown("the settings changed").await;
        self.session = self.opening.open(&settings)?;
        self.settings = settings;
        Ok(true)
    }

    /// Says what is wrong with the settings of the bridge.
    fn tell_warnings(&mut self) {
        let file = self.opening.file.as_ref().and_then(|file| file.file_name());
        let name = file.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for warning in &self.warnings {
            self.screen.notice(NoticeLevel::Warning, &format!("{name}: {warning}"));
        }
    }

    /// Says, once each, which servers the agent does not have, and what is wrong with its files.
    async fn tell_servers(&mut self) {
        let run = self.last_run.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(run) = run.filter(|run| run.id().to_string() != self.told.run) else { return };
        self.told.run = run.id().to_string();
        let Some(init) = self.init().await else { return };
        let servers = init.mcp_servers.iter().filter_map(not_there);
        for line in init.diagnostics.iter().cloned().chain(servers) {
            if self.told.lines.insert(line.clone()) {
                self.screen.notice(NoticeLevel::Warning, &line);
            }
        }
    }

    /// Keeps a message of the conversation.
    fn remember(&mut self, message: Message) {
        if let Err(error) = self.log.message(&message) {
            tracing::warn!(%error, "the chat is not kept");
        }
        self.messages.push(message);
    }

    /// Says and keeps what the bridge has for the user and the log.
    fn tell_notices(&mut self) {
        for (level, text) in self.host.notices() {
            self.screen.notice(level, &text);
        }
        for (kind, data) in self.host.entries() {
            if let Err(error) = self.log.entry(&kind, &data) {
                tracing::debug!(%error, "an entry is not kept");
            }
        }
    }
}

/// Names without what stands around them.
fn words(list: &[String]) -> Vec<String> {
    list.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}
