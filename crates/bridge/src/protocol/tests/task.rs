//! The task itself: how it ends, and what it does with a host that does not read.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_task_ends_by_shutdown_by_the_end_of_lines_by_a_lost_reader_and_by_a_signal() {
    let mut asked = Task::start();
    asked.hello().await;
    asked.lines.send(request(2, "shutdown", &json!({}))).await.unwrap();
    assert_eq!(asked.next().await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert_eq!(asked.next().await["method"], "bridge/closing");
    assert_eq!(asked.ended().await, HostEnding::Closed);

    let Task { lines, mut out, running: mut task, signal, .. } = Task::start();
    drop(lines);
    assert_eq!(task.join_next().await.unwrap().unwrap().0, HostEnding::Closed);
    assert!(out.recv().await.is_none(), "a host that never said hello is told nothing");
    drop(signal);

    let Task { lines, out, running: mut task, signal, .. } = Task::start();
    drop(out);
    assert_eq!(task.join_next().await.unwrap().unwrap().0, HostEnding::HostGone);
    drop((lines, signal));

    let mut signalled = Task::start();
    signalled.hello().await;
    std::mem::replace(&mut signalled.signal, tokio::sync::oneshot::channel().0).send(15).unwrap();
    let closing = signalled.next().await;
    assert_eq!(closing["params"]["reason"], "the bridge ends: SIGTERM");
    assert_eq!(signalled.ended().await, HostEnding::Signal(15));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_read_is_not_read_from() {
    let mut task = Task::start();
    task.hello().await;
    let mut sent = 0_u64;
    // Each answer is some kilobytes: the outbox is full long before this ends.
    let report = |id| request(id, "report/read", &json!({}));
    while tokio::time::timeout(Duration::from_secs(1), task.lines.send(report(100 + sent))).await.is_ok() {
        sent += 1;
        assert!(sent < 100_000, "it reads on and on");
    }
    assert!(sent > 100, "{sent}");
    for n in 0..sent {
        assert_eq!(task.next().await["id"], 100 + n);
    }
    drop(task.lines);
    assert_eq!(task.running.join_next().await.unwrap().unwrap().0, HostEnding::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_end_has_two_seconds_in_all_also_where_the_host_does_not_read() {
    let mut task = Task::start();
    task.hello().await;
    let report = |id| request(id, "report/read", &json!({}));
    while tokio::time::timeout(Duration::from_secs(1), task.lines.send(report(7))).await.is_ok() {}
    let begun = Instant::now();
    std::mem::replace(&mut task.signal, tokio::sync::oneshot::channel().0).send(1).unwrap();
    let (ending, deadline) = task.running.join_next().await.unwrap().unwrap();
    assert_eq!((ending, deadline - begun), (HostEnding::Signal(1), Duration::from_secs(2)));
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "what is in the channel needs its time too: {:?}",
        begun.elapsed()
    );
}
