//! Owns a session of the host: its tools, skills and settings, and what follows from them. It knows no run's calls.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;
use toolway_wire::Id;

use super::answers::{DeadlinesShown, SettingsShown, SkillsDeclared, ToolsDeclared};
use super::connection::{Answer, Connection, Done, MOST_SESSIONS, Outcome, Reply, Spoken};
use super::dispatch::done;
use super::fault::Fault;
use super::prompts::Prompts;
use super::requests::{
    ActivateTools, CloseSession, DeclareSettings, DeclareSkills, DeclareTools, OfSession, OpenSession,
    WriteSettings,
};
use super::settings_shown::shown;
use crate::deadline::Deadlines;
use crate::json::RawJson;
use crate::registry::Bridge;
use crate::replay::Wrappers;
use crate::settings::{SettingChange, Settings};
use crate::skills::{Skill, SkillList, Skills, skill_tool};
use crate::snapshot::{Snapshot, SurfaceOptions};
use crate::tool::{HostTool, HostTools};

/// The longest name of a session, in bytes.
const LONGEST_NAME: usize = 128;

/// How long the disk may take to say where the folders of skills are.
const DISK: Duration = Duration::from_secs(2);

/// A session of the host.
#[derive(Debug, Default)]
pub(super) struct Session {
    tools: HostTools,
    own_display_tool: bool,
    /// The host has a tool that asks `skill/activate`.
    own_skill_tool: bool,
    skills: Skills,
    /// What the host says above the user's file.
    above: Option<RawJson>,
    /// One for each set of deadlines that runs were opened with.
    pub(super) bridges: Vec<Bridge>,
    pub(super) prompts: Prompts,
    /// Made at the first question about them.
    pub(super) wrappers: Option<Wrappers>,
}

/// Declared skills, with what the disk says of them: nothing, if it took too long.
#[derive(Debug)]
pub(super) struct LoadedSkills {
    session: String,
    list: Option<SkillList>,
    agent_model: bool,
    warnings: Vec<String>,
}

/// What a run of a session would have that is opened now.
#[derive(Debug)]
pub(super) struct Surface {
    pub(super) settings: Settings,
    pub(super) warnings: Vec<String>,
    /// The warnings of settings and deadlines alone, with their keys.
    pub(super) raw_warnings: Vec<crate::settings::Warning>,
    pub(super) deadlines: Deadlines,
    pub(super) options: SurfaceOptions,
    /// The host's tools, with the one that activates a skill.
    pub(super) tools: HostTools,
    pub(super) snapshot: Snapshot,
}

impl Session {
    /// The settings that hold, and what is wrong with them. Reads the user's file.
    pub(super) fn settings(&self, file: Option<&Path>) -> (Settings, Vec<crate::settings::Warning>) {
        let (mut settings, mut warnings) = file.map_or_else(Default::default, Settings::read);
        if let Some(above) = &self.above {
            warnings.extend(settings.lay_over(above));
        }
        (settings, warnings)
    }

    /// What a run would have.
    pub(super) fn surface(&self, spoken: &Spoken) -> Surface {
        let (settings, mut raw_warnings) = self.settings(spoken.settings_file.as_deref());
        let (deadlines, odd) = settings.deadlines();
        raw_warnings.extend(odd);
        let (tools, conflict) = self.tools_with_skills(&settings, spoken);
        let mut warnings: Vec<String> = raw_warnings.iter().map(ToString::to_string).collect();
        warnings.extend(conflict);
        let options = settings.surface(self.own_display_tool);
        let snapshot = Snapshot::take(&spoken.profile, &options, &tools);
        Surface { settings, warnings, raw_warnings, deadlines, options, tools, snapshot }
    }

    /// The host's tools, and the one that activates a skill where that counts.
    fn tools_with_skills(&self, settings: &Settings, spoken: &Spoken) -> (HostTools, Option<String>) {
        let mut tools = self.tools.clone();
        let own = self.own_skill_tool && self.has_tool(spoken.profile.skill_tool);
        if !self.skill_tool_active(settings) {
            if own {
                // Nothing could be activated.
                tools.active.retain(|name| name != spoken.profile.skill_tool);
            }
            return (tools, None);
        }
        if own {
            return (tools, None);
        }
        let tool = skill_tool(&spoken.profile);
        if self.has_tool(&tool.name) {
            let text = format!("the host has a tool {:?} of its own: skills cannot be activated", tool.name);
            return (tools, Some(text));
        }
        tools.active.push(tool.name.clone());
        tools.all.push(tool);
        (tools, None)
    }

    fn skill_tool_active(&self, settings: &Settings) -> bool {
        self.skills.is_tool_active(settings.tools.bridge.enabled, !self.tools.active.is_empty())
    }

    /// The skills that the agent's model may have; none with another model.
    pub(super) fn skills_of_agent(&self) -> SkillList {
        let agent = self.skills.catalogue(None).is_some();
        if agent { self.skills.list().clone() } else { SkillList::default() }
    }

    pub(super) fn has_own_display_tool(&self) -> bool {
        self.own_display_tool
    }

    /// The calls of this tool are answered here: the host has none of that name.
    pub(super) fn activates(&self, name: &str, spoken: &Spoken) -> bool {
        name == spoken.profile.skill_tool && !self.has_tool(name)
    }

    pub(super) fn skills(&self) -> &Skills {
        &self.skills
    }

    /// The host has a tool of that name that does something, other than its own wrapper for cards.
    pub(super) fn has_real_tool(&self, name: &str, spoken: &Spoken) -> bool {
        self.has_tool(name) && !(self.own_display_tool && name == spoken.profile.display_tool)
    }

    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.tools.all.iter().any(|tool| tool.name == name)
    }
}

pub(super) fn deadlines_shown(deadlines: &Deadlines) -> DeadlinesShown {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    DeadlinesShown { tool: ms(deadlines.tool), bridge: ms(deadlines.bridge), connect: ms(deadlines.connect) }
}

impl Connection {
    pub(super) fn open_session(&mut self, params: OpenSession) -> Result<Reply, Fault> {
        let OpenSession { session } = params;
        if session.is_empty() || session.len() > LONGEST_NAME {
            return Err(Fault::field("session", &format!("a name of 1 to {LONGEST_NAME} bytes is wanted")));
        }
        if self.sessions.contains_key(&session) {
            return Err(Fault::field("session", "a name that is not in use is wanted"));
        }
        if self.sessions.len() >= MOST_SESSIONS {
            return Err(Fault::limit("sessions", MOST_SESSIONS));
        }
        self.sessions.insert(session, Session::default());
        done()
    }

    pub(super) fn close_session(&mut self, params: CloseSession, id: Option<Id>) -> Result<Reply, Fault> {
        let CloseSession { session: name, reason } = params;
        let session = self.sessions.remove(&name).ok_or_else(|| Fault::unknown("session", &name))?;
        let reason = reason.unwrap_or_else(|| "the session was closed".to_owned());
        let runs: Vec<String> =
            self.runs.iter().filter(|(_, live)| live.session == name).map(|(id, _)| id.clone()).collect();
        let of_runs: usize =
            runs.iter().filter_map(|id| self.runs.get(id)).map(|live| live.run.pending()).sum();
        let rejected_calls = of_runs + self.turns.pending(&name);
        self.display.forget(&name);
        let turns_over = self.turns.close(&name, reason.clone());
        self.work.spawn(async move {
            if let Some(over) = turns_over {
                over.await;
            }
            for bridge in &session.bridges {
                bridge.shutdown(&reason).await;
            }
            Done { id, outcome: Outcome::Closed { runs, rejected_calls } }
        });
        Ok(Reply::Later)
    }

    pub(super) fn declare_tools(&mut self, params: DeclareTools) -> Result<Reply, Fault> {
        let DeclareTools { session: name, tools, active, own_display_tool, own_skill_tool } = params;
        let session = self.session_mut(&name)?;
        let all: Vec<HostTool> = tools.into_iter().map(HostTool::from).collect();
        let active = active.unwrap_or_else(|| all.iter().map(|tool| tool.name.clone()).collect());
        let declared: BTreeSet<&str> = all.iter().map(|tool| tool.name.as_str()).collect();
        let before: BTreeSet<String> = session.tools.all.iter().map(|tool| tool.name.clone()).collect();
        let removed: Vec<String> =
            before.iter().filter(|name| !declared.contains(name.as_str())).cloned().collect();
        let added: Vec<String> =
            declared.into_iter().filter(|name| !before.contains(*name)).map(str::to_owned).collect();
        session.tools = HostTools { all, active };
        session.own_display_tool = own_display_tool;
        session.own_skill_tool = own_skill_tool;
        for live in self.runs.values().filter(|live| live.session == name) {
            for tool in &removed {
                live.run.withdraw(tool);
            }
            for tool in &added {
                live.run.restore(tool);
            }
        }
        self.tools_of_turns(&name, &removed, &added);
        self.tools_declared(&name, removed)
    }

    pub(super) fn activate_tools(&mut self, params: ActivateTools) -> Result<Reply, Fault> {
        self.session_mut(&params.session)?.tools.active = params.active;
        self.tools_of_turns(&params.session, &[], &[]);
        self.tools_declared(&params.session, Vec::new())
    }

    fn tools_declared(&self, session: &str, removed: Vec<String>) -> Result<Reply, Fault> {
        let Surface { warnings, snapshot, .. } = self.session(session)?.surface(self.spoken()?);
        Reply::now(ToolsDeclared { signature: snapshot.signature().to_owned(), removed, warnings })
    }

    pub(super) fn declare_skills(&mut self, params: DeclareSkills, id: Option<Id>) -> Result<Reply, Fault> {
        let DeclareSkills { session: name, skills, agent_model } = params;
        self.session(&name)?;
        let mut given = Vec::with_capacity(skills.len());
        for (place, skill) in skills.into_iter().enumerate() {
            let folder = |path: &str| Path::new(path).parent().map(PathBuf::from);
            let base = skill.base_dir.map(PathBuf::from).or_else(|| folder(&skill.file_path));
            let base = base.filter(|base| base.is_absolute() && Path::new(&skill.file_path).is_absolute());
            let Some(base) = base else {
                return Err(Fault::field(&format!("skills[{place}].filePath"), "an absolute path is wanted"));
            };
            given.push(Skill {
                name: skill.name,
                description: skill.description,
                file_path: skill.file_path,
                base_dir: base.to_string_lossy().into_owned(),
                disable_model_invocation: skill.disable_model_invocation,
            });
        }
        let mut names = BTreeSet::new();
        let twice = given.iter().filter(|skill| !names.insert(skill.name.clone()));
        let warnings: Vec<String> =
            twice.map(|skill| format!("of two skills {:?} the first counts", skill.name)).collect();
        self.held += 1;
        self.work.spawn(async move {
            let list = timeout(DISK, SkillList::load(given)).await.ok();
            let loaded = LoadedSkills { session: name, list, agent_model, warnings };
            Done { id, outcome: Outcome::Skills(Box::new(loaded)) }
        });
        Ok(Reply::Later)
    }

    /// The folders of declared skills were looked at.
    pub(super) fn skills_loaded(&mut self, loaded: LoadedSkills) -> Result<Box<dyn Answer>, Fault> {
        let LoadedSkills { session: name, list, agent_model, warnings } = loaded;
        let list = list.ok_or_else(|| Fault::refused("the disk with the skills does not answer"))?;
        let file = self.spoken()?.settings_file.clone();
        let session = self.session_mut(&name)?;
        session.skills.model_selected(agent_model);
        session.skills.before_agent_start(list);
        let (settings, _) = session.settings(file.as_deref());
        let tool_active = session.skill_tool_active(&settings);
        let visible = session.skills.list().iter().map(|skill| skill.name.clone()).collect();
        Ok(Box::new(SkillsDeclared { visible, tool_active, warnings }))
    }

    pub(super) fn declare_settings(&mut self, params: DeclareSettings) -> Result<Reply, Fault> {
        self.session_mut(&params.session)?.above = Some(params.settings);
        Reply::now(self.settings_shown(&params.session)?)
    }

    pub(super) fn read_settings(&mut self, params: &OfSession) -> Result<Reply, Fault> {
        Reply::now(self.settings_shown(&params.session)?)
    }

    pub(super) fn settings_shown(&self, session: &str) -> Result<SettingsShown, Fault> {
        let file = self.spoken()?.settings_file.as_deref();
        let (settings, warnings) = self.session(session)?.settings(file);
        let (deadlines, odd) = settings.deadlines();
        Ok(SettingsShown {
            file: file.map(|file| file.to_string_lossy().into_owned()),
            settings: shown(&settings, &deadlines),
            warnings: warnings.iter().chain(&odd).map(ToString::to_string).collect(),
            deadlines: deadlines_shown(&deadlines),
        })
    }

    pub(super) fn write_settings(&mut self, params: WriteSettings, id: Option<Id>) -> Result<Reply, Fault> {
        let WriteSettings { session, changes } = params;
        self.session(&session)?;
        let file = self.spoken()?.settings_file.clone();
        let file = file.ok_or_else(|| Fault::refused("there is no place for a settings file"))?;
        let changes = changes.into_iter().map(|(key, value)| {
            let path = SettingChange::keys(&key);
            match value {
                None => Ok(SettingChange::remove(&path)),
                Some(value) => SettingChange::set(&path, value)
                    .map_err(|error| Fault::field(&format!("changes.{key}"), &error.to_string())),
            }
        });
        let changes = changes.collect::<Result<Vec<_>, _>>()?;
        self.work.spawn(async move {
            let written = Settings::write(&file, &changes).await;
            let written = written.map_err(|error| Fault::refused(error.to_string()));
            Done { id, outcome: Outcome::Written { session, written } }
        });
        Ok(Reply::Later)
    }
}
