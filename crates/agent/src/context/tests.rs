//! Tests of rules, skills and subagents of the chosen sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolway_config::{Environment, Platform, SettingSource};

use super::{ContextSources, RuleUse};
use crate::sources::Sources;
use SettingSource::{Plugins, Project, User};

struct Machine {
    _dir: tempfile::TempDir,
    home: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        std::fs::create_dir_all(home.join("project/.git")).unwrap();
        Self { _dir: dir, home }
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn load_at(&self, cwd: &str, chosen: &[SettingSource]) -> ContextSources {
        let cwd = self.home.join(cwd);
        std::fs::create_dir_all(&cwd).unwrap();
        let vars = BTreeMap::from([("HOME".to_owned(), self.home.display().to_string())]);
        let environment = Environment::new(vars, cwd.clone(), Platform::Linux);
        ContextSources::load(&Sources::new(environment, cwd, chosen.to_vec()))
    }

    fn load(&self, chosen: &[SettingSource]) -> ContextSources {
        self.load_at("project", chosen)
    }
}

fn names(context: &ContextSources) -> Vec<&str> {
    context.rules.iter().map(|rule| rule.name.as_str()).collect()
}

#[test]
fn nothing_is_read_that_was_not_chosen() {
    let machine = Machine::new();
    machine.write("project/AGENTS.md", "project");
    machine.write(".cursor/rules/mine.mdc", "---\nalwaysApply: true\n---\nuser");
    machine.write("project/.cursor/agents/a.md", "---\ndescription: d\n---\np");
    machine.write("project/.cursor/skills/s/SKILL.md", "---\ndescription: d\n---\n");
    assert_eq!(machine.load(&[]), ContextSources::default());
    assert_eq!(machine.load(&[SettingSource::Team, SettingSource::Mdm]), ContextSources::default());
    assert_eq!(names(&machine.load(&[User])), ["mine"]);
    let project = machine.load(&[Project]);
    assert_eq!((names(&project), project.skills.len(), project.subagents.len()), (vec!["AGENTS.md"], 1, 1));
    assert_eq!(names(&machine.load(&[Project, User])), ["mine", "AGENTS.md"]);
}

#[test]
fn rules_hold_from_the_projects_top_to_the_agents_folder_and_below_when_asked() {
    let machine = Machine::new();
    machine.write("AGENTS.md", "above the project");
    machine.write("project/.cursorrules", "old");
    machine.write("project/AGENTS.md", "top");
    machine.write("project/a/AGENTS.md", "a");
    machine.write("project/a/b/AGENTS.md", "b");
    machine.write("project/a/b/.cursor/rules/x/deep.mdc", "---\nglobs: *.rs\n---\ndeep");
    machine.write("project/z/AGENTS.md", "beside");
    let file = machine.write("project/a/b/c.rs", "");
    let context = machine.load_at("project/a", &[Project]);
    let texts: Vec<&str> = context.rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["old", "top", "a"]);
    let nested = context.nested(&file);
    let texts: Vec<&str> = nested.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["b", "deep"]);
    assert!(nested[1].fits(&file) && !nested[1].fits(&machine.home.join("project/a/d.rs")));
    assert!(context.nested(&machine.home.join("AGENTS.md")).is_empty());
    assert!(ContextSources::default().nested(&file).is_empty());
}

#[test]
fn heads_say_when_a_rule_holds() {
    let machine = Machine::new();
    let rule = |name: &str, head: &str| {
        machine.write(&format!("project/.cursor/rules/{name}.mdc"), format!("---\n{head}\n---\nText\n"))
    };
    rule("a", "description: d\nglobs:\nalwaysApply: true");
    rule("b", "globs: **/*.ts,src/{x,y}/*.js\nalwaysApply: false");
    rule("c", "description: \"use it\"\nglobs: \nalwaysApply: false");
    rule("d", "");
    machine.write("project/.cursor/rules/readme.md", "not a rule");
    let context = machine.load(&[Project]);
    let when: Vec<RuleUse> = context.rules.iter().map(|rule| rule.when.clone()).collect();
    let globs = vec!["**/*.ts".to_owned(), "src/{x,y}/*.js".to_owned()];
    assert_eq!(when, [RuleUse::Always, RuleUse::Files(globs), RuleUse::Described, RuleUse::Named]);
    assert!(context.rules.iter().all(|rule| rule.text == "Text\n"));
    let project = machine.home.join("project");
    for (path, fits) in [
        ("a.ts", true),
        ("x/y/a.ts", true),
        ("src/x/a.js", true),
        ("src/z/a.js", false),
        ("x/src/x/a.js", false),
    ] {
        assert_eq!(context.rules[1].fits(&project.join(path)), fits, "{path}");
    }
    assert!(!context.rules[1].fits(Path::new("/elsewhere/a.ts")));
}

#[test]
fn bad_files_are_told_and_the_rest_is_used() {
    let machine = Machine::new();
    machine.write("project/.cursor/rules/bad.mdc", "---\ndescription: [\n---\nx");
    machine.write("project/.cursor/rules/good.mdc", "---\nalwaysApply: true\n---\nx");
    machine.write("project/.cursor/rules/latin.mdc", b"\xff\xfe");
    machine.write("project/.cursor/agents/nothing.md", "---\nname: x\n---\nprompt");
    machine.write("project/.cursor/agents/empty.md", "---\ndescription: x\n---\n");
    machine.write("project/.cursor/agents/name.md", "---\nname: a/b\ndescription: x\n---\np");
    machine.write("project/.cursor/skills/s/SKILL.md", "no description");
    machine.write("project/AGENTS.md", "ä".repeat(200_000));
    let context = machine.load(&[Project]);
    let told: Vec<String> = context.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 7, "{told:#?}");
    assert!(told.iter().any(|text| text.contains("bad.mdc:3:")), "{told:#?}");
    assert!(context.subagents.is_empty() && context.skills.is_empty());
    let agents = context.rules.iter().find(|rule| rule.name == "AGENTS.md").unwrap();
    assert_eq!(agents.text.len(), 256 * 1024);
    assert_eq!(names(&context), ["AGENTS.md", "good"]);
}

#[test]
fn subagents_and_skills_of_the_project_stand_before_the_users() {
    let machine = Machine::new();
    let head =
        "---\nname: reviewer\ndescription: reads\nmodel: inherit\ntools: read, grep\nreadonly: true\n---\n";
    let own = machine.write("project/.cursor/agents/r.md", format!("{head}Of the project.\n"));
    machine.write(".cursor/agents/r.md", format!("{head}Of the user.\n"));
    machine.write(".cursor/agents/other.md", "---\ndescription: d\nmodel: gpt-5\n---\nOther");
    machine
        .write("project/.cursor/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: of the project\n---\n");
    machine.write(".cursor/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: of the user\n---\n");
    machine
        .write(".cursor/skills/own/SKILL.md", "---\ndescription: d\ndisable-model-invocation: true\n---\n");
    let context = machine.load(&[User, Project]);
    let [first, other] = context.subagents.as_slice() else { panic!("{:?}", context.subagents) };
    assert_eq!(
        (first.name.as_str(), first.prompt.as_str(), &first.path),
        ("reviewer", "Of the project.", &own)
    );
    assert_eq!((first.model.clone(), first.read_only), (None, true));
    assert_eq!(first.tools, Some(vec!["read".to_owned(), "grep".to_owned()]));
    assert_eq!((other.name.as_str(), other.model.as_deref(), &other.tools), ("other", Some("gpt-5"), &None));
    let skills: Vec<(&str, bool)> =
        context.skills.iter().map(|skill| (skill.name.as_str(), skill.disable_model_invocation)).collect();
    assert_eq!(skills, [("pdf", false), ("own", true)]);
    assert_eq!(context.skills[0].description, "of the project");
    assert_eq!(context.diagnostics.len(), 2, "{:?}", context.diagnostics);
}

#[tokio::test]
async fn a_skill_that_was_found_can_be_activated() {
    let machine = Machine::new();
    machine.write("project/.agents/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\nDo this.");
    let list = toolway_bridge::SkillList::load(machine.load(&[Project]).skills).await;
    let arguments = toolway_bridge::RawJson::new(r#"{"name":"pdf"}"#).unwrap();
    let activation = toolway_bridge::activate(&list, &arguments).await.unwrap();
    assert!(activation.text.contains("Do this."), "{}", activation.text);
}

#[test]
fn plugins_bring_rules_skills_and_subagents() {
    let machine = Machine::new();
    let plugin = ".cursor/plugins/local/p";
    machine.write(&format!("{plugin}/plugin.json"), r#"{"name": "p", "agents": ["./own/a.md"]}"#);
    machine.write(&format!("{plugin}/own/a.md"), "---\ndescription: d\n---\np");
    machine.write(&format!("{plugin}/agents/unnamed.md"), "---\ndescription: d\n---\np");
    machine.write(&format!("{plugin}/skills/s/SKILL.md"), "---\ndescription: d\n---\n");
    machine.write(&format!("{plugin}/rules/r.mdc"), "---\nalwaysApply: true\n---\nx");
    let context = machine.load(&[Plugins]);
    let subagents: Vec<&str> = context.subagents.iter().map(|file| file.name.as_str()).collect();
    assert_eq!((subagents, names(&context), context.skills.len()), (vec!["a"], vec!["r"], 1));
    assert!(context.diagnostics.is_empty(), "{:?}", context.diagnostics);
    assert!(machine.load(&[User]).rules.is_empty());
}

#[test]
fn statement_a36_a_plugin_names_nothing_outside_of_itself() {
    for member in ["skills", "agents", "rules"] {
        for named in ["../secret", "/etc", "a/../../secret", "file:///etc", "C:\\x", "", "link"] {
            let machine = Machine::new();
            let plugin = ".cursor/plugins/local/p";
            machine.write(".cursor/plugins/local/secret/a.md", "---\ndescription: d\n---\np");
            machine.write("outside/a.md", "---\ndescription: d\n---\np");
            machine.write("outside/a.mdc", "---\nalwaysApply: true\n---\np");
            machine.write("outside/s/SKILL.md", "---\ndescription: d\n---\np");
            let manifest = serde_json::json!({"name": "p", member: named}).to_string();
            machine.write(&format!("{plugin}/plugin.json"), manifest);
            #[cfg(unix)]
            std::os::unix::fs::symlink(machine.home.join("outside"), machine.home.join(plugin).join("link"))
                .unwrap();
            let context = machine.load(&[Plugins]);
            let told = context.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert!(
                told.iter().any(|text| text.contains("plugin.json") && text.contains(member)),
                "{member} {named}: {told:?}"
            );
            assert!(context.rules.is_empty() && context.skills.is_empty() && context.subagents.is_empty());
        }
    }
}

#[cfg(unix)]
#[test]
fn links_of_a_plugin_lead_out_of_it_to_nothing() {
    let machine = Machine::new();
    let plugin = machine.home.join(".cursor/plugins/local/p");
    let outside = machine.write("outside/SKILL.md", "---\ndescription: d\n---\np");
    machine.write("outside.md", "---\ndescription: d\n---\np");
    for folder in ["skills", "agents"] {
        std::fs::create_dir_all(plugin.join(folder)).unwrap();
    }
    std::os::unix::fs::symlink(outside.parent().unwrap(), plugin.join("skills/s")).unwrap();
    std::os::unix::fs::symlink(machine.home.join("outside.md"), plugin.join("agents/a.md")).unwrap();
    let context = machine.load(&[Plugins]);
    assert!(context.skills.is_empty() && context.subagents.is_empty());
    assert_eq!(context.diagnostics.len(), 2, "{:?}", context.diagnostics);
}
