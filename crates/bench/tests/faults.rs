//! The fault runs as tests of the product: the real binary between a real client and an upstream that breaks. What is
//! right for each is `faults::judge`'s to say.
#![cfg(target_os = "linux")]

use std::io::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The product's binary beside this test's, built unless the whole workspace's tests have built it already.
fn toolway() -> Result<PathBuf, Error> {
    static BUILT: OnceLock<bool> = OnceLock::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_toolway-bench")).with_file_name("toolway");
    let built = BUILT.get_or_init(|| {
        let release = if cfg!(debug_assertions) { &[][..] } else { &["--release"] };
        let build = Command::new(env!("CARGO")).args(["build", "-p", "toolway"]).args(release).status();
        build.is_ok_and(|status| status.success())
    });
    if *built { Ok(binary) } else { Err(Error::other("toolway does not build")) }
}

/// Every scenario for this kind of upstream.
fn meets_every_fault(upstream: &str, runs: usize) -> Outcome {
    let done = Command::new(env!("CARGO_BIN_EXE_toolway-bench"))
        .args(["faults", "--fronts", "fronts.json", "--only", "toolway", "--judge", "--upstream", upstream])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TOOLWAY", toolway()?)
        .output()?;
    let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let wanted = format!("{upstream} toolway: {runs}/{runs}  wrong: none");
    assert!(done.status.success() && stdout.contains(&wanted), "{stderr}");
    Ok(())
}

#[test]
fn every_fault_over_stdio_ends_right() -> Outcome {
    meets_every_fault("stdio", 17)
}

#[test]
fn every_fault_over_streamable_http_ends_right() -> Outcome {
    meets_every_fault("http", 18)
}

#[test]
fn every_fault_over_legacy_sse_ends_right() -> Outcome {
    meets_every_fault("sse", 8)
}
