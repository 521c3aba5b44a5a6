use super::*;
use crate::definition::Content;
use crate::environment::Platform;

struct Home(tempfile::TempDir);

impl Home {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(dir)
    }

    fn read(&self) -> Plugins {
        let home = self.0.path().to_string_lossy().into_owned();
        let vars = std::collections::BTreeMap::from([("HOME".to_owned(), home)]);
        let root = self.0.path().join("project");
        read(&root, &Environment::new(vars, root.clone(), Platform::Linux))
    }
}

fn names(plugins: &Plugins) -> Vec<&str> {
    plugins.files.iter().flat_map(|file| &file.entries).map(|entry| entry.name.as_str()).collect()
}

const ONE: &str = r#"{"one": {"command": "x", "args": ["${CURSOR_PLUGIN_ROOT}/s.js"]}}"#;

#[test]
fn servers_come_from_manifest_and_files_beside_it() {
    let home = Home::new(&[
        (
            ".cursor/plugins/local/a/.cursor-plugin/plugin.json",
            r#"{"name": "acme", "mcpServers": ["./own.json", {"three": {"url": "http://h"}}]}"#,
        ),
        (".cursor/plugins/local/a/own.json", r#"{"mcpServers": {"two": {"command": "y"}}}"#),
        (".cursor/plugins/local/a/.mcp.json", ONE),
        (".cursor/plugins/local/b/mcp.json", ONE),
        (".cursor/plugins/local/empty/readme", ""),
    ]);
    let plugins = home.read();
    assert_eq!(plugins.problems, []);
    assert_eq!(names(&plugins), ["plugin-acme-two", "plugin-acme-three", "plugin-acme-one", "plugin-b-one"]);
    assert!(
        plugins
            .files
            .iter()
            .flat_map(|f| &f.entries)
            .all(|e| matches!(e.read.content, Content::Definition(_)))
    );
}

#[test]
fn a_manifest_reaches_nothing_outside_of_its_plugin() {
    for path in
        ["/etc/x.json", "../b/mcp.json", "a/../../b/mcp.json", "file:///x", "C:\\\\x", "none.json", ""]
    {
        let manifest = format!(r#"{{"name": "a", "mcpServers": "{path}"}}"#);
        let home = Home::new(&[
            (".cursor/plugins/local/a/plugin.json", &manifest),
            (".cursor/plugins/local/b/mcp.json", "{}"),
        ]);
        let plugins = home.read();
        let told: Vec<_> = plugins.problems.iter().filter(|problem| problem.is_error()).collect();
        assert_eq!(told.len(), 1, "{path}: {told:?}");
        assert_eq!(told[0].at.unwrap().line, 1);
    }
}

#[cfg(unix)]
#[test]
fn links_stay_inside() {
    use std::os::unix::fs::symlink;
    let home = Home::new(&[
        ("other/mcp.json", ONE),
        (".cursor/plugins/local/a/plugin.json", r#"{"mcpServers": "s.json"}"#),
    ]);
    let local = home.0.path().join(".cursor/plugins/local");
    symlink(home.0.path().join("other"), local.join("out")).unwrap();
    symlink(home.0.path().join("other/mcp.json"), local.join("a/s.json")).unwrap();
    symlink(home.0.path().join("other/mcp.json"), local.join("a/mcp.json")).unwrap();
    let plugins = home.read();
    assert_eq!(names(&plugins), [""; 0]);
    assert_eq!(plugins.problems.len(), 3, "{:?}", plugins.problems);
}

#[test]
fn a_marketplace_brings_what_settings_enable() {
    let home = Home::new(&[
        (".cursor/plugins/marketplaces/m/plugins/p/mcp.json", ONE),
        (".cursor/plugins/marketplaces/m/q/mcp.json", ONE),
        (".cursor/plugins/marketplaces/m/r/mcp.json", ONE),
        (".cursor/settings.json", r#"{"enabledPlugins": {"p@m": true, "q@m": true, "../r": true}}"#),
        ("project/.cursor/settings.json", r#"{"enabledPlugins": {"q@m": false, "gone@m": true}}"#),
    ]);
    let plugins = home.read();
    assert_eq!(names(&plugins), ["plugin-p-one"]);
    let told: Vec<_> = plugins.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "the plugin \"gone@m\" is enabled, and not installed",
            "the plugin \"../r\" is enabled, and not installed"
        ]
    );
}
