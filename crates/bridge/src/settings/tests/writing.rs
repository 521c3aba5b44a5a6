//! Tests of writing.

use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::*;
use crate::error::BridgeError;
use crate::json::RawJson;

fn set(path: &str, value: &str) -> SettingChange {
    SettingChange::set(&SettingChange::keys(path), RawJson::new(value.to_owned()).unwrap()).unwrap()
}

fn remove(path: &str) -> SettingChange {
    SettingChange::remove(&SettingChange::keys(path))
}

fn refused(path: &[&str], value: &str) -> String {
    SettingChange::set(path, RawJson::new(value.to_owned()).unwrap()).unwrap_err().to_string()
}

async fn write(path: &Path, changes: &[SettingChange]) {
    Settings::write(path, changes).await.unwrap();
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_setting_that_nobody_would_read_is_refused() {
    for (path, value, why) in [
        (&["tools", "bridge", "enabled"][..], "1", "tools.bridge.enabled: is neither true nor false"),
        (&["tools", "bridge", "exposed"], "1", "tools.bridge.exposed: is unknown"),
        (&["tools", "bridge", "callTimeoutMs"], "1e400", "tools.bridge.callTimeoutMs: is no finite number"),
        (
            &["tools", "bridge", "exclude"],
            "[1]",
            "tools.bridge.exclude: has 1 values that are no texts, which are left out",
        ),
        (&["tools"], "[]", "tools: is no object, so that everything in it has its default"),
        (&["local", "transport"], "\"http2\"", "local.transport: is none of default, http1"),
        (&["tools", "bridge"], "{}", "tools.bridge: is a group of settings, not one of them"),
        (&["models", "cache"], "{\"enabled\":true}", "models.cache: is a group of settings, not one of them"),
        (&["tools"], "{ }", "tools: is a group of settings, not one of them"),
        (&[], "{}", "it has no key"),
    ] {
        assert_eq!(refused(path, value), format!("the setting cannot be written: {why}"));
    }
}

#[test]
fn a_model_may_have_points_in_its_name() {
    assert_eq!(SettingChange::keys("tools.bridge.enabled"), ["tools", "bridge", "enabled"]);
    assert_eq!(SettingChange::keys("models.fastDefaults.gpt-4.1"), ["models", "fastDefaults", "gpt-4.1"]);
    assert_eq!(SettingChange::keys("models.fastDefaults"), ["models", "fastDefaults"]);
}

#[tokio::test]
async fn a_new_file_is_private_and_readable() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a/b/s.json");
    write(&path, &[set("tools.bridge.enabled", "false"), set("models.fastDefaults.m.1", "true")]).await;
    let text = fs::read_to_string(&path).unwrap();
    let expected = "{\n  \"tools\": {\n    \"bridge\": {\n      \"enabled\": false\n    }\n  },\n  \"models\": {\n    \
                    \"fastDefaults\": {\n      \"m.1\": true\n    }\n  }\n}\n";
    assert_eq!(text, expected);
    let (settings, warnings) = Settings::read(&path);
    assert!(!settings.tools.bridge.enabled && settings.models.fast_defaults["m.1"]);
    assert_eq!(warnings, []);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[tokio::test]
async fn what_changes_nothing_makes_no_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    write(&path, &[remove("tools.bridge.enabled")]).await;
    write(&path, &[]).await;
    assert_eq!(names(&folder), Vec::<String>::new());
    // A file that is written the way this one writes has its time as before, too.
    write(&path, &[set("local.sandbox", "true")]).await;
    let written = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let before = written(&path);
    write(&path, &[set("local.sandbox", "true"), remove("local.resume")]).await;
    assert_eq!(written(&path), before);
}

#[tokio::test]
async fn statement_49_what_nobody_knows_survives_byte_for_byte() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    let before = "{\n    \"zzz\": {\"big\": 9007199254740993123, \"huge\": 1e400,   \"s\": \"\\u00e9\"},\n    \"tools\": {\n        \
                  \"future\": [1,\n  2],\n        \"manifest\": true,\n        \"bridge\": {\"enabled\": true, \"x\": 1}\n    },\n    \
                  \"last\": null\n}\n";
    fs::write(&path, before).unwrap();
    write(&path, &[set("tools.manifest", "false")]).await;
    let expected = before.replace("\"manifest\": true", "\"manifest\": false");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    write(
        &path,
        &[set("tools.bridge.exclude", r#"["a"]"#), remove("tools.bridge.enabled"), remove("local.sandbox")],
    )
    .await;
    let expected = expected.replace(
        "{\"enabled\": true, \"x\": 1}",
        "{\n            \"x\": 1,\n            \"exclude\": [\"a\"]\n        }",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(names(&folder), ["s.json"]);
}

#[tokio::test]
async fn ends_of_lines_and_the_mark_before_the_text_stay() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    let before =
        "\u{feff}{\r\n  \"mine\": [1,\r\n 2],\r\n  \"tools\": {\r\n    \"manifest\": true\r\n  }\r\n}\r\n";
    fs::write(&path, before).unwrap();
    write(&path, &[set("tools.manifest", "false"), set("local.sandbox", "true")]).await;
    let expected = before
        .replace("true\r\n  }\r\n", "false\r\n  },\r\n  \"local\": {\r\n    \"sandbox\": true\r\n  }\r\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    write(&path, &[set("tools.manifest", "false")]).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[tokio::test]
async fn statement_49_a_malformed_file_is_an_error_and_stays() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    let change = [set("tools.bridge.enabled", "false")];
    for (content, why) in [
        ("{\"token\": \"sk-hidden\"", "is not well-formed JSON"),
        ("", "is not well-formed JSON"),
        ("[\"sk-hidden\"]", "holds no JSON object"),
        ("{\"tools\": \"sk-hidden\"}", "has no object in tools"),
        ("{\"tools\": {\"bridge\": [\"sk-hidden\"]}}", "has no object in tools.bridge"),
    ] {
        fs::write(&path, content).unwrap();
        let error = Settings::write(&path, &change).await.unwrap_err().to_string();
        assert_eq!(error, format!("the settings file {} {why}: nothing was written", path.display()));
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(names(&folder), ["s.json"]);
    }
    // All changes or none.
    fs::write(&path, "{\"local\": 5}").unwrap();
    let both = [change[0].clone(), set("local.sandbox", "true")];
    assert!(Settings::write(&path, &both).await.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"local\": 5}");
    fs::write(&path, " ".repeat(2_000_000)).unwrap();
    assert!(
        Settings::write(&path, &change)
            .await
            .unwrap_err()
            .to_string()
            .contains("is larger than 1048576 bytes")
    );
}

#[tokio::test]
#[cfg(unix)]
async fn the_mode_stays_and_links_are_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("dotfiles")).unwrap();
    let real = folder.path().join("dotfiles/real.json");
    fs::write(&real, "{}").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("s.json");
    symlink("dotfiles/real.json", &link).unwrap();
    write(&link, &[set("local.sandbox", "true")]).await;
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(Settings::read(&real).0.local.sandbox);
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(&folder), ["dotfiles", "s.json"]);
    assert_eq!(fs::read_dir(folder.path().join("dotfiles")).unwrap().count(), 1);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let error = Settings::write(&link, &[set("local.sandbox", "false")]).await.unwrap_err();
    assert!(error.to_string().contains("is write-protected"), "{error}");
    let circle = folder.path().join("circle");
    symlink("circle", &circle).unwrap();
    let error = Settings::write(&circle, &[set("local.sandbox", "false")]).await.unwrap_err();
    assert!(error.to_string().contains("is a link to itself"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn statement_49_a_stale_lock_is_an_error_after_five_seconds_that_names_it() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    let lock = folder.path().join("s.json.lock");
    fs::write(&lock, "left behind").unwrap();
    let start = Instant::now();
    let error = Settings::write(&path, &[set("local.sandbox", "true")]).await.unwrap_err();
    let waited = start.elapsed();
    assert!(matches!(&error, BridgeError::SettingsLocked { lock: named } if *named == lock));
    assert!(error.to_string().contains(&lock.display().to_string()), "{error}");
    assert!((5000..5100).contains(&waited.as_millis()), "{waited:?}");
    // It is not stolen.
    assert_eq!(fs::read_to_string(&lock).unwrap(), "left behind");
    assert_eq!(names(&folder), ["s.json.lock"]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_goes_in_time_was_only_a_wait() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    let lock = folder.path().join("s.json.lock");
    fs::write(&lock, "").unwrap();
    let start = Instant::now();
    let changes = [set("local.sandbox", "true")];
    let release = async {
        // The runtime runs on while the writer waits.
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        fs::remove_file(&lock).unwrap();
    };
    let (written, ()) = tokio::join!(Settings::write(&path, &changes), release);
    written.unwrap();
    assert!((4000..4050).contains(&start.elapsed().as_millis()));
    assert_eq!(names(&folder), ["s.json"]);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_given_up_leaves_no_lock() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    let lock = folder.path().join("s.json.lock");
    fs::write(&lock, "").unwrap();
    let changes = [set("local.sandbox", "true")];
    let given_up =
        tokio::time::timeout(std::time::Duration::from_secs(1), Settings::write(&path, &changes)).await;
    assert!(given_up.is_err());
    fs::remove_file(&lock).unwrap();
    write(&path, &changes).await;
    assert_eq!(names(&folder), ["s.json"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn statement_49_many_writers_lose_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    fs::write(&path, r#"{"foreign":{"kept":1}}"#).unwrap();
    let mut writers = JoinSet::new();
    for number in 0..12 {
        let path = path.clone();
        writers.spawn(async move {
            write(&path, &[set(&format!("models.fastDefaults.m{number}"), "true")]).await;
        });
    }
    writers.join_all().await;
    let (settings, warnings) = Settings::read(&path);
    assert_eq!(settings.models.fast_defaults.len(), 12);
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["foreign: is unknown"]);
    assert!(fs::read_to_string(&path).unwrap().contains(r#""foreign": {"kept":1}"#));
    assert_eq!(names(&folder), ["s.json"]);
}

#[tokio::test]
#[ignore = "the other process of the next test, in whose directory the file is"]
async fn another_process() {
    let path = Path::new("s.json");
    assert!(path.exists());
    for number in 0..5 {
        let name = format!("models.fastDefaults.{}.{number}", std::process::id());
        write(path, &[set(&name, "true")]).await;
    }
}

#[tokio::test]
async fn lesson_39_two_processes_lose_nothing_of_each_other_or_of_others() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("s.json");
    fs::write(&path, r#"{"foreign": [1, 2.50]}"#).unwrap();
    let start = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "settings::tests::writing::another_process"])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children = [start(), start()];
    for number in 0..5 {
        write(&path, &[set(&format!("models.fastDefaults.here.{number}"), "false")]).await;
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let (settings, _) = Settings::read(&path);
    assert_eq!(settings.models.fast_defaults.len(), 15);
    assert!(fs::read_to_string(&path).unwrap().contains(r#""foreign": [1, 2.50]"#));
    assert_eq!(names(&folder), ["s.json"]);
}
