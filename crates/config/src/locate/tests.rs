use super::*;
use crate::environment::Platform;

fn environment(home: &Path, cwd: &Path, team: Option<&str>) -> Environment {
    let mut vars =
        std::collections::BTreeMap::from([("HOME".to_owned(), home.to_string_lossy().into_owned())]);
    if let Some(team) = team {
        vars.insert(TEAM.to_owned(), team.to_owned());
    }
    Environment::new(vars, cwd.to_path_buf(), Platform::Linux)
}

#[test]
fn the_project_is_the_top_of_its_repository() {
    let dir = tempfile::tempdir().unwrap();
    let nested = dir.path().join("a/b");
    std::fs::create_dir_all(&nested).unwrap();
    assert_eq!(project_root(&nested), nested);
    std::fs::write(dir.path().join("a/.git"), "gitdir: elsewhere").unwrap();
    assert_eq!(project_root(&nested), dir.path().join("a"));
}

#[test]
fn each_source_has_its_files_in_their_order() {
    let environment = environment(Path::new("/h"), Path::new("/w/sub"), Some("~/team.json"));
    let paths = |source| -> Vec<String> {
        let files = files_of(source, Path::new("/w"), &environment);
        files.into_iter().map(|file| file.path.to_string_lossy().into_owned()).collect()
    };
    assert_eq!(
        paths(SettingSource::Project),
        ["/w/.toolway/mcp.json", "/w/toolway.json", "/w/.cursor/mcp.json", "/w/.mcp.json"]
    );
    assert_eq!(paths(SettingSource::User), ["/h/.config/toolway/mcp.json", "/h/.cursor/mcp.json"]);
    assert_eq!(paths(SettingSource::Team), ["/h/team.json"]);
    assert_eq!(paths(SettingSource::Mdm), ["/etc/toolway/mcp.json"]);
}

#[test]
fn a_team_may_have_an_address() {
    let environment = environment(Path::new("/h"), Path::new("/w"), Some("https://h/team.json"));
    assert_eq!(team_url(&environment), Some("https://h/team.json"));
    assert!(files_of(SettingSource::Team, Path::new("/w"), &environment).is_empty());
}

#[test]
fn a_named_file_has_the_conventions_of_its_place() {
    let environment = environment(Path::new("/h"), Path::new("/w"), None);
    for (path, dialect) in [
        ("x.json", Dialect::Toolway),
        ("~/.cursor/mcp.json", Dialect::Cursor),
        ("/p/.mcp.json", Dialect::ClaudeCode),
        (".vscode/mcp.json", Dialect::VsCode),
        ("~/.codex/config.toml", Dialect::Codex),
        ("~/.config/goose/config.yaml", Dialect::Goose),
    ] {
        let named = named_file(Path::new(path), Path::new("/w"), &environment);
        assert!(named.path.is_absolute() && named.dialect == dialect, "{named:?}");
    }
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_circles_are_told() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("file"), "").unwrap();
    symlink(at("file"), at("link")).unwrap();
    symlink(at("b"), at("a")).unwrap();
    symlink(at("a"), at("b")).unwrap();
    symlink(at("none"), at("broken")).unwrap();
    assert_eq!(find(&at("link")).unwrap(), find(&at("file")).unwrap());
    assert_eq!(find(&at("none")).unwrap(), Found::Absent);
    assert_eq!(find(&at("file/below")).unwrap(), Found::Absent);
    assert_eq!(find(&at("a")).unwrap_err().hint.as_deref(), Some("its links lead in a circle"));
    assert_eq!(find(&at("broken")).unwrap_err().message, "is a link that leads nowhere");
}
