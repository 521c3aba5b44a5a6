//! No name and no link leads out of a skill (failure 52: a skill's name reads any file).

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;

const SECRET: &str = "root:x:0:0";

/// A shelf with a skill `swim`, and a secret beside it.
fn shelf() -> (Shelf, SkillList) {
    let shelf = Shelf::new();
    shelf.write("secret.txt", SECRET);
    shelf.write("outside/SKILL.md", SECRET);
    shelf.write("outside/scripts/secret.sh", SECRET);
    let list = SkillList::read(vec![shelf.skill("swim")]);
    (shelf, list)
}

async fn refused(list: &SkillList, why: &str) {
    let error = error(list, "swim").await;
    assert!(error.contains(why), "{error}");
    assert!(!error.contains(SECRET), "{error}");
}

#[tokio::test]
async fn only_a_listed_name_is_a_name() {
    let (shelf, list) = shelf();
    let absolute = shelf.path("swim").to_str().unwrap().to_owned();
    let file = shelf.path("secret.txt").to_str().unwrap().to_owned();
    let long = "swim".repeat(10_000);
    let names = [
        "../swim",
        "./swim",
        "swim/",
        "swim/.",
        "swim/../swim",
        "swim/SKILL.md",
        "..",
        ".",
        "/",
        "\\swim",
        "..\\swim",
        "Swim",
        "SWIM",
        "swim\0",
        "swim\0.md",
        "\0swim",
        "sw\u{200b}im",
        "\u{feff}swim",
        "ѕwim",
        "ｓｗｉｍ",
        "swım",
        "s\u{301}wim",
        "%73wim",
        "swim%00",
        "swim;ls",
        "$(swim)",
        "~/swim",
        "file:///etc/passwd",
        "/etc/passwd",
        "*",
        "sw?m",
        "outside",
        "secret.txt",
        "constructor",
        "__proto__",
        &absolute,
        &file,
        &long,
    ];
    for name in names {
        let error = activate(&list, &named(name)).await.unwrap_err();
        let SkillError::Unknown { name: echo, available } = &error else { panic!("{name:?}: {error}") };
        assert_eq!(available, "swim");
        assert!(echo.chars().count() < 1_000 && !echo.chars().any(char::is_control), "{echo:?}");
        assert!(!error.to_string().contains(SECRET));
    }
    let given = text(&list, "\t swim\u{a0}").await;
    assert!(given.contains("# swim"), "what surrounds a name is trimmed");
}

proptest::proptest! {
    #[test]
    fn no_text_but_a_listed_name_reads_anything(
        parts in proptest::collection::vec(
            proptest::sample::select(vec!["..", "/", "swim", "\\", "\0", "SKILL.md", " ", "%2e", "~", "Swim", "ѕ", "outside", "."]),
            0..6,
        )
    ) {
        let (_shelf, list) = shelf();
        let name = parts.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(activate(&list, &named(&name)));
        match answer {
            Ok(given) => proptest::prop_assert!(name.trim() == "swim" && given.text.contains("# swim")),
            Err(SkillError::File { .. }) => proptest::prop_assert!(false, "{name:?} reached a file"),
            Err(error) => proptest::prop_assert!(!error.to_string().contains(SECRET)),
        }
    }
}

#[tokio::test]
async fn a_file_that_is_a_link_out_of_the_folder_is_refused() {
    let (shelf, list) = shelf();
    let path = shelf.path("swim/SKILL.md");
    fs::remove_file(&path).unwrap();
    symlink(shelf.path("secret.txt"), &path).unwrap();
    refused(&list, "it leads out of the skill's folder").await;
    fs::remove_file(&path).unwrap();
    symlink("../secret.txt", &path).unwrap();
    refused(&list, "it leads out of the skill's folder").await;
    fs::remove_file(&path).unwrap();
    symlink(&path, &path).unwrap();
    refused(&list, "cannot be read from").await;
    fs::remove_file(&path).unwrap();
    shelf.write("swim/real.md", "# real");
    symlink("real.md", &path).unwrap();
    assert!(text(&list, "swim").await.contains("# real"), "a link within the folder is one's own business");
}

#[tokio::test]
async fn a_folder_that_became_a_link_after_it_was_listed_is_refused() {
    let (shelf, list) = shelf();
    fs::rename(shelf.path("swim"), shelf.path("moved")).unwrap();
    symlink(shelf.path("outside"), shelf.path("swim")).unwrap();
    refused(&list, "its folder is not where it was when the host listed it").await;
    fs::remove_file(shelf.path("swim")).unwrap();
    refused(&list, "No such file").await;
    fs::rename(shelf.path("moved"), shelf.path("swim")).unwrap();
    assert!(text(&list, "swim").await.contains("# swim"));
}

#[tokio::test]
async fn a_folder_that_was_a_link_when_it_was_listed_is_where_it_led_then() {
    let shelf = Shelf::new();
    shelf.write("outside/SKILL.md", SECRET);
    shelf.skill("real");
    symlink(shelf.path("real"), shelf.path("swim")).unwrap();
    let list = SkillList::read(vec![shelf.listed("swim")]);
    assert!(text(&list, "swim").await.contains("# real"));
    fs::remove_file(shelf.path("swim")).unwrap();
    symlink(shelf.path("outside"), shelf.path("swim")).unwrap();
    refused(&list, "its folder is not where it was").await;
}

#[tokio::test]
async fn a_folder_inside_that_is_a_link_out_is_refused() {
    let shelf = Shelf::new();
    shelf.write("outside/SKILL.md", SECRET);
    shelf.write("swim/inner/SKILL.md", "# inner");
    let skill = Skill {
        file_path: shelf.path("swim/inner/SKILL.md").to_str().unwrap().to_owned(),
        ..shelf.listed("swim")
    };
    let list = SkillList::read(vec![skill]);
    assert!(text(&list, "swim").await.contains("# inner"));
    fs::remove_dir_all(shelf.path("swim/inner")).unwrap();
    symlink(shelf.path("outside"), shelf.path("swim/inner")).unwrap();
    refused(&list, "it leads out of the skill's folder").await;
}

#[tokio::test]
async fn a_host_that_lists_a_file_elsewhere_or_no_absolute_path_is_refused() {
    let (shelf, _) = shelf();
    let swim = shelf.listed("swim");
    let elsewhere = shelf.path("secret.txt").to_str().unwrap().to_owned();
    let sibling = shelf.path("swim-2");
    shelf.write("swim-2/SKILL.md", SECRET);
    let files = [
        (elsewhere, "it leads out of the skill's folder"),
        (format!("{}/../secret.txt", swim.base_dir), "it leads out of the skill's folder"),
        (sibling.join("SKILL.md").to_str().unwrap().to_owned(), "it leads out of the skill's folder"),
        ("SKILL.md".to_owned(), "its paths are not absolute"),
        (format!("{}\0", swim.file_path), "cannot be read from"),
    ];
    for (file_path, why) in files {
        refused(&SkillList::read(vec![Skill { file_path, ..swim.clone() }]), why).await;
    }
    for base_dir in ["swim", "", "."] {
        let skill = Skill { base_dir: base_dir.to_owned(), ..swim.clone() };
        refused(&SkillList::read(vec![skill]), "its paths are not absolute").await;
    }
    let absent = Skill { base_dir: shelf.path("absent").to_str().unwrap().to_owned(), ..swim.clone() };
    refused(&SkillList::read(vec![absent]), "No such file").await;
}

#[tokio::test]
async fn special_files_are_never_opened() {
    let (shelf, list) = shelf();
    let path = shelf.path("swim/SKILL.md");
    fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let asked = tokio::time::timeout(Duration::from_secs(20), error(&list, "swim"));
    assert!(
        asked.await.unwrap().contains("it is not a regular file"),
        "a pipe without a writer is not waited for"
    );
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused(&list, "it is not a regular file").await;
    fs::remove_dir(&path).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    refused(&list, "it is not a regular file").await;
}

#[tokio::test]
async fn statement_41_links_pipes_and_other_folders_are_in_no_list_of_resources() {
    let (shelf, list) = shelf();
    shelf.write("swim/scripts/real.sh", "");
    shelf.write("swim/other/x.sh", "");
    symlink(shelf.path("secret.txt"), shelf.path("swim/scripts/file-link")).unwrap();
    symlink(shelf.path("outside"), shelf.path("swim/scripts/folder-link")).unwrap();
    symlink("..", shelf.path("swim/scripts/loop")).unwrap();
    symlink("/nowhere", shelf.path("swim/scripts/broken")).unwrap();
    symlink(shelf.path("outside/scripts"), shelf.path("swim/assets")).unwrap();
    let pipe = shelf.path("swim/scripts/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    shelf.write("swim/references", "a file of that name is no folder");
    let given = text(&list, "swim").await;
    assert_eq!(files(&given), ["scripts/real.sh"]);
    assert!(!given.contains(SECRET));
}

#[tokio::test]
async fn names_of_resources_cannot_begin_a_line_or_an_element() {
    let (shelf, list) = shelf();
    let odd = ["a\nb", "c\u{1b}[31m", "d</resources>", "e\u{202e}gpj", "f \u{200b}"];
    for name in odd {
        shelf.write(&format!("swim/scripts/{name}"), "");
    }
    fs::write(shelf.path("swim/scripts").join(std::ffi::OsStr::from_bytes(b"g\xff")), "").unwrap();
    let given = text(&list, "swim").await;
    let expected = [
        "scripts/a\\u{a}b",
        "scripts/c\\u{1b}[31m",
        "scripts/d&lt;/resources&gt;",
        "scripts/e\\u{202e}gpj",
        "scripts/f \\u{200b}",
        "scripts/g\\xff",
    ];
    assert_eq!(files(&given), expected);
    assert_eq!(given.matches("</resources>").count(), 1);
}

#[tokio::test]
async fn folders_that_cannot_be_read_are_passed_over() {
    use std::os::unix::fs::PermissionsExt as _;

    let (shelf, list) = shelf();
    shelf.write("swim/scripts/closed/x.sh", "");
    shelf.write("swim/scripts/open.sh", "");
    let closed = shelf.path("swim/scripts/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let is_closed = fs::read_dir(&closed).is_err();
    let given = text(&list, "swim").await;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let expected: &[&str] =
        if is_closed { &["scripts/open.sh"] } else { &["scripts/closed/x.sh", "scripts/open.sh"] };
    assert_eq!(files(&given), expected);
}
