//! Owns what a host asks of prompts: the next one, its parts, and what decides between a new agent and going on.

use tokio::time::Instant;

use super::answers::{ImageShown, PromptShown, SectionShown};
use super::connection::{Connection, Reply};
use super::dispatch::done;
use super::fault::Fault;
use super::requests::{AgentKey, NextPrompt, PromptSection, PromptSent, ResetCause, ResetPrompts, Section};
use super::session::Surface;
use super::settings_shown::transport;
use crate::continuity::{Cause, Continuity, Decision, PoolKey, Situation, Step};
use crate::manifest::{ManifestOptions, manifest};
use crate::profile::Profile;
use crate::prompt::{
    Digest, HostSystem, InstructionFile, Message, Prompt, PromptInput, SystemOptions, bootstrap, boundary,
    incremental, tail_guard,
};
use crate::settings::Settings;
use crate::skills::Catalogue;
use crate::snapshot::Snapshot;

/// What a session's agent was sent.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    continuity: Continuity,
    last: u64,
    /// The prompt that was given out last and is not known to be sent.
    open: Option<(u64, Step)>,
}

/// What prompts of a session are made of, besides the conversation.
struct Ground<'a> {
    profile: &'a Profile,
    /// Of the run.
    snapshot: &'a Snapshot,
    /// Of a run that would be opened now: what another agent would get.
    fresh: &'a Snapshot,
    settings: &'a Settings,
    catalogue: Option<Catalogue>,
}

impl Ground<'_> {
    fn system(&self, system: &HostSystem, files: &[InstructionFile]) -> String {
        system.instructions(&SystemOptions {
            profile: self.profile,
            catalogue: self.catalogue.as_ref(),
            instruction_files: files,
            setting_sources: &self.settings.local.setting_sources,
            preserve_instructions: self.settings.local.preserve_pi_agents_context,
        })
    }

    fn manifest(&self) -> Option<String> {
        let options = ManifestOptions { in_prompt: true };
        self.settings.tools.manifest.then(|| manifest(self.profile, self.snapshot, &options))
    }

    fn names(&self) -> Vec<&str> {
        self.snapshot.exposed().iter().map(|tool| tool.mcp_name.as_str()).collect()
    }
}

impl Connection {
    /// Calls with what the prompts of a session are made of: of the run, or of one that would be opened now.
    fn on_ground<T>(
        &self,
        session: &str,
        run: Option<&str>,
        work: impl FnOnce(&Ground<'_>) -> T,
    ) -> Result<T, Fault> {
        let spoken = self.spoken()?;
        let owner = self.session(session)?;
        let Surface { settings, snapshot: fresh, .. } = owner.surface(spoken);
        let held = run.map(|run| self.run_of(session, run)).transpose()?;
        let snapshot = held.map_or(&fresh, |live| live.run.snapshot());
        let tool = spoken.profile.skill_tool;
        let exposed = snapshot.exposed().iter().find(|exposed| exposed.tool.name == tool);
        let activation = exposed.filter(|_| owner.activates(tool, spoken)).map(|tool| tool.mcp_name.as_str());
        let catalogue = owner.skills().catalogue(activation);
        Ok(work(&Ground {
            profile: &spoken.profile,
            snapshot,
            fresh: &fresh,
            settings: &settings,
            catalogue,
        }))
    }

    pub(super) fn next_prompt(&mut self, params: NextPrompt, now: Instant) -> Result<Reply, Fault> {
        let NextPrompt { session, run, system, instruction_files, messages, agent, plan_mode, budget_tokens } =
            params;
        let prompts = &self.session(&session)?.prompts;
        let (step, prompt) = self.on_ground(&session, run.as_deref(), |ground| {
            let pool = pool_key(&session, agent, ground);
            let situation = Situation {
                system: &system,
                tools: ground.fresh.tools_json(),
                catalogue: ground.catalogue.as_ref(),
                messages: &messages,
                pool: &pool,
            };
            let step = prompts.continuity.decide(&situation, now);
            let sent = match &step.decision {
                Decision::Bootstrap { .. } => 0,
                Decision::Incremental { sent } => *sent,
            };
            let (names, manifest) = (ground.names(), ground.manifest());
            let system = ground.system(&system, &instruction_files);
            let input = PromptInput {
                profile: ground.profile,
                exposed: &names,
                manifest: manifest.as_deref(),
                plan_mode,
                system: &system,
                messages: &messages,
                sent,
                budget_tokens,
            };
            let prompt = match &step.decision {
                Decision::Bootstrap { .. } => bootstrap(&input),
                Decision::Incremental { .. } => incremental(&input),
            };
            (step, prompt)
        })?;
        let prompts = &mut self.session_mut(&session)?.prompts;
        prompts.last += 1;
        let shown = shown(&step.decision, prompt, prompts.last);
        prompts.open = Some((prompts.last, step));
        Reply::now(shown)
    }

    pub(super) fn prompt_sent(&mut self, params: &PromptSent, now: Instant) -> Result<Reply, Fault> {
        let prompts = &mut self.session_mut(&params.session)?.prompts;
        match prompts.open.take() {
            Some((ticket, step)) if ticket == params.ticket => prompts.continuity.commit(step, now),
            other => {
                prompts.open = other;
                return Err(Fault::unknown("ticket", &params.ticket.to_string()));
            }
        }
        done()
    }

    pub(super) fn reset_prompts(&mut self, params: &ResetPrompts) -> Result<Reply, Fault> {
        let prompts = &mut self.session_mut(&params.session)?.prompts;
        prompts.open = None;
        prompts.continuity.broken(match params.cause {
            ResetCause::SendError => Cause::SendError,
            ResetCause::Compaction => Cause::Compaction,
            ResetCause::TreeNavigation => Cause::TreeNavigation,
            ResetCause::DeadTransport => Cause::DeadTransport,
        });
        done()
    }

    pub(super) fn prompt_section(&mut self, params: PromptSection) -> Result<Reply, Fault> {
        let PromptSection { session, run, section, system, instruction_files, plan_mode } = params;
        let empty: [Message; 0] = [];
        let text = self.on_ground(&session, run.as_deref(), |ground| {
            let (names, manifest) = (ground.names(), ground.manifest());
            let input = PromptInput {
                profile: ground.profile,
                exposed: &names,
                manifest: manifest.as_deref(),
                plan_mode,
                system: "",
                messages: &empty,
                sent: 0,
                budget_tokens: None,
            };
            match section {
                Section::Boundary => boundary(&input),
                Section::Manifest => manifest.clone().unwrap_or_default(),
                Section::TailGuard => tail_guard(&input, false),
                Section::IncrementalTailGuard => tail_guard(&input, true),
                Section::Skills => ground.catalogue.as_ref().map(Catalogue::text).unwrap_or_default(),
                Section::System => system
                    .as_ref()
                    .map(|system| ground.system(system, &instruction_files))
                    .unwrap_or_default(),
            }
        })?;
        Reply::now(SectionShown { text })
    }
}

fn pool_key(session: &str, agent: AgentKey, ground: &Ground<'_>) -> PoolKey {
    let AgentKey { cwd, model, identity } = agent;
    let local = &ground.settings.local;
    PoolKey {
        session: session.to_owned(),
        cwd,
        model,
        setting_sources: local.setting_sources.clone(),
        auto_review: local.auto_review,
        sandbox: local.sandbox,
        transport: transport(local.transport).to_owned(),
        api_key: (!identity.is_empty()).then(|| Digest::of(identity.as_bytes())),
        surface: ground.fresh.signature().to_owned(),
    }
}

fn shown(decision: &Decision, prompt: Prompt, ticket: u64) -> PromptShown {
    let (kind, new_agent, reason) = match decision {
        Decision::Bootstrap { cause, new_agent } => ("bootstrap", *new_agent, Some(cause.to_string())),
        Decision::Incremental { .. } => ("incremental", false, None),
    };
    let images = prompt.images.into_iter();
    PromptShown {
        kind,
        new_agent,
        reason,
        text: prompt.text,
        images: images.map(|image| ImageShown { data: image.data, mime_type: image.mime_type }).collect(),
        omitted_messages: prompt.omitted,
        ticket,
    }
}
