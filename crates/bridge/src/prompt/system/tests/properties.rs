//! Whatever a system prompt looks like, nothing is added to it, nothing moves, and no line of one's own goes.

use proptest::prelude::*;

use super::*;

/// Lines that look like those of pi, and lines that do not.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let marks = prop::sample::select(vec![
        "",
        "",
        "",
        "Available tools:",
        "(none)",
        "- read: Looks into files",
        "In addition to the tools above, others may exist.",
        "Guidelines:",
        "- Be brief",
        "  even on Sundays",
        "Pi documentation (only for pi):",
        "<tools>",
        "</tools>",
        "<rules>",
        "</rules>",
        "<docs>",
        "</docs>",
        "<cwd>",
        "# Project Context",
        "<project_context>",
        "Project-specific instructions and guidelines:",
        "## /w/AGENTS.md",
        "No tabs.",
        "</project_context>",
        "<skills>",
        "The following skills provide help.",
        "<available_skills>",
        "</available_skills>",
    ]);
    prop::collection::vec(
        prop_oneof![8 => marks.prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => "own [a-z]{3}"],
        0..40,
    )
}

/// The lines with a text, in order.
fn texts(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 2))]

    #[test]
    fn lines_are_kept_in_order_and_only_known_ones_go(lines in lines()) {
        let text = lines.join("\n");
        let files = [InstructionFile {
            path: "/w/AGENTS.md".to_owned(), content: "No tabs.".to_owned(), layer: InstructionLayer::Project,
        }];
        let all = sources(&["all"]);
        let options = SystemOptions { instruction_files: &files, ..options(&Profile::PI, &all) };
        let shown = HostSystem::Text(text.clone()).instructions(&options);
        let mut before = texts(&text).into_iter();
        for line in texts(&shown) {
            prop_assert!(before.any(|other| other == line), "{line:?} is new or moved:\n{text}\n---\n{shown}");
        }
        // Lines go on with a tool or a rule of pi's only where there are such.
        let is_pi_s = |line: &&str| matches!(*line, "Available tools:" | "Guidelines:" | "<rules>");
        let own = |text: &str| texts(text).into_iter().filter(|line| line.starts_with("own ")).count();
        if !texts(&text).iter().any(is_pi_s) {
            prop_assert_eq!(own(&text), own(&shown), "{}\n---\n{}", text, shown);
        }
        let foreign = HostSystem::Text(text.clone()).instructions(&SystemOptions { profile: &Profile::HOST, ..options });
        prop_assert!(texts(&foreign).len() >= texts(&shown).len());
    }

    #[test]
    fn a_catalogue_is_there_once_whatever_is_around_it(lines in lines()) {
        let catalogue = Catalogue::new(SkillList::read(vec![skill("swim")]), Some("pi__cursor_activate_skill"));
        let text = lines.join("\n");
        let once = catalogue.rewrite(&text);
        prop_assert_eq!(once.matches(&catalogue.text()).count(), 1);
        prop_assert_eq!(catalogue.rewrite(&once), once);
    }
}
