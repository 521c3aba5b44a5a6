//! Runs with a host that a test plays, on a paused clock.

mod ends;
mod guarded;
mod handing;
mod races;
mod trial_21;

use std::sync::atomic::AtomicBool;
use std::task::Poll;

use serde_json::{Value, json};
use toolway_wire::Id;

use super::*;
use crate::call::{HostResult, RejectionKind};
use crate::calls::Origin;
use crate::json::RawJson;
use crate::snapshot::SurfaceOptions;
use crate::tool::{HostTool, HostTools, Provenance};

/// What a host was told, in order.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

type OnStart = Box<dyn FnMut(&HostCall) -> Result<(), String> + Send>;

/// Notes what it is told, and does with a start what the test says.
struct Sink {
    told: Told,
    on_start: OnStart,
}

impl Sink {
    fn boxed(
        told: &Told,
        on_start: impl FnMut(&HostCall) -> Result<(), String> + Send + 'static,
    ) -> Box<Self> {
        Box::new(Self { told: told.clone(), on_start: Box::new(on_start) })
    }
}

impl CallSink for Sink {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        self.told.push(format!("start {} {}", call.tool, call.arguments.text()));
        (self.on_start)(&call)
    }

    fn cancelled(&mut self, id: &CallId, reason: &str) {
        self.told.push(format!("cancel {}: {reason}", id.as_str().rsplit_once("-t").unwrap().1));
    }
}

struct Rig {
    run: Run,
    told: Told,
    /// The run's place at the server was given back, with so many calls pending.
    closed: Arc<Mutex<Option<usize>>>,
    requests: u64,
    tasks: TaskTracker,
}

struct Options {
    deadlines: Deadlines,
    guard: Option<Arc<Guard>>,
    diagnostics: Diagnostics,
    keep_alive: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        let deadlines = Deadlines::new(None, Some(1000.0), None).0;
        Self { deadlines, guard: None, diagnostics: Diagnostics::default(), keep_alive: None }
    }
}

impl Rig {
    fn new(options: Options) -> Self {
        let profile = Profile::PI;
        let names = ["slow", "ask", "fast", "prog"];
        let tool = |name: &&str| HostTool {
            name: (*name).to_owned(),
            description: String::new(),
            guidelines: Vec::new(),
            parameters: RawJson::empty_object(),
            provenance: Provenance::default(),
        };
        let tools = HostTools {
            all: names.iter().map(tool).collect(),
            active: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let snapshot = Arc::new(Snapshot::take(&profile, &SurfaceOptions::default(), &tools));
        let closed = Arc::new(Mutex::new(None));
        let (tasks, noted) = (TaskTracker::new(), Arc::clone(&closed));
        let slot: Arc<Mutex<Option<Run>>> = Arc::default();
        let of = Arc::clone(&slot);
        let run = Run::new(RunParts {
            profile,
            ids: Ids::random(&profile).unwrap(),
            snapshot,
            url: Secret::new("http://127.0.0.1:1/secret-path/mcp"),
            deadlines: options.deadlines,
            guard: options.guard,
            saved_as: "test".to_owned(),
            keep_alive: options.keep_alive,
            diagnostics: options.diagnostics,
            tasks: tasks.clone(),
            large: Arc::new(Semaphore::new(2)),
            closing: Box::new(move || {
                let pending = of.lock().unwrap().take().map(|run| run.pending());
                Box::pin(async move { *noted.lock().unwrap() = pending })
            }),
        });
        *slot.lock().unwrap() = Some(run.clone());
        Self { run, told: Told::default(), closed, requests: 0, tasks }
    }

    fn bound(options: Options) -> Self {
        let rig = Self::new(options);
        rig.run.bind(Sink::boxed(&rig.told, |_| Ok(())));
        rig
    }

    fn origin(request: u64) -> Origin {
        Origin { session: 1, request: Id::from_number(request) }
    }

    /// The next request calls that tool.
    fn begin(&mut self, tool: &str) -> Began {
        self.requests += 1;
        let arguments = RawJson::of(&json!({"n": self.requests}));
        self.run.begin(Self::origin(self.requests), &format!("pi__{tool}"), Some(arguments), None)
    }

    fn call(&mut self, tool: &str) -> Waiter {
        waiting(self.begin(tool))
    }

    /// The id of the n-th call.
    fn id(&self, n: u64) -> CallId {
        self.run.lock().calls.ids().call(n).unwrap()
    }
}

fn waiting(began: Began) -> Waiter {
    match began {
        Began::Waiting(waiter) => waiter,
        other => panic!("{other:?}"),
    }
}

fn refused(began: Began) -> Rejection {
    match began {
        Began::Rejected(rejection) => rejection,
        other => panic!("{other:?}"),
    }
}

/// What is there without waiting.
fn now(waiter: &mut Waiter) -> Option<Update> {
    let mut next = std::pin::pin!(waiter.next());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match next.as_mut().poll(&mut context) {
        Poll::Ready(update) => Some(update),
        Poll::Pending => None,
    }
}

fn text(update: Option<Update>) -> String {
    let result = result_of(update);
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn result_of(update: Option<Update>) -> Value {
    match update {
        Some(Update::Result(result)) => serde_json::from_slice(&result).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn rejection(update: Option<Update>) -> Rejection {
    match update {
        Some(Update::Rejected(rejection)) => rejection,
        other => panic!("{other:?}"),
    }
}
