//! Prompts of a real surface: what they name is what the run's snapshot exposes, in every state of the switches.

use super::*;
use crate::manifest::{ManifestOptions, manifest};
use crate::skills::{Skill, SkillList, Skills, skill_tool};
use crate::snapshot::{Snapshot, SurfaceOptions};
use crate::tool::{HostTool, HostTools};

fn tool(name: &str) -> HostTool {
    serde_json::from_value(json!({ "name": name })).unwrap()
}

/// A host with two tools of its own, one that the agent has as well, and one skill.
struct Host {
    profile: Profile,
    skills: Skills,
    options: SurfaceOptions,
    is_agent_model: bool,
    active: Vec<&'static str>,
}

/// What the host's session comes to.
struct Shown {
    snapshot: Snapshot,
    system: String,
    first: String,
    next: String,
}

impl Host {
    fn new(profile: &Profile) -> Self {
        Self {
            profile: *profile,
            skills: Skills::new(),
            options: SurfaceOptions::default(),
            is_agent_model: true,
            active: vec!["todo", "tool one", "read"],
        }
    }

    fn shown(mut self, in_manifest: bool) -> Shown {
        let skill = Skill {
            name: "swim".to_owned(),
            description: "moves in water".to_owned(),
            file_path: "/skills/swim/SKILL.md".to_owned(),
            base_dir: "/skills/swim".to_owned(),
            disable_model_invocation: false,
        };
        self.skills.model_selected(self.is_agent_model);
        self.skills.before_agent_start(SkillList::read(vec![skill]));
        let mut tools = HostTools {
            all: ["todo", "tool one", "read"].map(tool).to_vec(),
            active: self.active.iter().map(|name| (*name).to_owned()).collect(),
        };
        if self.skills.is_tool_active(self.options.enabled, !tools.active.is_empty()) {
            tools.all.push(skill_tool(&self.profile));
            tools.active.push(self.profile.skill_tool.to_owned());
        }
        let snapshot = Snapshot::take(&self.profile, &self.options, &tools);
        let exposed: Vec<&str> = snapshot.exposed().iter().map(|tool| tool.mcp_name.as_str()).collect();
        let activation =
            snapshot.exposed().iter().find(|exposed| exposed.tool.name == self.profile.skill_tool);
        let catalogue = self.skills.catalogue(activation.map(|tool| tool.mcp_name.as_str()));
        let system = HostSystem::Text("Be kind.".to_owned()).instructions(&SystemOptions {
            profile: &self.profile,
            catalogue: catalogue.as_ref(),
            instruction_files: &[],
            setting_sources: &[],
            preserve_instructions: false,
        });
        let text = manifest(&self.profile, &snapshot, &ManifestOptions { in_prompt: true });
        let messages = [Message::user("hello")];
        let input = PromptInput {
            profile: &self.profile,
            exposed: &exposed,
            manifest: in_manifest.then_some(text.as_str()),
            system: &system,
            ..input(&messages)
        };
        let (first, next) = (bootstrap(&input).text, incremental(&input).text);
        Shown { snapshot, system, first, next }
    }
}

#[test]
fn statement_36_the_manifest_of_the_first_prompt_lists_the_snapshot_s_names_sorted() {
    for profile in Profile::ALL {
        let Shown { snapshot, first, next, .. } = Host::new(&profile).shown(true);
        let mut names: Vec<&str> = snapshot.exposed().iter().map(|tool| tool.mcp_name.as_str()).collect();
        assert_eq!(names.len(), 3, "two tools of the host's own and the activation of skills: {names:?}");
        let manifest = first.find("Callable tool surfaces").unwrap();
        let end = first.find("Be kind.").unwrap();
        let section = first.get(manifest..end).unwrap();
        assert!(places(section, &names).is_sorted(), "{section}");
        names.sort_unstable();
        assert!(places(section, &names).is_sorted(), "{section}");
        assert!(!next.contains("Callable tool surfaces"));
        assert!(!section.contains(&format!("{}read", profile.prefix)));
    }
}

#[test]
fn statement_37_switches_of_manifest_and_bridge_leave_no_word_behind() {
    for profile in Profile::ALL {
        let unlisted = Host::new(&profile).shown(false);
        assert!(
            !unlisted.first.contains("Callable tool surfaces") && !unlisted.first.contains("listed below")
        );
        assert!(unlisted.first.contains(profile.prefix));

        let off = SurfaceOptions { enabled: false, ..SurfaceOptions::default() };
        let excluded = ["todo", "tool one", profile.skill_tool].map(str::to_owned).to_vec();
        let hidden = SurfaceOptions { exclude: excluded, ..SurfaceOptions::default() };
        let none = Host { active: Vec::new(), ..Host::new(&profile) };
        let hosts = [
            Host { options: off, ..Host::new(&profile) },
            Host { options: hidden, ..Host::new(&profile) },
            none,
        ];
        for host in hosts {
            let Shown { snapshot, first, next, .. } = host.shown(true);
            assert!(!snapshot.is_served());
            assert!(first.contains("Callable tool surfaces"), "the other surfaces are still there:\n{first}");
            for prompt in [first, next] {
                let prompt = prompt.to_lowercase();
                for word in ["bridge", profile.prefix, profile.server_key, profile.skill_tool] {
                    assert!(!prompt.contains(word), "{word} in\n{prompt}");
                }
            }
        }
    }
}

#[test]
fn statement_43_without_the_tool_the_catalogue_leads_to_the_file() {
    let profile = Profile::PI;
    let name = format!("{}{}", profile.prefix, profile.skill_tool);
    let with = Host::new(&profile).shown(true);
    assert!(with.system.contains(&format!("call `{name}`")), "{}", with.system);

    let off = SurfaceOptions { enabled: false, ..SurfaceOptions::default() };
    let excluded =
        SurfaceOptions { exclude: vec![profile.skill_tool.to_owned()], ..SurfaceOptions::default() };
    let none = Host { active: Vec::new(), ..Host::new(&profile) };
    let hosts = [
        Host { options: off, ..Host::new(&profile) },
        Host { options: excluded, ..Host::new(&profile) },
        none,
    ];
    for host in hosts {
        let Shown { snapshot, system, first, .. } = host.shown(true);
        assert!(snapshot.find(&name).is_none());
        assert!(!first.contains(profile.skill_tool), "what cannot be called is not named:\n{first}");
        assert!(system.contains("<location>/skills/swim/SKILL.md</location>"), "{system}");
        assert!(system.contains("your own file-reading tool"), "{system}");
    }
    let other = Host { is_agent_model: false, ..Host::new(&profile) }.shown(true);
    assert_eq!(other.system, "Be kind.", "another model sees the original");
    assert!(other.snapshot.find(&name).is_none());
}
