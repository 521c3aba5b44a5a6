//! Where things are: the root, the built binaries, and whether this is a CI run. The one reader of the environment.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::Step;

/// Paths and settings of one run.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    peers: PathBuf,
    ci: bool,
}

impl Workspace {
    /// Reads the environment once. `TOOLWAY_PEERS` moves the folder of installed peers.
    pub(crate) fn locate() -> Result<Self> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("xtask is not inside a workspace")?.to_path_buf();
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let peers = env::var_os("TOOLWAY_PEERS").map_or_else(|| root.join(".peers"), PathBuf::from);
        let ci = env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
        Ok(Self { root, target, peers, ci })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn peers(&self) -> &Path {
        &self.peers
    }

    pub(crate) const fn is_ci(&self) -> bool {
        self.ci
    }

    /// A cargo command in the root.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Step {
        Step::new("cargo").args(arguments).dir(&self.root)
    }

    /// Where the debug profile puts binaries.
    pub(crate) fn programs(&self) -> PathBuf {
        self.target.join("debug")
    }

    /// A binary of the debug profile, which must have been built.
    pub(crate) fn binary(&self, name: &str) -> Result<PathBuf> {
        let path = self.programs().join(format!("{name}{}", env::consts::EXE_SUFFIX));
        if !path.is_file() {
            bail!("{} is not built", path.display());
        }
        Ok(path)
    }
}

/// The first of `names` that PATH has.
pub(crate) fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let suffixes: &[&str] = if cfg!(windows) { &[".exe", ".cmd"] } else { &[""] };
    names.iter().flat_map(|name| suffixes.iter().map(move |suffix| format!("{name}{suffix}"))).find_map(
        |file| folders.iter().map(|folder| folder.join(&file)).find(|candidate| candidate.is_file()),
    )
}
