//! Skills: the catalogue, when the tool counts, what activation gives and refuses.

mod catalogue;
#[cfg(unix)]
mod escapes;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;

const TOOL: &str = "pi__cursor_activate_skill";

/// A folder of skills on disk.
struct Shelf {
    folder: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(inside)
    }

    fn write(&self, inside: &str, text: impl AsRef<[u8]>) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A skill as a host lists it; its file exists.
    fn skill(&self, name: &str) -> Skill {
        let skill = self.listed(name);
        if !Path::new(&skill.file_path).exists() {
            self.write(
                &format!("{name}/SKILL.md"),
                format!("---\nname: {name}\n---\n# {name}\n\nDo it.\n\n"),
            );
        }
        skill
    }

    fn listed(&self, name: &str) -> Skill {
        let folder = self.path(name);
        Skill {
            name: name.to_owned(),
            description: format!("How to {name}"),
            file_path: folder.join("SKILL.md").to_str().unwrap().to_owned(),
            base_dir: folder.to_str().unwrap().to_owned(),
            disable_model_invocation: false,
        }
    }
}

fn named(name: &str) -> RawJson {
    RawJson::of(&json!({ "name": name }))
}

async fn text(list: &SkillList, name: &str) -> String {
    activate(list, &named(name)).await.unwrap().text
}

async fn error(list: &SkillList, name: &str) -> String {
    activate(list, &named(name)).await.unwrap_err().to_string()
}

/// The files that a result lists.
fn files(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("  <file>")?.strip_suffix("</file>")).collect()
}

#[tokio::test]
async fn statement_41_activation_gives_the_whole_file_the_folder_and_the_resources() {
    let shelf = Shelf::new();
    let skill = shelf.skill("swim");
    shelf.write("swim/scripts/b.sh", "contents unread");
    shelf.write("swim/scripts/a/z.sh", "");
    shelf.write("swim/references/deep/er/map.md", "");
    shelf.write("swim/assets/fish & chips.png", "");
    shelf.write("swim/elsewhere/hidden.md", "");
    shelf.write("swim/top.md", "");
    let list = SkillList::load(vec![skill.clone(), shelf.skill("dive")]).await;
    let given = activate(&list, &named("  swim\n")).await.unwrap();
    let expected = format!(
        "<skill name=\"swim\">\n<instructions>\n---\nname: swim\n---\n# swim\n\nDo it.\n</instructions>\n\
         <directory>{}</directory>\nRelative paths in this skill refer to that directory; write them as absolute paths \
         in tool calls.\n<resources>\n  <file>scripts/a/z.sh</file>\n  <file>scripts/b.sh</file>\n  \
         <file>references/deep/er/map.md</file>\n  <file>assets/fish &amp; chips.png</file>\n</resources>\n</skill>",
        skill.base_dir
    );
    assert_eq!(given.text, expected);
    assert_eq!(
        given.details,
        ActivationDetails {
            name: "swim".to_owned(),
            file_path: skill.file_path,
            base_dir: skill.base_dir,
            resources: [
                "scripts/a/z.sh",
                "scripts/b.sh",
                "references/deep/er/map.md",
                "assets/fish & chips.png"
            ]
            .map(str::to_owned)
            .to_vec(),
            available_skill_names: vec!["dive".to_owned(), "swim".to_owned()],
        }
    );
    let none = text(&list, "dive").await;
    assert!(none.contains("\n<resources/>\n"), "an empty element:\n{none}");
    assert!(!given.result().is_error);
}

#[tokio::test]
async fn statement_41_of_a_hundred_files_eighty_are_listed_and_the_list_says_so() {
    let shelf = Shelf::new();
    let skill = shelf.skill("swim");
    for number in 0..50 {
        shelf.write(&format!("swim/scripts/{number:02}.sh"), "");
        shelf.write(&format!("swim/assets/{number:02}.png"), "");
    }
    let list = SkillList::read(vec![skill]);
    let given = text(&list, "swim").await;
    assert_eq!(files(&given).len(), 80);
    assert_eq!(files(&given).last(), Some(&"assets/29.png"));
    assert!(given.contains("[list cut at 80: there are more files]"), "{given}");
    for number in 30..50 {
        fs::remove_file(shelf.path(&format!("swim/assets/{number}.png"))).unwrap();
    }
    let given = text(&list, "swim").await;
    assert_eq!((files(&given).len(), given.contains("list cut")), (80, false), "exactly 80 are all");
}

#[tokio::test]
async fn folders_are_looked_into_eight_levels_deep() {
    let shelf = Shelf::new();
    let skill = shelf.skill("swim");
    shelf.write("swim/scripts/2/3/4/5/6/7/8/in.sh", "");
    let list = SkillList::read(vec![skill]);
    let given = text(&list, "swim").await;
    assert_eq!(files(&given), ["scripts/2/3/4/5/6/7/8/in.sh"]);
    assert!(!given.contains("levels down"));
    shelf.write("swim/scripts/2/3/4/5/6/7/8/9/out.sh", "");
    let given = text(&list, "swim").await;
    assert_eq!(files(&given), ["scripts/2/3/4/5/6/7/8/in.sh"]);
    assert!(given.contains("[folders more than 8 levels down are not listed]"), "{given}");
}

#[tokio::test]
async fn a_file_beyond_a_mebibyte_is_cut_between_characters_and_says_how_to_read_on() {
    let shelf = Shelf::new();
    let skill = shelf.skill("swim");
    let list = SkillList::read(vec![skill.clone()]);
    let limit = 1024 * 1024;
    for (unit, shown) in [("a", limit), ("é", limit), ("語", limit - 1), ("🦀", limit)] {
        let begin = "first line\nsecond 12345\n";
        let room = limit - begin.len();
        let body = format!("{begin}{}", unit.repeat(room / unit.len() + 1));
        fs::write(&skill.file_path, &body).unwrap();
        let given = text(&list, "swim").await;
        let shown = if unit == "語" { shown } else { begin.len() + room / unit.len() * unit.len() };
        let whole = body.len();
        let path = &skill.file_path;
        let notice = format!(
            "[cut: the first {shown} of {whole} bytes, up to line 3; for the rest read {path} from that line on"
        );
        assert!(given.contains(&notice), "{unit}: {}", given.rsplit("[cut").next().unwrap());
        assert!(!given.contains('\u{fffd}'), "{unit}");
        assert!(given.contains(body.get(..shown).unwrap()));
    }
    fs::write(&skill.file_path, "a".repeat(limit)).unwrap();
    let given = text(&list, "swim").await;
    assert!(!given.contains("[cut") && given.len() > limit, "a mebibyte is whole");
}

#[tokio::test]
async fn odd_bytes_are_no_reason_to_refuse_a_file() {
    let shelf = Shelf::new();
    let skill = shelf.skill("swim");
    let list = SkillList::read(vec![skill.clone()]);
    fs::write(&skill.file_path, b"\xef\xbb\xbf \n# caf\xe9\n\n").unwrap();
    assert!(text(&list, "swim").await.contains("<instructions>\n# caf\u{fffd}\n</instructions>"));
    fs::write(&skill.file_path, b"").unwrap();
    assert!(text(&list, "swim").await.contains("<instructions>\n\n</instructions>"));
}

#[tokio::test]
async fn statement_42_an_unknown_name_lists_the_names_and_a_path_is_an_unknown_name() {
    let shelf = Shelf::new();
    let list = SkillList::read(vec![shelf.skill("swim"), shelf.skill("dive"), shelf.skill("x")]);
    assert_eq!(error(&list, "fly").await, "no skill is called \"fly\"; available: dive, swim, x");
    assert_eq!(error(&list, "../x").await, "no skill is called \"../x\"; available: dive, swim, x");
    assert_eq!(error(&SkillList::default(), "x").await, "no skill is called \"x\"; available: none");
    for arguments in
        ["{}", "{\"name\":\"\"}", "{\"name\":\" \\n\"}", "{\"name\":5}", "{\"name\":null}", "[]", "\"x\""]
    {
        let arguments = RawJson::new(arguments).unwrap();
        let error = activate(&list, &arguments).await.unwrap_err();
        assert!(matches!(error, SkillError::NoName { .. }), "{arguments:?}: {error}");
        assert_eq!(error.to_string(), "the name of a skill is missing; available: dive, swim, x");
    }
}

#[tokio::test]
async fn lesson_25_an_error_is_an_error_and_not_a_text_that_succeeds() {
    let shelf = Shelf::new();
    let gone = shelf.skill("gone");
    let list = SkillList::read(vec![gone.clone()]);
    fs::remove_file(&gone.file_path).unwrap();
    for arguments in [named("fly"), named("gone"), RawJson::empty_object()] {
        let result = activate(&list, &arguments).await.unwrap_err().result();
        assert!(result.is_error);
    }
    let error = error(&list, "gone").await;
    assert!(
        error.starts_with(&format!("the skill \"gone\" cannot be read from {}: ", gone.file_path)),
        "{error}"
    );
    assert!(error.contains("No such file"), "{error}");
}

#[tokio::test]
async fn statement_40_hidden_skills_are_in_no_list() {
    let shelf = Shelf::new();
    let hidden = Skill { disable_model_invocation: true, ..shelf.skill("hidden") };
    let list = SkillList::read(vec![hidden, shelf.skill("swim")]);
    assert_eq!(list.names(), ["swim"]);
    assert_eq!(error(&list, "hidden").await, "no skill is called \"hidden\"; available: swim");
    let catalogue = Catalogue::new(list, Some(TOOL)).text();
    assert!(catalogue.contains("swim") && !catalogue.contains("hidden"));
}

#[tokio::test]
async fn of_two_skills_with_one_name_the_first_counts() {
    let shelf = Shelf::new();
    let first = shelf.skill("swim");
    let second = Skill { name: "swim".to_owned(), ..shelf.skill("other") };
    let list = SkillList::read(vec![first.clone(), second]);
    assert_eq!(list.iter().collect::<Vec<_>>(), [&first]);
    assert!(text(&list, "swim").await.contains("# swim"));
}

#[test]
fn a_hidden_skill_hides_its_name() {
    let shelf = Shelf::new();
    let hidden = Skill { disable_model_invocation: true, ..shelf.skill("swim") };
    let list = SkillList::read(vec![hidden, shelf.skill("swim"), shelf.skill("run")]);
    assert_eq!(list.names(), ["run"], "a second one of that name is not the host's");
}

#[test]
fn statement_43_the_tool_is_active_only_with_skills_a_bridge_and_the_agent_s_model() {
    let all = ToolConditions {
        host_has_active_tools: true,
        is_agent_model: true,
        bridge_enabled: true,
        has_visible_skill: true,
    };
    assert!(is_tool_active(all));
    for missing in [
        ToolConditions { host_has_active_tools: false, ..all },
        ToolConditions { is_agent_model: false, ..all },
        ToolConditions { bridge_enabled: false, ..all },
        ToolConditions { has_visible_skill: false, ..all },
    ] {
        assert!(!is_tool_active(missing), "{missing:?}");
    }
    let shelf = Shelf::new();
    let mut skills = Skills::new();
    skills.model_selected(true);
    skills.before_agent_start(SkillList::read(vec![shelf.skill("swim")]));
    assert!(skills.is_tool_active(true, true) && !skills.is_tool_active(false, true));
    let catalogue = skills.catalogue(None).unwrap().text();
    let path = shelf.path("swim/SKILL.md");
    assert!(catalogue.contains(&format!("<location>{}</location>", path.display())), "{catalogue}");
    assert!(catalogue.contains("read the skill's file") && !catalogue.contains("call `"), "{catalogue}");
}

#[test]
fn a_list_lives_from_one_start_of_the_agent_to_the_next_session_or_model() {
    let shelf = Shelf::new();
    let list = SkillList::read(vec![shelf.skill("swim")]);
    let mut skills = Skills::new();
    skills.before_agent_start(list.clone());
    assert!(!skills.is_tool_active(true, true), "no model of the agent yet");
    assert_eq!(skills.catalogue(Some(TOOL)), None);
    skills.model_selected(true);
    assert!(skills.list().is_empty() && !skills.is_tool_active(true, true), "another model, another list");
    skills.before_agent_start(list.clone());
    assert!(skills.is_tool_active(true, true), "and so it stays while turns start");
    let mut child = Skills::new();
    child.model_selected(true);
    assert!(
        !child.is_tool_active(true, true) && skills.is_tool_active(true, true),
        "each session has its own"
    );
    skills.session_started();
    assert!(skills.list().is_empty());
    skills.before_agent_start(list.clone());
    assert!(skills.is_tool_active(true, true), "a new session keeps the model");
    skills.model_selected(false);
    skills.before_agent_start(list);
    assert!(!skills.is_tool_active(true, true) && skills.catalogue(Some(TOOL)).is_none());
}

#[test]
fn the_tool_takes_a_name_and_nothing_else() {
    for profile in Profile::ALL {
        let tool = skill_tool(&profile);
        assert_eq!(tool.name, profile.skill_tool);
        let schema = tool.parameters.tree();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["name"]));
        assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["name"]);
        assert_eq!(schema["properties"]["name"]["type"], "string");
    }
}
