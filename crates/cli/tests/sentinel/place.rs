//! A house full of sentinels, and all that comes out of it: outputs, the list of processes, files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use toolway_testkit::{Leaks, SOON, fakemcp};

use super::TOOLWAY;
use super::finder::{Sentinel, encodings, found};

/// How often the list of processes is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What was looked through.
#[derive(Debug)]
struct Output {
    what: String,
    bytes: Vec<u8>,
}

/// Who looks at the list of processes: how it is ended, and what it gives.
type Watch = (Sender<()>, JoinHandle<BTreeSet<Vec<u8>>>);

#[derive(Debug)]
pub(crate) struct Place {
    house: TempDir,
    /// Scripts of servers, and files that secrets come from.
    outside: TempDir,
    mark: String,
    sentinels: Vec<Sentinel>,
    variables: BTreeMap<String, String>,
    /// Files that the test has written, with what they hold.
    inputs: BTreeMap<PathBuf, String>,
    outputs: Vec<Output>,
    servers: Vec<Child>,
    watch: Option<Watch>,
}

impl Drop for Place {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // It may have ended.
            server.kill().unwrap_or_default();
            server.wait().map(drop).unwrap_or_default();
        }
    }
}

impl Place {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let house = tempfile::Builder::new().prefix("toolway-sentinel-").tempdir()?;
        for name in ["home/.config/toolway", "run", "tmp", "work"] {
            std::fs::create_dir_all(house.path().join(name))?;
        }
        Ok(Self {
            house,
            outside: tempfile::Builder::new().prefix("toolway-outside-").tempdir()?,
            mark: format!("sentinel-{name}-{}-end", std::process::id()),
            sentinels: Vec::new(),
            variables: BTreeMap::new(),
            inputs: BTreeMap::new(),
            outputs: Vec::new(),
            servers: Vec::new(),
            watch: Some(watch()),
        })
    }

    /// A new secret; its value.
    pub(crate) fn secret(&mut self, sentinel: Sentinel) -> String {
        let value = sentinel.value.clone();
        self.sentinels.push(sentinel);
        value
    }

    /// A new secret in a variable of ours.
    pub(crate) fn variable(&mut self, name: &str, sentinel: Sentinel) -> String {
        let value = self.secret(sentinel);
        self.variables.insert(name.to_owned(), value.clone());
        value
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.insert(name.to_owned(), value.into());
    }

    /// A file outside of all that is looked through.
    pub(crate) fn outside(&self, name: &str, content: &str) -> Result<String> {
        let path = self.outside.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// A file in the house that may hold secrets, since the user has written them there.
    pub(crate) fn input(&mut self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.house.path().join(name);
        std::fs::create_dir_all(path.parent().context("no directory")?)?;
        std::fs::write(&path, content)?;
        self.inputs.insert(path.clone(), content.to_owned());
        Ok(path)
    }

    pub(crate) fn path(&self) -> &Path {
        self.house.path()
    }

    /// Lines of a script that write everything it knows to stderr, in every encoding.
    pub(crate) fn spill(&self) -> String {
        let lines = self.sentinels.iter().flat_map(|sentinel| encodings(&sentinel.value));
        lines
            .flat_map(|line| ["    stderr got ".to_owned(), escaped(&line), " from you\n".to_owned()])
            .collect()
    }

    /// All that it knows, in every encoding, as inside a JSON string.
    pub(crate) fn all(&self) -> String {
        let forms = self.sentinels.iter().flat_map(|sentinel| encodings(&sentinel.value));
        let text = forms.collect::<Vec<_>>().join(" | ");
        serde_json::Value::from(text).to_string().trim_matches('"').to_owned()
    }

    /// The same as a body of a script.
    pub(crate) fn all_as_body(&self) -> String {
        escaped(&self.all())
    }

    /// A server over stdio: its command and arguments.
    pub(crate) fn stdio(&self, name: &str, script: &str) -> Result<Vec<String>> {
        let script = self.outside(name, script)?;
        let program = fakemcp()?.to_string_lossy().into_owned();
        Ok(vec![program, script, "--mark".to_owned(), self.mark.clone()])
    }

    /// A server over HTTP that runs; its port.
    pub(crate) fn http(&mut self, name: &str, script: &str) -> Result<u16> {
        let line = self.stdio(name, script)?;
        let mut server = Command::new(&line[0])
            .args(&line[1..])
            .args(["--transport", "http"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(server.stderr.take().context("no stderr")?);
        self.servers.push(server);
        let mut first = String::new();
        lines.read_line(&mut first)?;
        let port =
            first.trim().strip_prefix("LISTEN ").with_context(|| format!("said {first:?}"))?.parse()?;
        // It writes more there, which nobody needs.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(port)
    }

    pub(crate) fn command<A: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(TOOLWAY);
        command.args(words).env_clear().current_dir(self.house.path().join("work"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, place) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run")] {
            command.env(name, self.house.path().join(place));
        }
        command.env("TOOLWAY_TESTKIT_MARK", &self.mark).envs(&self.variables);
        command
    }

    /// Notes what came out.
    pub(crate) fn note(&mut self, what: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.outputs.push(Output { what: what.into(), bytes: bytes.into() });
    }

    /// Runs it, and notes all that it said; its stdout and stderr.
    pub(crate) fn run(&mut self, words: &[&str], stdin: &str) -> Result<(String, String)> {
        let (out, err) = self.run_for_stderr(words, stdin)?;
        self.note(format!("stdout of {words:?}"), out.as_bytes());
        Ok((out, err))
    }

    /// The same where stdout is what a server gave for its caller.
    pub(crate) fn run_for_stderr(&mut self, words: &[&str], stdin: &str) -> Result<(String, String)> {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().context("no stdin")?.write_all(stdin.as_bytes())?;
        let output = child.wait_with_output()?;
        let (out, err) =
            (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr).into_owned());
        self.note(format!("stderr of {words:?}"), err.as_bytes());
        Ok((out, err))
    }

    /// More secrets that nothing may hold.
    pub(crate) fn learn(&mut self, name: &str, values: &[String]) {
        let new = values.iter().filter(|value| value.len() >= 8);
        self.sentinels.extend(new.map(|value| Sentinel::of(name, value)));
    }

    /// Nothing of them stands anywhere.
    pub(crate) fn search(mut self, least_outputs: usize) -> Result<()> {
        ensure!(self.outputs.len() >= least_outputs, "only {} outputs", self.outputs.len());
        Leaks::new(&self.mark).check(SOON).or_else(|error| {
            // Servers over HTTP are this test's own.
            if self.servers.is_empty() { Err(error) } else { Ok(()) }
        })?;
        let (stop, seen) = self.watch.take().context("no watch")?;
        drop(stop);
        let lines = seen.join().map_err(|_| anyhow::anyhow!("the watch failed"))?;
        ensure!(lines.len() > 1, "no processes were seen");
        let mut told = Vec::new();
        let mut look = |what: &str, bytes: &[u8]| {
            for sentinel in found(bytes, &self.sentinels) {
                let text = String::from_utf8_lossy(bytes);
                let shown: String = text.chars().take(6000).collect();
                told.push(format!("{}: the sentinel of {}\n{shown}", what, sentinel.name));
            }
        };
        for output in &self.outputs {
            look(&output.what, &output.bytes);
        }
        for line in &lines {
            look("the list of processes", line);
        }
        let mut files = 0;
        for path in toolway_testkit::files(self.house.path()) {
            let Ok(bytes) = std::fs::read(&path) else { continue };
            files += 1;
            look("the name of a file", path.as_os_str().as_encoded_bytes());
            if self.inputs.get(&path).is_none_or(|input| input.as_bytes() != bytes) {
                look(&path.display().to_string(), &bytes);
            }
        }
        ensure!(files > 0, "no files were written");
        if !told.is_empty() {
            bail!("{} finds:\n{}", told.len(), told.join("\n---\n"));
        }
        Ok(())
    }
}

/// As a script writes what has backslashes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
}

/// Reads the command lines of all processes again and again, until the sender goes.
fn watch() -> (Sender<()>, JoinHandle<BTreeSet<Vec<u8>>>) {
    let (stop, stopped) = channel::<()>();
    let looks = std::thread::spawn(move || {
        let mut seen = BTreeSet::new();
        while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
                if let Ok(line) = std::fs::read(entry.path().join("cmdline")) {
                    seen.insert(line);
                }
            }
        }
        seen
    });
    (stop, looks)
}
