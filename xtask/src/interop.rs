//! The interop suites: official clients, servers, the Inspector and the conformance suite, directly and through
//! Toolway. A case passes when the peer cannot tell the two apart, the large results apart.

mod agents;
mod alone;
mod bridge;
mod cases;
mod client;
mod conformance;
mod cross_era;
mod editor;
mod example_host;
mod gateway;
mod inspector;
mod pi;
mod sign_in;
mod suite;
mod transcript;
mod upstream;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::interop::cases::Case;
use crate::interop::upstream::Upstreams;
use crate::peers::{self, Peers};
use crate::workspace::Workspace;

/// Cases that run at the same time: most of them wait most of the time.
const WORKERS: usize = 3;
/// The longest that one run of a client may take.
const DEADLINE: Duration = Duration::from_mins(2);

/// What every case needs.
#[derive(Debug)]
struct Stage {
    root: PathBuf,
    scratch: TempDir,
    front: PathBuf,
    /// Where built programs are.
    programs: PathBuf,
    peers: Peers,
}

impl Stage {
    /// A new empty folder.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.path().join(name.replace([' ', '/'], "-"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// A program of the test kit, once it is built.
    fn program(&self, name: &str) -> PathBuf {
        self.programs.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    fn interop(&self, path: &str) -> PathBuf {
        self.root.join("interop").join(path)
    }
}

/// What the arguments say.
#[derive(Debug, Default)]
struct Options {
    only: Vec<String>,
    front: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--only" => options.only.push(value.clone()),
                "--front" => options.front = Some(value.into()),
                other => bail!("unknown option {other}"),
            }
        }
        Ok(options)
    }

    fn selects(&self, case: Case) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| case.name().contains(text))
    }
}

/// Builds the front, installs the peers and runs the cases.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let front = if let Some(front) = &options.front {
        front.clone()
    } else {
        workspace.cargo(&["build", "--quiet", "--package", "toolway"]).run()?;
        workspace.binary("toolway")?
    };
    let started = Instant::now();
    let peers = peers::install(workspace)?;
    println!("interop: peers ready after {} s", started.elapsed().as_secs());
    let scratch = tempfile::Builder::new().prefix("toolway-interop-").tempdir()?;
    let stage =
        Stage { root: workspace.root().to_path_buf(), scratch, front, programs: workspace.programs(), peers };
    let (cases, left_out) = cases::all(&stage.peers);
    let cases: Vec<Case> = cases.into_iter().filter(|case| options.selects(*case)).collect();
    let outcomes = perform(&stage, &cases)?;
    let left_behind = left_behind(&stage);
    report(workspace, &stage, &cases, &outcomes, &left_out, &left_behind)
}

/// Text over any client's limit, with what an encoder could spoil. Free of quotes: it is put into JSON as it is.
fn large_text() -> String {
    r"a line: é世😀 <&> \\ \u2028\t end\n".repeat(1500)
}

/// Where it stands which checks of the conformance suite cannot pass, and why.
const PAGE: &str = "docs/protocol.md";

fn page(stage: &Stage) -> Result<String> {
    fs::read_to_string(stage.root.join(PAGE)).context(PAGE)
}

type Outcome = (Duration, Result<()>);

/// Runs the cases on a few threads, in order of their list.
fn perform(stage: &Stage, cases: &[Case]) -> Result<Vec<Outcome>> {
    let upstreams = Upstreams::start(stage, cases)?;
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(cases.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..WORKERS.min(cases.len()) {
            scope.spawn(|| {
                while let Some((index, case)) = take(&next, cases) {
                    let started = Instant::now();
                    let result = case.run(stage, &upstreams);
                    let (name, took) = (case.name(), started.elapsed().as_secs_f64());
                    match &result {
                        Ok(()) => println!("interop ok     {took:5.1} s  {name}"),
                        Err(error) => println!("interop FAILED {took:5.1} s  {name}\n{error:#}\n"),
                    }
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes[index] = Some((started.elapsed(), result));
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    outcomes.into_iter().map(|outcome| outcome.context("a case has not run")).collect()
}

fn take<'a>(next: &AtomicUsize, cases: &'a [Case]) -> Option<(usize, &'a Case)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    cases.get(index).map(|case| (index, case))
}

/// Command lines of processes that should have ended: fronts and servers of this run, known by its folder.
fn left_behind(stage: &Stage) -> Vec<String> {
    let mark = stage.scratch.path().to_string_lossy();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let found = running_with(&mark);
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        thread::park_timeout(Duration::from_millis(200));
    }
}

/// Processes that have the mark in their command line or environment. Linux only: elsewhere it finds none.
fn running_with(mark: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let read = |file: PathBuf| fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    let processes = entries.flatten().filter_map(|entry| {
        let line = read(entry.path().join("cmdline")).ok()?;
        let environment = read(entry.path().join("environ")).unwrap_or_default();
        (line.contains(mark) || environment.contains(mark)).then_some(line)
    });
    processes.collect()
}

fn report(
    workspace: &Workspace,
    stage: &Stage,
    cases: &[Case],
    outcomes: &[Outcome],
    left_out: &[String],
    left_behind: &[String],
) -> Result<()> {
    for (case, _) in cases.iter().zip(outcomes).filter(|(_, (_, result))| result.is_err()) {
        println!("failed: {}", case.name());
    }
    for line in left_behind {
        println!("left running: {line}");
    }
    for line in stage.peers.missing.iter().chain(left_out) {
        println!("left out: {line}");
    }
    let slowest = outcomes.iter().map(|(took, _)| took.as_secs()).max().unwrap_or(0);
    println!("interop: slowest case {slowest} s");
    let failed =
        outcomes.iter().filter(|(_, result)| result.is_err()).count() + usize::from(!left_behind.is_empty());
    let passed = outcomes.iter().filter(|(_, result)| result.is_ok()).count();
    println!("interop: {passed} passed, {failed} failed, {} skipped", left_out.len());
    if failed > 0 {
        bail!("the interop suites failed");
    }
    if workspace.is_ci() && !(stage.peers.missing.is_empty() && left_out.is_empty()) {
        let (peers, cases) = (stage.peers.missing.len(), left_out.len());
        bail!("{peers} peers are missing and {cases} cases left out, which CI does not accept: see above");
    }
    Ok(())
}
