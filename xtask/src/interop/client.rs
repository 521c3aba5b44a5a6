//! The official clients and how their drivers are started. It knows nothing of what they say.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::interop::Stage;
use crate::peers::Peers;
use crate::process::Step;

/// An official SDK as the client, with the way it opens a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Client {
    TypeScript1,
    TypeScript2,
    TypeScript2Auto,
    Python1,
    Python2,
    Python2Auto,
}

/// What a client connects to.
#[derive(Debug)]
pub(super) enum Target {
    Command(Vec<String>),
    Http(String),
    Sse(String),
}

impl Target {
    fn to_json(&self) -> String {
        match self {
            Self::Command(words) => json!({ "stdio": words }),
            Self::Http(url) => json!({ "http": url }),
            Self::Sse(url) => json!({ "sse": url }),
        }
        .to_string()
    }
}

impl Client {
    /// Those that open with `initialize`.
    pub(super) const HANDSHAKE: [Self; 4] =
        [Self::TypeScript1, Self::TypeScript2, Self::Python1, Self::Python2];
    /// Those that ask `server/discover` first and speak the 2026-07-28 revision where they can.
    pub(super) const PROBING: [Self; 2] = [Self::TypeScript2Auto, Self::Python2Auto];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TypeScript1 => "typescript-1",
            Self::TypeScript2 => "typescript-2",
            Self::TypeScript2Auto => "typescript-2-auto",
            Self::Python1 => "python-1",
            Self::Python2 => "python-2",
            Self::Python2Auto => "python-2-auto",
        }
    }

    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::TypeScript2Auto | Self::Python2Auto)
    }

    const fn mode(self) -> &'static str {
        if self.is_probing() { "auto" } else { "legacy" }
    }

    pub(super) const fn is_there(self, peers: &Peers) -> bool {
        match self {
            Self::TypeScript1 | Self::TypeScript2 | Self::TypeScript2Auto => peers.node.is_some(),
            Self::Python1 => peers.python1.is_some(),
            Self::Python2 | Self::Python2Auto => peers.python2.is_some(),
        }
    }

    /// The driver's command for one scenario and target.
    pub(super) fn play(self, stage: &Stage, scenario: &Path, target: &Target) -> Result<Step> {
        let step = match self {
            Self::TypeScript1 => typescript(stage, "typescript_v1.mjs")?,
            Self::TypeScript2 | Self::TypeScript2Auto => typescript(stage, "typescript_v2.mjs")?,
            Self::Python1 => python(stage, stage.peers.python1.as_deref(), "python_v1.py")?,
            Self::Python2 | Self::Python2Auto => {
                python(stage, stage.peers.python2.as_deref(), "python_v2.py")?
            }
        };
        let words = [scenario.as_os_str().to_owned(), target.to_json().into(), OsString::from(self.mode())];
        Ok(step.args(&words))
    }
}

/// Node resolves a package from the folder of the importing file, so the drivers are copied beside `node_modules`.
fn typescript(stage: &Stage, driver: &str) -> Result<Step> {
    let node = stage.peers.node.as_ref().context("no npm peers")?;
    let folder = node.folder.join("clients");
    fs::create_dir_all(&folder)?;
    for file in [driver, "steps.mjs"] {
        let source = fs::read(stage.interop("clients").join(file))?;
        let copy = folder.join(file);
        if fs::read(&copy).ok().as_deref() != Some(&source) {
            let fresh = tempfile::NamedTempFile::new_in(&folder)?;
            fs::write(fresh.path(), &source)?;
            fresh.persist(&copy)?;
        }
    }
    Ok(Step::new(&node.node).arg(folder.join(driver)))
}

fn python(stage: &Stage, interpreter: Option<&Path>, driver: &str) -> Result<Step> {
    let interpreter = interpreter.context("no Python peers")?;
    Ok(Step::new(interpreter).arg(stage.interop("clients").join(driver)).env("PYTHONDONTWRITEBYTECODE", "1"))
}
