//! What of a host's system prompt goes to the agent.

mod properties;

use super::*;
use crate::skills::{Skill, SkillList};

/// The sections that pi 0.x writes, in words of our own.
const PLAIN: &str = "You are a helper inside pi.

Available tools:
- read: Looks into files
- web-search: Asks the web

In addition to the tools above, others may exist.

Guidelines:
- Prefer web-search to guesses

  even on Sundays
- Be brief

Pi documentation (only for questions about pi):
- Main: /opt/pi/README.md
- More: /opt/pi/docs
";

const TAGGED: &str = "You are a helper inside pi.

<tools>
- read: Looks into files
- web-search: Asks the web

Additional tools may be there.
</tools>

<rules>
- Prefer web-search to guesses

  even on Sundays
- Be brief
</rules>

<docs>
Pi documentation (only for questions about pi):
- Main: /opt/pi/README.md
</docs>";

fn options<'a>(profile: &'a Profile, sources: &'a [String]) -> SystemOptions<'a> {
    SystemOptions {
        profile,
        catalogue: None,
        instruction_files: &[],
        setting_sources: sources,
        preserve_instructions: false,
    }
}

fn of_pi(text: &str) -> String {
    HostSystem::Text(text.to_owned()).instructions(&options(&Profile::PI, &[]))
}

fn sources(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_pi_writes_for_its_own_models_goes_in_both_forms() {
    let day = "Current date: 2026-11-30\nCurrent working directory: /w";
    assert_eq!(of_pi(&format!("{PLAIN}{day}")), format!("You are a helper inside pi.\n\n{day}"));
    let none = PLAIN.replace("- read: Looks into files\n- web-search: Asks the web", "(none)");
    assert_eq!(of_pi(&none), "You are a helper inside pi.");
    let tail = "<addendum>\nSpeak Latin.\n</addendum>\n\n<cwd>\n/w\n</cwd>";
    assert_eq!(of_pi(&format!("{TAGGED}\n\n{tail}")), format!("You are a helper inside pi.\n\n{tail}"));
}

#[test]
fn project_instructions_and_skills_after_them_stay_also_if_they_look_like_pi_s_sections() {
    let kept = "# Project Context\n\nProject-specific instructions and guidelines:\n\n## /w/AGENTS.md\n\nAvailable tools:\n\
                - make: builds\n\nIn addition to the tools above, use sed.\n\nGuidelines:\n- no tabs\n\n\
                Pi documentation (ours):\n- a.md\n\n<tools>\n- x: y\n</tools>\n\nThe following skills provide help:\n\n\
                <available_skills>\n</available_skills>";
    assert_eq!(of_pi(&format!("{PLAIN}\n{kept}")), format!("You are a helper inside pi.\n\n{kept}"));
    let kept = format!("<project_context>\n{kept}\n</project_context>");
    assert_eq!(of_pi(&format!("{TAGGED}\n\n{kept}")), format!("You are a helper inside pi.\n\n{kept}"));
}

#[test]
fn what_somebody_put_between_pi_s_sections_stays() {
    let documentation = "Pi documentation (only";
    for theirs in
        ["Team rules:\n- no tabs", "# Team\n\n- no tabs", "<team>\n- no tabs\n</team>", "Speak Latin."]
    {
        let shown = of_pi(&PLAIN.replace(documentation, &format!("{theirs}\n\n{documentation}")));
        assert!(shown.contains(theirs), "{shown}");
        assert!(!shown.contains("web-search: Asks") && !shown.contains("/opt/pi"), "{shown}");
        let shown = of_pi(&TAGGED.replace("<rules>", &format!("{theirs}\n\n<rules>")));
        assert!(shown.contains(theirs) && !shown.contains("/opt/pi"), "{shown}");
    }
}

#[test]
fn what_is_not_recognised_stays() {
    let own = [
        "My rules.\n\nAvailable tools:\n- hammer: hits things",
        "My rules.\n\nAvailable tools:\nnone of your business\n\nGuidelines:\n- be kind",
        "My rules.\n\nGuidelines:\n- be kind\n- be brief",
        "My rules.\n\nPi documentation is wrong:\nread it twice",
        "<rules>\n- be kind\n</rules>",
        "<tools>\n- hammer: hits things\n</tools>",
        "<tools>\nI own a hammer.\n</tools>\n\n<rules>\n- be kind\n</rules>",
        "<tools>\n- hammer: hits things\n\n<rules>\n- be kind\n</rules>",
        "<docs>\nSee the wiki.\n</docs>\n\n<rules>\n- be kind\n</rules>",
        "Say: Available tools: none.\n\nGuidelines: few.",
        "",
    ];
    for text in own {
        assert_eq!(of_pi(text), text);
    }
    let foreign = HostSystem::Text(PLAIN.to_owned());
    assert_eq!(
        foreign.instructions(&options(&Profile::HOST, &[])),
        PLAIN.trim(),
        "another host's text is not pi's"
    );
}

#[test]
fn marked_parts_are_taken_at_their_word() {
    let part = |kind, text: &str| SystemPart { kind, text: text.to_owned(), path: None, layer: None };
    let file = |path: &str, layer| SystemPart {
        path: Some(path.to_owned()),
        layer: Some(layer),
        ..part(SystemPartKind::Instructions, path)
    };
    let parts = HostSystem::Parts(vec![
        part(SystemPartKind::Text, "Hello."),
        part(SystemPartKind::ToolCatalogue, "a, b"),
        part(SystemPartKind::Guidelines, "use a"),
        part(SystemPartKind::HostDocs, "read me"),
        file("/home/AGENTS.md", InstructionLayer::Global),
        file("/w/CLAUDE.md", InstructionLayer::Project),
        file("/w/STYLE.md", InstructionLayer::Project),
        part(SystemPartKind::Instructions, "no tabs"),
        part(SystemPartKind::Skills, "skills of the host"),
    ]);
    let profile = Profile::HOST;
    let user = sources(&["user"]);
    let shown = |options: &SystemOptions<'_>| parts.instructions(options);
    assert_eq!(
        shown(&options(&profile, &user)),
        "Hello.\n\n/w/CLAUDE.md\n\n/w/STYLE.md\n\nno tabs\n\nskills of the host"
    );
    let all = sources(&["all"]);
    assert_eq!(shown(&options(&profile, &all)), "Hello.\n\n/w/STYLE.md\n\nno tabs\n\nskills of the host");
    let catalogue = Catalogue::new(SkillList::read(vec![skill("swim")]), Some("host__activate_skill"));
    let mine = SystemOptions { catalogue: Some(&catalogue), ..options(&profile, &all) };
    assert_eq!(shown(&mine), format!("Hello.\n\n/w/STYLE.md\n\nno tabs\n\n{}", catalogue.text()));
    let HostSystem::Parts(mut without) = parts.clone() else { unreachable!() };
    without.pop();
    let appended = HostSystem::Parts(without).instructions(&mine);
    assert!(appended.ends_with(&catalogue.text()), "{appended}");
    let form = serde_json::to_value(&parts).unwrap();
    assert_eq!(form["parts"][1], serde_json::json!({"kind": "toolCatalogue", "text": "a, b"}));
    assert_eq!(serde_json::from_value::<HostSystem>(form).unwrap(), parts);
}

fn skill(name: &str) -> Skill {
    Skill {
        name: name.to_owned(),
        description: "moves in water".to_owned(),
        file_path: format!("/skills/{name}/SKILL.md"),
        base_dir: format!("/skills/{name}"),
        disable_model_invocation: false,
    }
}

/// Two files of instructions as pi writes them into its prompt.
fn files() -> [InstructionFile; 3] {
    let file = |path: &str, content: &str, layer| InstructionFile {
        path: path.to_owned(),
        content: content.to_owned(),
        layer,
    };
    [
        file("/home/.pi/agent/AGENTS.md", "Speak Latin.\n", InstructionLayer::Global),
        file("/w/AGENTS.md", "# Rules\n\nNo tabs.", InstructionLayer::Project),
        file("/w/AGENTS.override.md", "Tabs after all.", InstructionLayer::Project),
    ]
}

fn plain_context(files: &[&InstructionFile]) -> String {
    let blocks: Vec<String> =
        files.iter().map(|file| format!("## {}\n\n{}\n\n", file.path, file.content)).collect();
    let blocks = blocks.concat();
    format!(
        "Hello.\n\n# Project Context\n\nProject-specific instructions and guidelines:\n\n{blocks}\nCurrent date: today"
    )
}

fn tagged_context(files: &[&InstructionFile]) -> String {
    let blocks: Vec<String> = files
        .iter()
        .map(|file| {
            format!(
                "<project_instructions path=\"{}\">\n{}\n</project_instructions>",
                file.path, file.content
            )
        })
        .collect();
    format!(
        "Hello.\n\n<project_context>\nProject-specific instructions and guidelines:\n\n{}\n</project_context>\n\n<cwd>\n/w\n</cwd>",
        blocks.join("\n\n")
    )
}

#[test]
fn instruction_files_that_the_agent_loads_itself_go_by_layer() {
    let files = files();
    let [global, project, other] = &files;
    for context in [plain_context, tagged_context] {
        let whole = context(&[global, project, other]);
        let shown = |names: &[&str], preserve_instructions| {
            let sources = sources(names);
            let options = SystemOptions {
                instruction_files: &files,
                preserve_instructions,
                ..options(&Profile::PI, &sources)
            };
            HostSystem::Text(whole.clone()).instructions(&options)
        };
        assert_eq!(shown(&[], false), whole, "no sources: the agent loads nothing");
        assert_eq!(shown(&["all"], true), whole, "the opt-out");
        assert_eq!(shown(&["plugins", "team"], false), whole);
        for (names, left) in [
            (&["user"][..], "/w/AGENTS.md"),
            (&["project"], "/home/.pi/agent/AGENTS.md"),
            (&["user", "project"], ""),
        ] {
            let shown = shown(names, false);
            for file in [global, project] {
                assert_eq!(shown.contains(file.content.trim()), file.path == left, "{names:?}\n{shown}");
            }
            assert!(shown.contains("Tabs after all.") && shown.starts_with("Hello."), "{shown}");
            assert!(!shown.contains("\n\n\n\n"), "{shown:?}");
        }
    }
}

#[test]
fn the_section_of_instruction_files_goes_when_it_is_empty() {
    let files = files();
    let all = sources(&["all"]);
    let options = SystemOptions { instruction_files: &files, ..options(&Profile::PI, &all) };
    let shown = |text: String| HostSystem::Text(text).instructions(&options);
    let [global, project, _] = &files;
    assert_eq!(shown(plain_context(&[global, project])), "Hello.\n\nCurrent date: today");
    assert_eq!(shown(tagged_context(&[global, project])), "Hello.\n\n<cwd>\n/w\n</cwd>");
}

#[test]
fn only_an_exact_block_in_its_section_is_removed() {
    let files = files();
    let all = sources(&["all"]);
    let options = SystemOptions { instruction_files: &files, ..options(&Profile::PI, &all) };
    let [global, project, _] = &files;
    for context in [plain_context, tagged_context] {
        let changed = InstructionFile { content: "# Rules\n\nNo tabs!".to_owned(), ..project.clone() };
        let longer =
            InstructionFile { content: "# Rules\n\nNo tabs.\n\nNo spaces.".to_owned(), ..project.clone() };
        let elsewhere = InstructionFile { path: "/x/AGENTS.md".to_owned(), ..project.clone() };
        for file in [changed, longer, elsewhere] {
            let text = context(&[&file]);
            assert_eq!(HostSystem::Text(text.clone()).instructions(&options), text);
        }
        let quoted = context(&[global])
            .replace("Hello.", &format!("## {}\n\n{}\n\nHello.", project.path, project.content));
        let shown = HostSystem::Text(quoted).instructions(&options);
        assert!(
            shown.contains("No tabs.") && !shown.contains("Latin"),
            "a quotation outside of the section stays:\n{shown}"
        );
    }
}

#[test]
fn ends_of_lines_of_another_system_change_nothing() {
    let files = files();
    let all = sources(&["all"]);
    let [global, project, other] = &files;
    let windows = |text: &str| text.replace('\n', "\r\n");
    let files: Vec<InstructionFile> = [global, project]
        .map(|file| InstructionFile { content: windows(&file.content), ..file.clone() })
        .into();
    let options = SystemOptions { instruction_files: &files, ..options(&Profile::PI, &all) };
    for context in [plain_context, tagged_context] {
        let text = windows(&context(&[global, project, other]));
        let shown = HostSystem::Text(text).instructions(&options);
        assert!(!shown.contains("Latin") && !shown.contains("No tabs."), "{shown:?}");
        assert!(shown.contains("Tabs after all.") && shown.starts_with("Hello.\r\n"), "{shown:?}");
        let shown = HostSystem::Text(windows(&context(&[global, project]))).instructions(&options);
        assert!(!shown.contains("Project-specific"), "{shown:?}");
    }
}
