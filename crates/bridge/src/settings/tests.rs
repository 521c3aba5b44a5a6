//! Tests of `settings`.

mod changing;
mod reading;
mod writing;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::profile::Profile;

#[test]
fn the_user_file_lies_where_the_profile_says() {
    let (home, config) = (Path::new("/h"), Path::new("/c"));
    let path = |profile, folder: Option<&str>| {
        settings_path(&profile, Some(home), Some(config), folder.map(OsStr::new)).unwrap()
    };
    assert_eq!(path(Profile::PI, None), Path::new("/h/.pi/agent/cursor-sdk.json"));
    assert_eq!(path(Profile::PI, Some("")), Path::new("/h/.pi/agent/cursor-sdk.json"));
    assert_eq!(path(Profile::PI, Some("/x/y")), Path::new("/x/y/cursor-sdk.json"));
    assert_eq!(path(Profile::PI, Some("~")), Path::new("/h/cursor-sdk.json"));
    assert_eq!(path(Profile::PI, Some("~/z")), Path::new("/h/z/cursor-sdk.json"));
    assert_eq!(path(Profile::PI, Some("~other/z")), Path::new("~other/z/cursor-sdk.json"));
    assert_eq!(path(Profile::HOST, None), Path::new("/c/toolway/bridge.json"));
    // That profile has no variable.
    assert_eq!(path(Profile::HOST, Some("/x")), Path::new("/c/toolway/bridge.json"));
    assert_eq!(settings_path(&Profile::PI, None, Some(config), None), None);
    assert_eq!(settings_path(&Profile::HOST, Some(home), None, None), None);
    let moved = settings_path(&Profile::PI, None, None, Some(OsStr::new("/x")));
    assert_eq!(moved, Some(PathBuf::from("/x/cursor-sdk.json")));
}

#[test]
fn cards_are_shown_where_somebody_sees_them() {
    use HostMode::{Json, Print, Rpc, Tui};
    for mode in [None, Some(Tui), Some(Json), Some(Rpc), Some(Print)] {
        for terminal in [false, true] {
            assert!(NativeDisplay::On.shows(mode, terminal));
            assert!(!NativeDisplay::Off.shows(mode, terminal));
        }
    }
    for mode in [Tui, Json, Rpc] {
        assert!(NativeDisplay::Auto.shows(Some(mode), false));
    }
    assert!(!NativeDisplay::Auto.shows(Some(Print), true));
    assert!(NativeDisplay::Auto.shows(None, true));
    assert!(!NativeDisplay::Auto.shows(None, false));
}

#[test]
fn deadlines_that_count_otherwise_than_written_are_told_with_their_key() {
    let (settings, warnings) = Settings::parse(
        br#"{"tools":{"bridge":{"callTimeoutMs":120000},"mcp":{"callTimeoutMs":60000,"connectTimeoutMs":1}}}"#,
    );
    assert_eq!(warnings, []);
    let (deadlines, warnings) = settings.deadlines();
    assert_eq!(deadlines.tool, Duration::from_mins(1));
    assert_eq!(deadlines.bridge, Duration::from_mins(1));
    assert_eq!(deadlines.connect, Duration::from_secs(1));
    let keys: Vec<&str> = warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(keys, ["tools.bridge.callTimeoutMs", "tools.mcp.connectTimeoutMs"]);
    assert_eq!(Settings::default().deadlines().1, []);
}
