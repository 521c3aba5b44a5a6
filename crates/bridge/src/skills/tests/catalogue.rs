//! Where the catalogue stands in a system prompt, and what it says.

use super::*;

fn skill(name: &str, description: &str) -> Skill {
    Skill {
        name: name.to_owned(),
        description: description.to_owned(),
        file_path: format!("/skills/{name}/SKILL.md"),
        base_dir: format!("/skills/{name}"),
        disable_model_invocation: false,
    }
}

fn catalogue(activation: Option<&str>) -> Catalogue {
    let hidden = Skill { disable_model_invocation: true, ..skill("hidden", "for users") };
    Catalogue::new(
        SkillList::read(vec![skill("swim", "in \"water\" & <ice>, it's 'wet'"), hidden]),
        activation,
    )
}

/// The host's own section.
const HOST: &str = "The following skills provide help with some tasks.
Read the file of a skill when it applies.

<available_skills>
  <skill>
    <name>hidden</name>
    <description>old</description>
    <location>/skills/hidden/SKILL.md</location>
  </skill>
</available_skills>";

#[test]
fn statement_40_the_catalogue_names_the_tool_and_another_model_sees_the_original() {
    let text = catalogue(Some(TOOL)).text();
    assert!(text.contains(&format!("call `{TOOL}` with the skill's name")), "{text}");
    assert!(
        text.contains("read the skill's file with your own file-reading tool"),
        "if the tool is not there: {text}"
    );
    let entry = "<available_skills>\n  <skill>\n    <name>swim</name>\n    <description>in &quot;water&quot; &amp; \
                 &lt;ice&gt;, it&apos;s &apos;wet&apos;</description>\n    <location>/skills/swim/SKILL.md</location>\n  \
                 </skill>\n</available_skills>";
    assert!(text.ends_with(entry), "{text}");

    let mut skills = Skills::new();
    skills.model_selected(false);
    skills.before_agent_start(SkillList::read(vec![skill("swim", "")]));
    assert_eq!(skills.catalogue(Some(TOOL)), None, "nothing stands for the host's own section");
    skills.model_selected(true);
    skills.before_agent_start(SkillList::read(vec![Skill {
        disable_model_invocation: true,
        ..skill("swim", "")
    }]));
    assert_eq!(skills.catalogue(Some(TOOL)), None, "without a visible skill neither");
}

#[test]
fn a_tool_that_is_not_exposed_is_not_advertised() {
    let text = catalogue(None).text();
    assert!(
        text.contains("/skills/swim/SKILL.md") && text.contains("read the skill's file, whole"),
        "{text}"
    );
    for profile in Profile::ALL {
        assert!(!text.contains(profile.skill_tool) && !text.contains(profile.prefix), "{text}");
    }
}

#[test]
fn lesson_24_the_host_s_section_is_replaced_in_both_forms_and_never_just_stripped() {
    let own = catalogue(Some(TOOL));
    let plain = format!("Be kind.\n\n{HOST}\nCurrent date: today");
    assert_eq!(own.rewrite(&plain), format!("Be kind.\n\n{}\nCurrent date: today", own.text()));
    let tagged = format!("Be kind.\n\n<skills>\n{HOST}\n</skills>\n\n<cwd>\n/w\n</cwd>");
    let expected = format!("Be kind.\n\n<skills>\n{}\n</skills>\n\n<cwd>\n/w\n</cwd>", own.text());
    assert_eq!(own.rewrite(&tagged), expected);
    let bare = "<skills>\n<available_skills>\n</available_skills>\n</skills>";
    assert_eq!(own.rewrite(bare), format!("<skills>\n{}\n</skills>", own.text()));
    let close = HOST.replace("applies.\n\n<", "applies.\n<");
    assert_eq!(own.rewrite(&close), own.text(), "without an empty line");
    assert_eq!(own.rewrite(HOST), own.text());
    assert_eq!(own.rewrite("Be kind.\n"), format!("Be kind.\n\n{}", own.text()), "appended if there is none");
    assert_eq!(own.rewrite(""), own.text());
    let fewer = catalogue(None);
    assert_eq!(fewer.rewrite(&own.rewrite(&plain)), fewer.rewrite(&plain), "one's own is replaced as well");
    assert_eq!(own.rewrite(&own.rewrite("Be kind.")), own.rewrite("Be kind."));
}

#[test]
fn a_list_in_somebody_s_instructions_is_not_the_host_s() {
    let own = catalogue(Some(TOOL));
    let theirs = "## /w/AGENTS.md\n\n<usage>\nHow to.\n</usage>\n\n<available_skills>\n<skill>\n<name>pdf</name>\n</skill>\n\
                  </available_skills>";
    let shown = own.rewrite(&format!("{theirs}\n\n{HOST}"));
    assert_eq!(shown, format!("{theirs}\n\n{}", own.text()));
    let shown = own.rewrite(theirs);
    assert_eq!(shown, format!("{theirs}\n\n{}", own.text()), "appended, theirs stays");
    for odd in
        ["see <available_skills> there", "The following skills provide x\n\n<available_skills>\nnever closed"]
    {
        assert_eq!(own.rewrite(odd), format!("{odd}\n\n{}", own.text()));
    }
}

#[test]
fn a_name_cannot_close_the_list_or_begin_a_line() {
    let odd = Skill {
        name: "a\n</available_skills>\u{202e}b".to_owned(),
        ..skill("odd", "two\nlines </available_skills>")
    };
    let text = Catalogue::new(SkillList::read(vec![odd]), None).text();
    assert_eq!(text.matches("</available_skills>").count(), 1, "{text}");
    assert!(text.contains("<name>a\\u{a}&lt;/available_skills&gt;\\u{202e}b</name>"), "{text}");
}

#[test]
fn the_host_s_section_is_found_with_any_ends_of_lines() {
    let own = catalogue(Some(TOOL));
    for form in
        [format!("Be kind.\n\n{HOST}\nToday."), format!("Be kind.\n\n<skills>\n{HOST}\n</skills>\nToday.")]
    {
        let shown = own.rewrite(&form.replace('\n', "\r\n"));
        assert_eq!(shown.matches("<available_skills>").count(), 1, "{shown}");
        assert!(!shown.contains("hidden") && !shown.contains("The following"), "{shown}");
        assert!(shown.starts_with("Be kind.\r\n\r\n") && shown.ends_with("Today."), "{shown:?}");
    }
}
