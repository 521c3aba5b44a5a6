//! Owns what a host asks about surfaces: the manifest, and the report of the debug command.

use serde_json::{Value, json};
use toolway_wire::Id;

use super::answers::{FindingShown, ManifestShown, ReportShown, SelfTestShown};
use super::connection::{Connection, Done, Outcome, Reply};
use super::fault::Fault;
use super::opening::{exposed, facts_shown, hidden};
use super::requests::{OfSession, OfSurface};
use super::session::{Surface, deadlines_shown};
use crate::diagnostics::Event;
use crate::manifest::{ManifestOptions, manifest};
use crate::report::{ReportInput, ReportedRun, report};
use crate::run::Run;
use crate::self_test::{Finding, self_test};

impl Connection {
    pub(super) fn read_manifest(&mut self, params: &OfSurface) -> Result<Reply, Fault> {
        let spoken = self.spoken()?;
        let Surface { snapshot: fresh, .. } = self.session(&params.session)?.surface(spoken);
        let held = params.run.as_deref().map(|run| self.run_of(&params.session, run)).transpose()?;
        let snapshot = held.map_or(&fresh, |live| live.run.snapshot());
        let text = manifest(&spoken.profile, snapshot, &ManifestOptions { in_prompt: false });
        let names = snapshot.exposed().iter().map(|tool| tool.mcp_name.clone()).collect();
        Reply::now(ManifestShown { text, names })
    }

    pub(super) fn read_report(&mut self, params: &OfSurface) -> Result<Reply, Fault> {
        let spoken = self.spoken()?;
        let surface = self.session(&params.session)?.surface(spoken);
        let live = match params.run.as_deref() {
            Some(run) => Some(self.run_of(&params.session, run)?),
            None => self.runs.values().find(|live| live.session == params.session),
        };
        let of_turn = live.is_none().then(|| self.turns.session(&params.session)?.run()).flatten();
        let live: Option<&Run> = live.map(|live| &live.run).or(of_turn.as_ref());
        let run = live.map(|live| {
            let facts = live.facts();
            ReportedRun {
                id: live.id(),
                pending: live.pending(),
                exposed: facts.exposed,
                connected: facts.connected > 0,
                listed: facts.listed > 0,
                called: facts.called > 0,
            }
        });
        let diagnostics: Vec<String> = spoken.diagnostics.last().iter().map(Event::to_json).collect();
        let Surface { settings, warnings, raw_warnings, deadlines, snapshot, .. } = &surface;
        let text = report(&ReportInput {
            profile: &spoken.profile,
            settings: Some(settings),
            warnings: raw_warnings,
            snapshot: Some(snapshot),
            deadlines: Some(*deadlines),
            run,
            diagnostics: &diagnostics,
        });
        let events: Vec<Value> =
            diagnostics.iter().filter_map(|event| serde_json::from_str(event).ok()).collect();
        let data = json!({
            "profile": spoken.profile.id,
            "settings": {
                "tools.bridge.enabled": settings.tools.bridge.enabled,
                "tools.manifest": settings.tools.manifest,
                "local.settingSources": settings.local.setting_sources,
            },
            "signature": snapshot.signature(),
            "exposed": exposed(snapshot),
            "hidden": hidden(snapshot),
            "deadlines": deadlines_shown(deadlines),
            "run": live.map(|live| json!({
                "run": live.id(),
                "signature": live.snapshot().signature(),
                "pending": live.pending(),
                "facts": facts_shown(&live.facts()),
            })),
            "diagnostics": events,
            "warnings": warnings,
        });
        let show = if spoken.ui { "notification" } else { "stdout" };
        Reply::now(ReportShown { text, show, data })
    }

    pub(super) fn run_self_test(&mut self, params: &OfSession, id: Option<Id>) -> Result<Reply, Fault> {
        let (spoken, config) = (self.spoken()?.clone(), self.config.clone());
        let session = self.session_mut(&params.session)?;
        let Surface { deadlines, options, tools, .. } = session.surface(&spoken);
        let bridge = session.bridge(deadlines, &spoken, &config);
        self.work.spawn(async move {
            let test = self_test(&bridge, &options, &tools).await;
            let shown = |finding: &Finding| FindingShown { holds: finding.holds, seen: finding.seen.clone() };
            let shown = SelfTestShown {
                passed: test.passed(),
                exposed: shown(&test.exposed),
                connected: shown(&test.connected),
                listed: shown(&test.listed),
                called: shown(&test.called),
                text: test.to_string(),
            };
            Done { id, outcome: Outcome::Answer(Ok(Box::new(shown))) }
        });
        Ok(Reply::Later)
    }
}
