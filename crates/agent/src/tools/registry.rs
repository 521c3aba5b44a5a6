//! Owns the list of built-in tools that an agent has. It starts nothing.

use std::sync::Arc;

use super::{Capabilities, Tool};

/// The tools of an agent, in the order in which a model is told of them.
#[derive(Debug, Clone, Default)]
pub struct ToolRegistry {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolRegistry {
    /// The built-in ones that are allowed.
    pub fn built_in(allowed: &Capabilities) -> Self {
        let mut registry = Self::default();
        for tool in super::all() {
            if allowed.has(tool.capability()) {
                registry.tools.push(tool);
            }
        }
        registry
    }

    /// Adds one. A tool of the same name gives way.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        self.tools.retain(|own| own.name() != tool.name());
        self.tools.push(tool);
    }

    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name().to_owned()).collect()
    }
}
