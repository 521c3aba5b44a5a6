//! How calls and runs end, and that nothing of them is left.

use super::*;
use crate::diagnostics::{DiagnosticSink, DiagnosticsConfig, Event};

#[tokio::test(start_paused = true)]
async fn lesson_01_every_pending_call_has_a_deadline_of_its_own() {
    let mut rig = Rig::new(Options::default());
    let start = Instant::now();
    let mut queued = rig.call("slow");
    tokio::time::sleep(Duration::from_millis(300)).await;
    rig.run.bind(Sink::boxed(&rig.told, |_| Ok(())));
    let mut handed = rig.call("slow");
    let dropped = rig.call("slow");
    drop(dropped);
    let rejected = rejection(Some(queued.next().await));
    assert_eq!((rejected.kind, start.elapsed()), (RejectionKind::Error, Duration::from_secs(1)));
    assert!(rejected.reason.contains("1000 ms"), "{}", rejected.reason);
    rejection(Some(handed.next().await));
    assert_eq!(start.elapsed(), Duration::from_millis(1300));
    rig.run.idle().await;
    let told = rig.told.take();
    assert_eq!(told.iter().filter(|line| line.starts_with("cancel")).count(), 3, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_idle_serves_the_next_call() {
    let mut rig = Rig::bound(Options::default());
    for n in 1..=3 {
        let start = Instant::now();
        let mut call = rig.call("slow");
        rejection(Some(call.next().await));
        assert_eq!(start.elapsed(), Duration::from_secs(1), "call {n}");
        let settled = rig.call("fast");
        rig.run.settle(settled.id(), HostResult::text("ok"));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_moves_no_deadline_and_ends_with_the_call() {
    let rig = Rig::bound(Options::default());
    let token = Some(RawJson::of(&json!("p")));
    let mut call = waiting(rig.run.begin(Rig::origin(1), "pi__prog", None, token));
    let mut silent = waiting(rig.run.begin(Rig::origin(2), "pi__prog", None, None));
    for n in 1..=1000 {
        rig.run.progress(&rig.id(1), &Progress::new(n));
        rig.run.progress(&rig.id(2), &Progress::new(n));
    }
    let mut told = 0;
    while let Some(Update::Progress(params)) = now(&mut call) {
        let params: Value = serde_json::from_slice(&params).unwrap();
        assert_eq!(params["progressToken"], "p");
        told += 1;
    }
    assert!((1..=32).contains(&told), "a flood is bounded: {told}");
    assert_eq!(now(&mut silent), None, "nobody asked for it");
    let start = Instant::now();
    rejection(Some(call.next().await));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    rig.run.progress(&rig.id(1), &Progress::new(5000));
    assert!(matches!(now(&mut call), Some(Update::Rejected(_))), "nothing follows the end");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asked_for_progress_hears_signs_of_life() {
    let keep_alive = Some(Duration::from_millis(300));
    let rig = Rig::bound(Options { keep_alive, ..Options::default() });
    let mut call = waiting(rig.run.begin(Rig::origin(1), "pi__slow", None, Some(RawJson::of(&json!(7)))));
    let (mut last, mut told) = (-1.0, 0);
    let end = loop {
        match call.next().await {
            Update::Progress(params) => {
                let params: Value = serde_json::from_slice(&params).unwrap();
                let progress = params["progress"].as_f64().unwrap();
                assert!(progress > last && params["progressToken"] == 7);
                (last, told) = (progress, told + 1);
            }
            end => break end,
        }
    };
    assert_eq!((rejection(Some(end)).kind, told), (RejectionKind::Error, 3));
}

#[tokio::test(start_paused = true)]
async fn statement_25_a_client_that_cancels_stops_the_host_once() {
    let mut rig = Rig::bound(Options::default());
    let mut call = rig.call("slow");
    rig.run.cancel_request(Rig::origin(1));
    rig.run.cancel_request(Rig::origin(1));
    call.cancel("the client closed the answer");
    assert_eq!(now(&mut call), Some(Update::GivenUp));
    assert_eq!(rig.told.take().iter().filter(|line| line.starts_with("cancel")).count(), 1);
    assert_eq!(rig.run.settle(&rig.id(1), HostResult::text("late")), Settlement::Unknown);
    assert_eq!((now(&mut call), rig.run.pending()), (Some(Update::GivenUp), 0));
}

#[tokio::test(start_paused = true)]
async fn the_hosts_own_end_of_a_call_is_not_told_to_it_and_its_abort_is() {
    let mut rig = Rig::bound(Options::default());
    let (mut failed, mut aborted) = (rig.call("slow"), rig.call("ask"));
    rig.told.take();
    let why = Rejection { kind: RejectionKind::Error, reason: "the disk is full".to_owned() };
    assert_eq!(rig.run.fail(&rig.id(1), why.clone()), Settlement::Delivered);
    assert_eq!(rig.run.fail(&rig.id(1), why.clone()), Settlement::Unknown);
    assert_eq!((rejection(now(&mut failed)), rig.told.take()), (why, vec![]));
    assert_eq!(rig.run.abort(&rig.id(2), "the user pressed escape"), Settlement::Delivered);
    assert_eq!(rig.run.abort(&rig.id(2), "again"), Settlement::Unknown);
    assert_eq!(rejection(now(&mut aborted)).kind, RejectionKind::Cancelled);
    assert_eq!(rig.told.take(), ["cancel 2: the user pressed escape"]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_callback_that_breaks_off_keeps_nothing_from_the_siblings() {
    struct Breaking(Told);
    impl CallSink for Breaking {
        fn started(&mut self, _: HostCall) -> Result<(), String> {
            Ok(())
        }
        fn cancelled(&mut self, id: &CallId, _: &str) {
            self.0.push(id.to_string());
            panic!("the abort failed");
        }
    }
    let mut rig = Rig::new(Options::default());
    rig.run.bind(Box::new(Breaking(rig.told.clone())));
    let mut calls: Vec<Waiter> = (0..5).map(|_| rig.call("slow")).collect();
    rig.run.cancel_all("the turn was given up");
    assert_eq!(rig.told.take().len(), 5);
    assert!(calls.iter_mut().all(|call| rejection(now(call)).reason == "the turn was given up"));
    rig.call("slow");
    assert_eq!(rig.run.pending(), 1, "the run goes on");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_disposed_of_rejects_first_then_gives_its_place_back() {
    let mut rig = Rig::bound(Options::default());
    let (mut one, mut two) = (rig.call("slow"), rig.call("ask"));
    let run = rig.run.clone();
    let (first, second) = (run.dispose("the session ended"), rig.run.dispose("again"));
    tokio::join!(first, second);
    assert_eq!(*rig.closed.lock().unwrap(), Some(0), "nothing was pending when the place was given back");
    for call in [&mut one, &mut two] {
        let of = Rejection { kind: RejectionKind::Cancelled, reason: "the session ended".to_owned() };
        assert_eq!(rejection(now(call)), of);
    }
    assert!(rig.told.take()[2..].iter().all(|line| line.ends_with("the session ended")));
    assert_eq!(refused(rig.begin("fast")).kind, RejectionKind::Cancelled);
    assert!(rig.run.is_disposed());
    let told = Told::default();
    rig.run.bind(Sink::boxed(&told, |_| Ok(())));
    assert_eq!(refused(rig.begin("fast")).kind, RejectionKind::Cancelled);
    rig.tasks.close();
    rig.tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn an_end_that_nobody_waits_for_is_done_too() {
    let rig = Rig::bound(Options::default());
    let mut dispose = Box::pin(rig.run.dispose("gone"));
    assert!(std::future::poll_fn(|context| Poll::Ready(dispose.as_mut().poll(context).is_pending())).await);
    drop(dispose);
    rig.tasks.close();
    rig.tasks.wait().await;
    assert_eq!(*rig.closed.lock().unwrap(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_sink_goes_with_the_run_and_not_before() {
    struct Held(Arc<AtomicBool>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let rig = Rig::new(Options::default());
    let gone = Arc::new(AtomicBool::new(false));
    let held = Held(Arc::clone(&gone));
    rig.run.bind(Sink::boxed(&rig.told, move |_| {
        let _held = &held;
        Ok(())
    }));
    assert!(!gone.load(Ordering::SeqCst));
    rig.run.detach();
    assert!(gone.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn lesson_15_diagnostics_that_break_cost_no_call() {
    struct Throwing;
    impl DiagnosticSink for Throwing {
        fn record(&mut self, _: &Event) -> std::io::Result<()> {
            panic!("the recorder broke");
        }
    }
    let config = DiagnosticsConfig { sinks: vec![Box::new(Throwing)], ..DiagnosticsConfig::default() };
    let diagnostics = Diagnostics::new(config);
    let mut rig = Rig::bound(Options { diagnostics: diagnostics.clone(), ..Options::default() });
    let mut call = rig.call("fast");
    rig.run.settle(&rig.id(1), HostResult::text("ok"));
    assert_eq!(text(now(&mut call)), "ok");
    rig.run.cancel_all("x");
    rig.run.dispose("over").await;
    let names: Vec<&str> = diagnostics.last().iter().map(Event::name).collect();
    assert_eq!(names, ["request_queued", "request_resolved", "run_disposed"]);
}
