//! A place for an example: a home, a project, a scripted model, and the example's own process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolway_testkit::{Hub, ModelScript, ModelServer, Peer, fakemcp};

/// Many times what the slowest of them needs.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct Rig {
    dir: TempDir,
    hub: Hub,
    model: ModelServer,
    variables: Vec<(String, String)>,
    web: Option<Child>,
}

impl Rig {
    pub(crate) fn new(script: &Value) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        fs::create_dir_all(dir.path().join("project/.git"))?;
        fs::create_dir_all(dir.path().join("home"))?;
        let model = ModelServer::start(ModelScript::of(script)?)?;
        Ok(Self { dir, hub: Hub::new()?, model, variables: Vec::new(), web: None })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// How often the model was asked.
    pub(crate) fn asked(&self) -> usize {
        self.model.requests().len()
    }

    fn script(&self, text: &str) -> Result<PathBuf> {
        let path = self.path(&format!("script-{}", text.len()));
        fs::write(&path, text)?;
        Ok(path)
    }

    /// The command line of a scripted server.
    pub(crate) fn server(&self, script: &str) -> Result<String> {
        Ok(format!("'{}' '{}'", fakemcp()?.display(), self.script(script)?.display()))
    }

    /// A scripted server that listens, and what it tells the test.
    pub(crate) fn web(&mut self, script: &str) -> Result<(String, Peer)> {
        let mut command = Command::new(fakemcp()?);
        command.arg(self.script(script)?).args([
            "--transport",
            "http",
            "--test",
            &self.hub.address().to_string(),
        ]);
        self.web = Some(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let peer = self.hub.arrival("server", DEADLINE)?;
        Ok((format!("http://127.0.0.1:{}/mcp", peer.port()), peer))
    }

    /// Writes a file of servers.
    pub(crate) fn servers(&self, name: &str, servers: &Value) -> Result<()> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        Ok(fs::write(path, json!({ "mcpServers": servers }).to_string())?)
    }

    /// What an example writes to stdout.
    pub(crate) fn run(&self, example: &str, arguments: &[&str]) -> Result<String> {
        let (ok, out, err) = self.outcome(example, arguments)?;
        ensure!(ok, "{example} failed: {out}{err}");
        Ok(out)
    }

    /// Whether an example ended well, its stdout and its stderr.
    pub(crate) fn outcome(&self, example: &str, arguments: &[&str]) -> Result<(bool, String, String)> {
        let mut command = Command::new(binary(example)?);
        command.args(arguments).current_dir(self.path("project")).env_clear();
        let home = self.path("home");
        command.env("PATH", format!("{}:/usr/bin:/bin", home.display())).env("HOME", home);
        command.env("OPENAI_BASE_URL", self.model.base_url()).env("OPENAI_API_KEY", "key");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || done.send(child.wait_with_output()));
        let output = ended.recv_timeout(DEADLINE).with_context(|| format!("{example} does not end"))??;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((output.status.success(), text(output.stdout), text(output.stderr)))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(web) = &mut self.web {
            web.kill().and_then(|()| web.wait().map(drop)).unwrap_or_default();
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// The names of all examples.
pub(crate) fn names() -> Result<Vec<String>> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry?.path();
        Ok(path.file_stem().context("a file has a name")?.to_string_lossy().into_owned())
    };
    let mut names = fs::read_dir(folder())?.map(name).collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// An example's text.
pub(crate) fn source(name: &str) -> Result<String> {
    Ok(fs::read_to_string(folder().join(format!("{name}.rs")))?)
}

/// An example's program: cargo builds it with all tests; where one test alone was built, it is built here.
fn binary(name: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    // target/PROFILE/deps/TEST-HASH
    let profile = test.ancestors().nth(2).context("no folder of binaries")?;
    let path = profile.join("examples").join(name);
    if !path.exists() {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--package", "toolway-agent", "--example", name]);
        cargo.arg("--target-dir").arg(profile.parent().context("no target folder")?);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        ensure!(cargo.status()?.success(), "{name} was not built");
    }
    Ok(path)
}
