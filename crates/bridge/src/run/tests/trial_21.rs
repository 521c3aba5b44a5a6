//! Deadline, abort, late answer, concurrency: four tools, one run, a bridge deadline of one second.

use super::*;

/// Plays the four tools: `slow` never answers, `ask` after 700 ms, `fast` after 50 ms, `prog` tells how far it is every
/// 200 ms for three seconds.
fn host(rig: &Rig) {
    let (run, tasks) = (rig.run.clone(), rig.tasks.clone());
    rig.run.bind(Sink::boxed(&rig.told, move |call| {
        let (run, call) = (run.clone(), call.clone());
        tasks.spawn(async move {
            let ms = |ms| tokio::time::sleep(Duration::from_millis(ms));
            match call.tool.as_str() {
                "ask" => ms(700).await,
                "fast" => ms(50).await,
                "prog" => {
                    for n in 1..=15 {
                        ms(200).await;
                        run.progress(&call.id, &Progress::new(n));
                    }
                }
                _ => ms(5000).await,
            }
            run.settle(&call.id, HostResult::text(&call.tool));
        });
        Ok(())
    }));
}

async fn end(mut waiter: Waiter, start: Instant) -> (Update, u128, usize) {
    let mut progress = 0;
    loop {
        match waiter.next().await {
            Update::Progress(params) => {
                let params: Value = serde_json::from_slice(&params).unwrap();
                assert_eq!(params["progressToken"], "p");
                progress += 1;
            }
            end => return (end, start.elapsed().as_millis(), progress),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn trial_21_deadline_abort_late_answer_and_concurrency() {
    let rig = Rig::new(Options::default());
    host(&rig);
    let start = Instant::now();
    let begin = |request, tool: &str, token: Option<&str>| {
        let token = token.map(|token| RawJson::of(&json!(token)));
        waiting(rig.run.begin(Rig::origin(request), &format!("pi__{tool}"), None, token))
    };
    let slow = begin(1, "slow", None);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let (fast, ask, prog) = (begin(2, "fast", None), begin(3, "ask", None), begin(4, "prog", Some("p")));
    let (slow, fast, ask, prog) =
        tokio::join!(end(slow, start), end(fast, start), end(ask, start), end(prog, start));
    assert_eq!((text(Some(fast.0)), fast.1), ("fast".to_owned(), 60));
    assert_eq!((text(Some(ask.0)), ask.1), ("ask".to_owned(), 710));
    let late = rejection(Some(slow.0));
    assert_eq!((late.kind, slow.1), (RejectionKind::Error, 1000));
    assert!(late.reason.contains("1000 ms"), "{}", late.reason);
    assert_eq!((rejection(Some(prog.0)).kind, prog.1), (RejectionKind::Error, 1010));
    assert!(matches!(prog.2, 4 | 5), "{} times, the last one may be as late as the end", prog.2);
    // The host goes on and answers late: nothing is left, and the next calls are others.
    rig.told.take();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((rig.run.pending(), rig.told.take().len()), (0, 0));
    let again = Rig::new(Options::default());
    for n in 1..=4 {
        assert_eq!(again.run.settle(&rig.id(n), HostResult::text("old")), Settlement::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn trial_21_variant_a_cancelled_question_is_stopped_and_owed_no_answer() {
    let rig = Rig::new(Options::default());
    host(&rig);
    let start = Instant::now();
    let mut ask = waiting(rig.run.begin(Rig::origin(3), "pi__ask", None, None));
    tokio::time::sleep(Duration::from_millis(300)).await;
    rig.run.cancel_request(Rig::origin(3));
    assert_eq!((ask.next().await, start.elapsed().as_millis()), (Update::GivenUp, 300));
    assert_eq!(rig.told.take(), ["start ask {}", "cancel 1: the client cancelled the request"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((rig.run.pending(), rig.told.take().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn trial_21_variant_a_host_that_takes_no_calls_yet_gets_them_late_or_never() {
    let rig = Rig::new(Options::default());
    let start = Instant::now();
    let begin = |request, tool: &str| waiting(rig.run.begin(Rig::origin(request), tool, None, None));
    let (slow, fast) = (begin(1, "pi__slow"), begin(2, "pi__fast"));
    tokio::time::sleep(Duration::from_millis(900)).await;
    host(&rig);
    let (slow, fast) = tokio::join!(end(slow, start), end(fast, start));
    assert_eq!((text(Some(fast.0)), fast.1), ("fast".to_owned(), 950));
    assert_eq!((rejection(Some(slow.0)).kind, slow.1), (RejectionKind::Error, 1000));
}

#[tokio::test(start_paused = true)]
async fn trial_21_variant_a_thousand_calls_in_flight_each_with_their_own_deadline() {
    let mut rig = Rig::bound(Options::default());
    let start = Instant::now();
    let mut waiters = Vec::new();
    for n in 0..1000 {
        if n % 10 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let arrived = Instant::now();
        waiters.push((rig.call("slow"), arrived));
    }
    assert_eq!(rig.run.pending(), 1000);
    for (mut waiter, arrived) in waiters {
        rejection(Some(waiter.next().await));
        assert!(start.elapsed().as_millis() >= 1000 && arrived.elapsed() >= Duration::from_secs(1));
    }
    assert_eq!((rig.run.pending(), start.elapsed().as_millis()), (0, 1100));
    assert_eq!(rig.told.take().len(), 2000);
}
