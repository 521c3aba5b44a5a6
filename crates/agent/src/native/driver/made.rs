//! Owns what a run begins with: the words before its conversation, and the way from a call to the tool behind it.

use std::path::PathBuf;
use std::sync::Arc;

use time::OffsetDateTime;
use toolway_bridge::{RawJson, SkillList};

use super::Work;
use crate::generation::{Generation, McpCall};
use crate::native::prompt::Words;
use crate::native::turn_loop::{Offered, Resolve, Resolved, Shown};

/// Finds the tool behind a call of the tool that calls others.
pub(super) fn resolver(servers: &Arc<Generation>) -> Resolve {
    let servers = Arc::clone(servers);
    Resolve(Some(Arc::new(move |name: &str, arguments: &RawJson| {
        let target = servers.target(&McpCall { exposed: name, arguments: arguments.clone() })?;
        if target.server.is_empty() {
            return None;
        }
        let shown = Shown::Mcp { server: target.server, tool: target.tool };
        let offered = Offered { together: target.side_by_side, shown };
        Some(Resolved { offered, arguments: target.arguments })
    })))
}

/// Finds the server that a name seems to be of whose tool is not there: it may be on its way, or has failed.
pub(super) fn absent(servers: &Arc<Generation>) -> Resolve {
    let servers = Arc::clone(servers);
    Resolve(Some(Arc::new(move |name: &str, arguments: &RawJson| {
        let server = servers.server_of(name)?;
        let shown = Shown::Mcp { server, tool: name.to_owned() };
        Some(Resolved { offered: Offered { together: false, shown }, arguments: arguments.clone() })
    })))
}

/// The words before the conversation.
pub(super) async fn system(work: &Work) -> String {
    let context = &work.surroundings.context;
    let told_by_host = work.setup.skills_by_host && !work.is_subagent;
    let skills = if told_by_host { Vec::new() } else { context.skills.clone() };
    let skills = SkillList::load(skills).await;
    let roots: Vec<PathBuf> =
        work.facts.roots.iter().filter(|root| **root != work.facts.cwd).cloned().collect();
    let words = Words {
        given: work.words.as_deref(),
        is_subagent: work.is_subagent,
        mode: work.mode,
        cwd: &work.facts.cwd,
        roots: &roots,
        model: work.model.id(),
        context,
        skills: &skills,
        now: OffsetDateTime::now_utc(),
    };
    words.text()
}
