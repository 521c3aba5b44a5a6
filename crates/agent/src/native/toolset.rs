//! Owns the tools of a step: what the model is told of them, and where a call by their name goes. It calls none.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_bridge::RawJson;

use super::estimate;
use super::model::ToolSpec;
use super::turn_loop::{Offer, Offered, Resolve, Shown};
use crate::generation::McpTool;
use crate::tools::{Capability, Tool};

/// Where a call goes.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// A built-in tool.
    BuiltIn(Arc<dyn Tool>),
    /// A tool of a server.
    Mcp(McpTool),
    /// A subagent.
    Task,
    /// The saved results, where no server brings the tool that reads them.
    Saved,
}

/// The tools of a step.
#[derive(Debug, Default)]
pub(super) struct Toolset {
    pub(super) specs: Vec<ToolSpec>,
    pub(super) offer: Arc<Offer>,
    targets: BTreeMap<String, Target>,
    /// Units of the estimate.
    pub(super) weight: u64,
}

/// What a toolset is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// Nothing that writes is offered.
    pub(super) plans: bool,
    pub(super) built_in: Vec<Arc<dyn Tool>>,
    /// The tool of subagents, where there are any.
    pub(super) task: Option<ToolSpec>,
    /// The tool that reads saved results.
    pub(super) saved: Option<ToolSpec>,
    pub(super) servers: &'a [McpTool],
    /// In plan mode, tools of servers are offered only where they say that they only read.
    pub(super) plan_reads_only: bool,
}

impl Toolset {
    /// What the model has now.
    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts { plans, built_in, task, saved, servers, plan_reads_only } = parts;
        let mut set = Self::default();
        let mut offer = Offer::default();
        for tool in built_in.into_iter().filter(|tool| !plans || !writes(tool.as_ref())) {
            let spec = ToolSpec {
                name: tool.name().to_owned(),
                description: tool.description(),
                schema: RawJson::of(&tool.schema()),
            };
            let together = tool.only_reads();
            set.add(&mut offer, spec, Target::BuiltIn(tool), Offered { together, shown: Shown::Own });
        }
        if let Some(spec) = task {
            // A subagent that plans changes nothing either.
            set.add(&mut offer, spec, Target::Task, Offered { together: plans, shown: Shown::Own });
        }
        for tool in servers.iter().filter(|tool| !plans || !plan_reads_only || tool.read_only) {
            let spec = ToolSpec {
                name: tool.exposed.clone(),
                description: tool.description.clone(),
                schema: tool.input_schema.clone(),
            };
            let shown = if tool.server.is_empty() {
                Shown::Own
            } else {
                Shown::Mcp { server: tool.server.to_string(), tool: tool.tool.clone() }
            };
            let offered = Offered { together: tool.side_by_side, shown };
            set.add(&mut offer, spec, Target::Mcp(tool.clone()), offered);
        }
        // Who has no tools saves nothing.
        if let Some(spec) =
            saved.filter(|spec| !set.targets.is_empty() && !set.targets.contains_key(&spec.name))
        {
            set.add(&mut offer, spec, Target::Saved, Offered { together: true, shown: Shown::Own });
        }
        set.weight = estimate::tools(&set.specs);
        set.offer = Arc::new(offer);
        set
    }

    /// Adds one. A name that is taken is given to the later one with a number: none is hidden by another.
    fn add(&mut self, offer: &mut Offer, mut spec: ToolSpec, target: Target, offered: Offered) {
        let wanted = spec.name.clone();
        let mut number = 1u32;
        while self.targets.contains_key(&spec.name) {
            number += 1;
            spec.name = format!("{wanted}_{number}");
        }
        offer.tools.insert(spec.name.clone(), offered);
        self.targets.insert(spec.name.clone(), target);
        self.specs.push(spec);
    }

    /// How calls of a tool that calls others are shown and ordered.
    pub(super) fn resolve_by(&mut self, resolve: Resolve) {
        Arc::make_mut(&mut self.offer).resolve = resolve;
    }

    /// Whose a name is that is not among these. Only where no tool is held back: it would be found that way.
    pub(super) fn absent_by(&mut self, absent: Resolve) {
        Arc::make_mut(&mut self.offer).absent = absent;
    }

    /// Where a call by this name goes.
    pub(super) fn target(&self, name: &str) -> Option<&Target> {
        self.targets.get(name)
    }
}

/// Whether a tool changes something beyond the conversation.
fn writes(tool: &dyn Tool) -> bool {
    let harmless = matches!(
        tool.capability(),
        Capability::UpdateTodos | Capability::ReadTodos | Capability::AskQuestion | Capability::WebFetch
    );
    !tool.only_reads() && !harmless
}
