//! Owns the table of methods: which handler reads which params. What each does is in the other files.

use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::Instant;
use toolway_wire::Id;

use super::PROTOCOL_VERSION;
use super::answers::{Done as Nothing, Initialized, Limits, ProfileNames};
use super::connection::{Connection, MOST_RUNS, MOST_SESSIONS, Reply, Spoken};
use super::fault::{Fault, read};
use super::inbox::DiagnosticTap;
use super::lines::LINE_BYTES;
use super::requests::{Initialize, MAIN, Peer, ProfileName};
use super::session::Session;
use crate::diagnostics::{Diagnostics, DiagnosticsConfig};
use crate::json::RawJson;
use crate::profile::Profile;
use crate::settings::Settings;

type Handled = Result<Reply, Fault>;

impl Connection {
    /// Carries out a request.
    pub(super) fn dispatch(
        &mut self,
        method: &str,
        id: Option<Id>,
        params: Option<&RawJson>,
        now: Instant,
    ) -> Handled {
        if method == "initialize" {
            self.check_version(params)?;
            return self.initialize(&read(params)?);
        }
        self.spoken()?;
        match method {
            "shutdown" => {
                let _: super::requests::Nothing = read(params)?;
                self.shutdown = true;
                self.asked_shutdown = id;
                Ok(Reply::Later)
            }
            "session/open" => with(params, |params| self.open_session(params)),
            "session/close" => with(params, |params| self.close_session(params, id)),
            "tools/declare" => with(params, |params| self.declare_tools(params)),
            "tools/activate" => with(params, |params| self.activate_tools(params)),
            "skills/declare" => with(params, |params| self.declare_skills(params, id)),
            "settings/declare" => with(params, |params| self.declare_settings(params)),
            "settings/read" => with(params, |params| self.read_settings(&params)),
            "settings/write" => with(params, |params| self.write_settings(params, id)),
            "run/open" => with(params, |params| self.open_run(params, id)),
            "run/attach" => with(params, |params| self.attach_run(&params)),
            "run/detach" => with(params, |params| self.detach_run(&params)),
            "run/cancel" => with(params, |params| self.cancel_run(&params)),
            "run/close" => with(params, |params| self.close_run(&params, id)),
            "run/usage" => with(params, |params| self.run_usage(&params)),
            "run/facts" => with(params, |params| self.run_facts(&params)),
            "call/result" => with(params, |params| self.call_result(params)),
            "call/fail" => with(params, |params| self.call_fail(params)),
            "call/progress" => with(params, |params| self.call_progress(params)),
            "call/admit" => with(params, |params| self.call_admit(&params)),
            "manifest/read" => with(params, |params| self.read_manifest(&params)),
            "report/read" => with(params, |params| self.read_report(&params)),
            "selftest/run" => with(params, |params| self.run_self_test(&params, id)),
            _ => self.dispatch_more(method, id, params, now),
        }
    }

    /// The methods of prompts, display and turns.
    fn dispatch_more(
        &mut self,
        method: &str,
        id: Option<Id>,
        params: Option<&RawJson>,
        now: Instant,
    ) -> Handled {
        match method {
            "prompt/next" => with(params, |params| self.next_prompt(params, now)),
            "prompt/sent" => with(params, |params| self.prompt_sent(&params, now)),
            "prompt/reset" => with(params, |params| self.reset_prompts(&params)),
            "prompt/section" => with(params, |params| self.prompt_section(params)),
            "display/begin" => with(params, |params| self.begin_display(params)),
            "display/tool" => with(params, |params| self.display_tool(params, id, now)),
            "display/end" => with(params, |params| self.end_display(&params)),
            "replay/take" => with(params, |params| self.take_replay(&params)),
            "turn/start" => with(params, |params| self.start_turn(params)),
            "turn/abort" => with(params, |params| self.abort_turn(&params)),
            "session/tell" => with(params, |params| self.tell_session(&params, id)),
            "models/list" => with(params, |params| self.list_models(&params, id)),
            "wrappers/sync" => with(params, |params| self.sync_wrappers(params)),
            "skill/activate" => with(params, |params| self.activate_skill(params, id)),
            _ => Err(Fault::method(method)),
        }
    }

    /// The version comes before everything else: a newer one may have members that are not known here.
    fn check_version(&self, params: Option<&RawJson>) -> Result<(), Fault> {
        let refuse = |text: String| Err(Fault::new(Fault::VERSION, text).with(spoken_here()));
        if self.spoken.is_some() {
            return refuse("initialize has come already".to_owned());
        }
        let version = params.map(RawJson::tree).and_then(|params| params.get("protocolVersion").cloned());
        match version.as_ref().and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(PROTOCOL_VERSION) => {
                refuse(format!("protocol version {version} is not spoken here; spoken is {PROTOCOL_VERSION}"))
            }
            _ => Ok(()),
        }
    }

    fn initialize(&mut self, params: &Initialize) -> Handled {
        let asked = params.profile.map(|name| match name {
            ProfileName::Pi => Profile::PI,
            ProfileName::Host => Profile::HOST,
        });
        let profile = match (self.config.profile, asked) {
            (Some(told), Some(asked)) if told != asked => {
                return Err(Fault::field("profile", &format!("{:?}, as the command line says", told.id)));
            }
            (told, asked) => told.or(asked).unwrap_or(Profile::PI),
        };
        let settings_file = self.config.settings.iter().find(|(of, _)| *of == profile);
        let settings_file = settings_file.map(|(_, path)| path.clone());
        let (settings, warnings) = settings_file.as_deref().map_or_else(Default::default, Settings::read);
        let diagnostics = self.diagnostics(&settings, &profile, params.diagnostics);
        tracing::info!(host = params.host.name, version = params.host.version, "a host has connected");
        let shown = settings_file.as_ref().map(|path| path.to_string_lossy().into_owned());
        self.spoken = Some(Spoken { profile, ui: params.ui, diagnostics, settings_file });
        self.sessions.insert(MAIN.to_owned(), Session::default());
        Reply::now(Initialized {
            protocol_version: PROTOCOL_VERSION,
            bridge: Peer { name: "toolway".to_owned(), version: self.config.version.clone() },
            profile: names(&profile),
            limits: Limits { line_bytes: LINE_BYTES, sessions: MOST_SESSIONS, runs: MOST_RUNS },
            turns: self.turns.agents.is_some(),
            settings_file: shown,
            warnings: warnings.iter().map(ToString::to_string).collect(),
        })
    }

    fn diagnostics(&self, settings: &Settings, profile: &Profile, wanted: bool) -> Diagnostics {
        let debug = &settings.tools.bridge.debug;
        if !wanted && !debug.stderr && debug.file.is_none() {
            return Diagnostics::default();
        }
        let mut config = DiagnosticsConfig::default();
        if debug.stderr {
            config.stderr = Some((*profile, Box::new(Forward(self.config.stderr))));
        }
        config.file = debug.file.as_ref().map(Into::into);
        if wanted {
            config.sinks.push(Box::new(DiagnosticTap::new(&self.inbox)));
        }
        Diagnostics::new(config)
    }
}

/// Reads the params and hands them on.
fn with<P: DeserializeOwned>(params: Option<&RawJson>, handle: impl FnOnce(P) -> Handled) -> Handled {
    handle(read(params)?)
}

pub(super) fn done() -> Handled {
    Reply::now(Nothing {})
}

fn spoken_here() -> serde_json::Value {
    json!({ "spoken": [PROTOCOL_VERSION] })
}

fn names(profile: &Profile) -> ProfileNames {
    ProfileNames {
        id: profile.id,
        tool_prefix: profile.prefix,
        server_key: profile.server_key,
        skill_tool: profile.skill_tool,
        display_tool: profile.display_tool,
        replay_prefix: profile.replay_prefix,
        run_prefix: profile.run_prefix,
        debug_command: profile.debug_command,
    }
}

/// Diagnostics on their way to stderr.
struct Forward(fn(&[u8]));

impl std::io::Write for Forward {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.0)(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
