//! Owns where the user file lies. Pure: what the machine says is passed in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::profile::Profile;

/// The user file. `config_dir` is the user's configuration directory; `folder` is the value of the profile's
/// `folder_variable`, of which an empty one counts as none and a leading `~` is the home directory.
pub fn settings_path(
    profile: &Profile,
    home: Option<&Path>,
    config_dir: Option<&Path>,
    folder: Option<&OsStr>,
) -> Option<PathBuf> {
    let moved =
        folder.filter(|folder| profile.folder_variable.is_some() && !folder.is_empty()).map(Path::new);
    let folder = match moved {
        Some(moved) => match moved.strip_prefix("~") {
            Ok(below) => home?.join(below),
            Err(_) => moved.to_path_buf(),
        },
        None if profile.in_config_dir => config_dir?.join(profile.user_folder),
        None => home?.join(profile.user_folder),
    };
    Some(folder.join(profile.user_file))
}
