//! Owns what a prompt and an agent are made of: the surface of this moment, the key, the texts. It decides nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::State;
use crate::agent_port::{AgentMode, AgentOptions, AgentPrompt, McpTimeouts, SafetyOption};
use crate::continuity::{Decision, PoolKey, Situation};
use crate::deadline::Deadlines;
use crate::host_port::TurnRequest;
use crate::manifest::{ManifestOptions, manifest};
use crate::profile::Profile;
use crate::prompt::{self, Prompt, PromptInput, SystemOptions};
use crate::settings::{AgentTransport, Settings};
use crate::skills::Catalogue;
use crate::snapshot::Snapshot;

/// What a turn is sent with.
#[derive(Debug)]
pub(super) struct Composed {
    pub(super) snapshot: Arc<Snapshot>,
    key: PoolKey,
    catalogue: Option<Catalogue>,
    system: String,
    manifest: Option<String>,
}

impl State {
    /// Looks at the host's registry as it is now. `None`: the host, or the maker of agents, panicked.
    pub(super) fn compose(&self, request: &TurnRequest) -> Option<Composed> {
        let ask = AssertUnwindSafe(|| (self.making.host.tools(), (self.identity)()));
        let (tools, identity) = catch_unwind(ask).ok()?;
        let (profile, settings) = (&self.making.profile, &self.making.settings);
        let surface = settings.surface(self.making.own_display_tool);
        let snapshot = Arc::new(Snapshot::take(profile, &surface, &tools));
        let setting_sources = sources(request, settings);
        let key = PoolKey {
            session: self.making.scope.to_string(),
            cwd: request.cwd.display().to_string(),
            model: request.model.clone(),
            setting_sources: setting_sources.clone(),
            auto_review: settings.local.auto_review,
            sandbox: settings.local.sandbox,
            transport: if is_http1(settings) { "http1" } else { "default" }.to_owned(),
            api_key: identity,
            surface: snapshot.signature().to_owned(),
        };
        let catalogue = self.catalogue(request, &snapshot);
        let system = request.system.instructions(&SystemOptions {
            profile,
            catalogue: catalogue.as_ref(),
            instruction_files: &request.instruction_files,
            setting_sources: &setting_sources,
            preserve_instructions: settings.local.preserve_pi_agents_context,
        });
        let manifest = settings
            .tools
            .manifest
            .then(|| manifest(profile, &snapshot, &ManifestOptions { in_prompt: true }));
        Some(Composed { snapshot, key, catalogue, system, manifest })
    }
}

impl Composed {
    /// What decides between prompts.
    pub(super) fn situation<'a>(&'a self, request: &'a TurnRequest) -> Situation<'a> {
        Situation {
            system: &request.system,
            catalogue: self.catalogue.as_ref(),
            tools: self.snapshot.tools_json(),
            messages: &request.messages,
            pool: &self.key,
        }
    }

    /// What the agent is sent.
    pub(super) fn prompt(
        &self,
        profile: &Profile,
        request: &TurnRequest,
        decision: &Decision,
    ) -> AgentPrompt {
        let exposed: Vec<&str> = self.snapshot.exposed().iter().map(|tool| tool.mcp_name.as_str()).collect();
        let sent = match decision {
            Decision::Incremental { sent } => *sent,
            Decision::Bootstrap { .. } => 0,
        };
        let input = PromptInput {
            profile,
            exposed: &exposed,
            manifest: self.manifest.as_deref(),
            plan_mode: request.mode == AgentMode::Plan,
            system: &self.system,
            messages: &request.messages,
            sent,
            budget_tokens: request.budget_tokens,
        };
        let Prompt { text, images, omitted } = match decision {
            Decision::Incremental { .. } => prompt::incremental(&input),
            Decision::Bootstrap { cause, .. } => {
                tracing::debug!(%cause, "the agent gets everything anew");
                prompt::bootstrap(&input)
            }
        };
        if omitted > 0 {
            tracing::debug!(omitted, "messages were left out of a prompt");
        }
        AgentPrompt { text, images, mode: request.mode }
    }

    /// What a new agent is made with. Its MCP server is added when there is a run.
    pub(super) fn options(&self, request: &TurnRequest, settings: &Settings) -> AgentOptions {
        let deadlines = deadlines(settings);
        let safety = [
            (settings.local.auto_review, SafetyOption::AutoReview),
            (settings.local.sandbox, SafetyOption::Sandbox),
        ];
        AgentOptions {
            cwd: request.cwd.clone(),
            model: request.model.clone(),
            setting_sources: self.key.setting_sources.clone(),
            mcp_servers: Vec::new(),
            timeouts: McpTimeouts { tool: deadlines.tool, connect: deadlines.connect },
            safety: safety.into_iter().filter_map(|(is_on, option)| is_on.then_some(option)).collect(),
            http1: is_http1(settings),
        }
    }
}

/// The exact times that the settings come to.
pub(in crate::coordinator) fn deadlines(settings: &Settings) -> Deadlines {
    let tools = &settings.tools;
    let (deadlines, warnings) =
        Deadlines::new(tools.mcp.call_timeout_ms, tools.bridge.call_timeout_ms, tools.mcp.connect_timeout_ms);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    deadlines
}

fn sources(request: &TurnRequest, settings: &Settings) -> Vec<String> {
    request.setting_sources.clone().unwrap_or_else(|| settings.local.setting_sources.clone())
}

fn is_http1(settings: &Settings) -> bool {
    settings.local.transport == AgentTransport::Http1
}

impl State {
    /// The catalogue of skills that stands for the host's.
    fn catalogue(&self, request: &TurnRequest, snapshot: &Snapshot) -> Option<Catalogue> {
        let tool = self.making.profile.skill_tool;
        let exposed = snapshot.exposed().iter().find(|exposed| exposed.tool.name == tool);
        let activation = exposed.map(|exposed| exposed.mcp_name.as_str());
        (!request.skills.is_empty()).then(|| Catalogue::new(request.skills.clone(), activation))
    }
}
