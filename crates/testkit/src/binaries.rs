//! Where the test kit's binaries are: a dev-dependency's binaries are not built with a test, so they are built here.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail};

/// The path of `fakemcp`, built once a process when needed (cargo's own lock keeps several tests apart).
pub fn fakemcp() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build("fakemcp").map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

/// The path of `toolway-model`, built likewise.
pub fn toolway_model() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build("toolway-model").map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

/// The path of `toolway-issuer`, built likewise.
pub fn toolway_issuer() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build("toolway-issuer").map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

/// The path of `toolway-acp-agent`, built likewise.
pub fn toolway_acp_agent() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build("toolway-acp-agent").map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

fn build(name: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    // target/PROFILE/deps/TEST-HASH or target/PROFILE/TEST
    let mut directory = test.parent().context("no directory")?;
    if directory.ends_with("deps") {
        directory = directory.parent().context("no directory")?;
    }
    let path = directory.join(name);
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "toolway-testkit", "--bin", name]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.arg("--target-dir").arg(directory.parent().context("no directory")?);
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().context("cargo cannot be started")?;
    if !output.status.success() && !path.exists() {
        bail!("{name} was not built: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(path)
}
