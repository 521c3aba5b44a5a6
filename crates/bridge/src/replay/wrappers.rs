//! Owns which wrappers the adapter registers with the host, and which of them are active when. It registers nothing.

use std::collections::BTreeSet;

use crate::json::RawJson;
use crate::profile::Profile;
use crate::tool::{HostTool, Provenance};

/// Host tools whose look a card can have.
const NATIVE: [&str; 7] = ["read", "bash", "grep", "find", "ls", "edit", "write"];
/// Those that stay active for every model: hosts have them active by themselves.
const ALWAYS: [&str; 4] = ["read", "bash", "edit", "write"];

/// When wrappers are looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrapperMoment {
    /// A session began, also one that replaces another: everything is registered anew.
    SessionStart,
    /// The agent is about to start on a prompt.
    BeforeAgentStart,
    /// Another model was selected.
    ModelSelect,
    /// A turn starts.
    TurnStart,
}

/// What a host looks like at such a moment.
#[derive(Debug, Clone, Copy)]
pub struct WrapperSurroundings<'a> {
    /// Cards are on.
    pub display: bool,
    /// The selected model is one of the agent's.
    pub agent_model: bool,
    /// The user switched the host's tools off as a whole.
    pub tools_disabled: bool,
    /// The active tools.
    pub active: &'a [String],
    /// Names that another extension has registered.
    pub foreign: &'a BTreeSet<String>,
}

/// What the host is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrapperPlan {
    /// Register wrappers under these names.
    pub register: Vec<String>,
    /// Activate these tools.
    pub activate: Vec<String>,
    /// Deactivate these tools.
    pub deactivate: Vec<String>,
    /// Tell the user.
    pub warnings: Vec<String>,
}

/// The wrappers of one session.
#[derive(Debug)]
pub struct Wrappers {
    profile: Profile,
    registered: BTreeSet<String>,
    activated: BTreeSet<String>,
    warned: BTreeSet<String>,
}

impl Wrappers {
    /// None is registered.
    pub fn new(profile: &Profile) -> Self {
        Self {
            profile: *profile,
            registered: BTreeSet::new(),
            activated: BTreeSet::new(),
            warned: BTreeSet::new(),
        }
    }

    /// The names under which wrappers are registered: what a [`super::ReplayContext`] goes by.
    pub fn registered(&self) -> &BTreeSet<String> {
        &self.registered
    }

    /// Brings registered and active wrappers in step with the host.
    pub fn resync(&mut self, moment: WrapperMoment, host: &WrapperSurroundings<'_>) -> WrapperPlan {
        let mut plan = WrapperPlan::default();
        if moment == WrapperMoment::SessionStart {
            self.registered.clear();
            // What the session before made active and the host kept is still to leave with the model.
            self.activated.retain(|name| host.active.contains(name));
        }
        let wanted = host.display && host.agent_model && !host.tools_disabled;
        for name in NATIVE.into_iter().chain([self.profile.display_tool]) {
            let is_active = host.active.iter().any(|active| active == name);
            if host.foreign.contains(name) {
                self.registered.remove(name);
                self.activated.remove(name);
                if host.display && host.agent_model && self.warned.insert(name.to_owned()) {
                    plan.warnings.push(format!(
                        "the tool {name} belongs to another extension: what the agent does is shown as text instead of {name} cards"
                    ));
                }
                continue;
            }
            if wanted {
                if self.registered.insert(name.to_owned()) {
                    plan.register.push(name.to_owned());
                }
                if !is_active {
                    self.activated.insert(name.to_owned());
                    plan.activate.push(name.to_owned());
                }
            } else if !ALWAYS.contains(&name) && self.activated.remove(name) && is_active {
                plan.deactivate.push(name.to_owned());
            }
        }
        plan
    }
}

/// The definition of a wrapper: the host's own tool of that name without what a host adds to prompts, or the display
/// tool.
pub fn wrapper_definition(profile: &Profile, name: &str, own: Option<&HostTool>) -> Option<HostTool> {
    let provenance = Provenance { source: "extension".to_owned(), path: None, scope: None };
    if name == profile.display_tool {
        const PARAMETERS: &str = r#"{"type":"object","properties":{"activityTitle":{"type":"string"},"activitySummary":{"type":"string"}},"required":["activityTitle"]}"#;
        return Some(HostTool {
            name: name.to_owned(),
            description: "Shows what the agent did; it does nothing.".to_owned(),
            guidelines: Vec::new(),
            parameters: RawJson::new(PARAMETERS).unwrap_or_else(|_| RawJson::empty_object()),
            provenance,
        });
    }
    let own = own.filter(|own| own.name == name && NATIVE.contains(&name))?;
    Some(HostTool { guidelines: Vec::new(), provenance, ..own.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host<'a>(active: &'a [String], foreign: &'a BTreeSet<String>) -> WrapperSurroundings<'a> {
        WrapperSurroundings { display: true, agent_model: true, tools_disabled: false, active, foreign }
    }

    #[test]
    fn lesson_21_wrappers_are_brought_in_step_at_every_turn() {
        let none = BTreeSet::new();
        let mut wrappers = Wrappers::new(&Profile::PI);
        let four = ALWAYS.map(str::to_owned);
        let plan = wrappers.resync(WrapperMoment::SessionStart, &host(&four, &none));
        assert_eq!(plan.register.len(), 8);
        assert_eq!(plan.activate, ["grep", "find", "ls", "cursor"]);
        // A plan mode put the active tools back to its own.
        let plan = wrappers.resync(WrapperMoment::TurnStart, &host(&four, &none));
        assert_eq!(
            (plan.register.len(), plan.activate.as_slice()),
            (0, ["grep", "find", "ls", "cursor"].map(str::to_owned).as_slice())
        );
        // A session that replaces another has none of them.
        assert_eq!(wrappers.resync(WrapperMoment::SessionStart, &host(&four, &none)).register.len(), 8);
    }

    #[test]
    fn wrappers_leave_with_the_model_and_never_come_to_a_host_without_tools() {
        let none = BTreeSet::new();
        let mut wrappers = Wrappers::new(&Profile::PI);
        let active = ["read", "bash", "edit", "write", "ls"].map(str::to_owned);
        wrappers.resync(WrapperMoment::SessionStart, &host(&active, &none));
        let active = ["read", "bash", "edit", "write", "ls", "grep", "find", "cursor"].map(str::to_owned);
        let other = WrapperSurroundings { agent_model: false, ..host(&active, &none) };
        // "ls" was active before the adapter came.
        assert_eq!(
            wrappers.resync(WrapperMoment::ModelSelect, &other).deactivate,
            ["grep", "find", "cursor"]
        );
        let disabled = WrapperSurroundings { tools_disabled: true, ..host(&[], &none) };
        assert_eq!(
            Wrappers::new(&Profile::PI).resync(WrapperMoment::SessionStart, &disabled),
            WrapperPlan::default()
        );
    }

    #[test]
    fn wrappers_that_outlived_their_session_leave_with_the_model_too() {
        let none = BTreeSet::new();
        let mut wrappers = Wrappers::new(&Profile::PI);
        let mut active = ALWAYS.map(str::to_owned).to_vec();
        active.extend(wrappers.resync(WrapperMoment::SessionStart, &host(&active, &none)).activate);
        // The next session begins with the active tools of the last one.
        assert_eq!(
            wrappers.resync(WrapperMoment::SessionStart, &host(&active, &none)).activate,
            Vec::<String>::new()
        );
        let other = WrapperSurroundings { agent_model: false, ..host(&active, &none) };
        let plan = wrappers.resync(WrapperMoment::ModelSelect, &other);
        assert_eq!(plan.deactivate, ["grep", "find", "ls", "cursor"]);
    }

    #[test]
    fn a_name_of_another_extension_is_left_alone_said_once_and_looked_at_again() {
        let (none, foreign) = (BTreeSet::new(), BTreeSet::from(["grep".to_owned()]));
        let mut wrappers = Wrappers::new(&Profile::HOST);
        let plan = wrappers.resync(WrapperMoment::SessionStart, &host(&[], &foreign));
        assert!(!plan.register.contains(&"grep".to_owned()) && !plan.activate.contains(&"grep".to_owned()));
        assert_eq!(plan.warnings.len(), 1);
        assert_eq!(wrappers.resync(WrapperMoment::TurnStart, &host(&[], &foreign)).warnings.len(), 0);
        assert!(!wrappers.registered().contains("grep"));
        assert_eq!(wrappers.resync(WrapperMoment::TurnStart, &host(&[], &none)).register, ["grep"]);
    }

    #[test]
    fn lesson_23_wrappers_add_nothing_to_prompts() {
        let own = HostTool {
            name: "read".to_owned(),
            description: "Reads.".to_owned(),
            guidelines: vec!["Always read first.".to_owned()],
            parameters: RawJson::empty_object(),
            provenance: Provenance::default(),
        };
        for profile in Profile::ALL {
            let wrapper = wrapper_definition(&profile, "read", Some(&own)).unwrap();
            assert!(wrapper.guidelines.is_empty());
            assert_eq!(wrapper.parameters, own.parameters);
            assert!(wrapper_definition(&profile, profile.display_tool, None).unwrap().guidelines.is_empty());
            assert!(wrapper_definition(&profile, "other", Some(&own)).is_none());
        }
    }
}
