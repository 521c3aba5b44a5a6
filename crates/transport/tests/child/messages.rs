//! A child process as a message transport: lines both ways, and every way in which it can end.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use toolway_transport::{
    Child, ChildConfig, ChildTransport, Closed, Exit, Inbound, Members, Outbound, Payload, Transport,
};
use toolway_wire::{Scanner, Verdict};

use crate::support::{DEADLINE, Outcome, all_end, config, runs, script};

fn message(text: &str) -> Outcome<Outbound> {
    let mut scanner = Scanner::new();
    let Verdict::Message(envelope) = scanner.whole(text.as_bytes()) else { return Err("no message".into()) };
    let members = Members::One(envelope.clone());
    Ok(Outbound { payload: Payload::Bytes(text.to_owned().into()), members })
}

fn ping(id: usize, filler: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"f":"{filler}"}}}}"#)
}

/// The next whole line.
async fn line(transport: &mut ChildTransport) -> Outcome<String> {
    let mut line = Vec::new();
    loop {
        match timeout(DEADLINE, transport.receive()).await?.ok_or("the end")? {
            Inbound::Data { bytes, .. } => line.extend_from_slice(&bytes),
            Inbound::End { .. } => return Ok(String::from_utf8(line)?),
            Inbound::Ready => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
}

/// How it ended, after the lines that came before.
async fn end(transport: &mut ChildTransport) -> Outcome<String> {
    loop {
        if let Inbound::Closed { reason: Closed::Lost(reason) } =
            timeout(DEADLINE, transport.receive()).await?.ok_or("the end")?
        {
            assert!(transport.receive().await.is_none(), "nothing comes after the end");
            return Ok(reason);
        }
    }
}

async fn numbers(transport: &mut ChildTransport) -> Outcome<Vec<i32>> {
    line(transport).await?.split_whitespace().map(|number| Ok(number.parse()?)).collect()
}

#[tokio::test]
async fn messages_of_every_size_come_back_whole_and_in_order() -> Outcome {
    let mut transport = ChildTransport::spawn(&config("/bin/cat", &[])?)?;
    let sizes = [0, 1, 100, 8_000, 17_000, 70_000, 300_000, 2_000_000];
    let texts: Vec<String> = (0..200).map(|id| ping(id, &"x".repeat(sizes[id % sizes.len()]))).collect();
    let mut waiting = texts.iter();
    let mut received = 0;
    let mut refused = false;
    let mut next = waiting.next();
    while received < texts.len() {
        while let Some(text) = next {
            if !transport.ready() {
                refused = true;
                break;
            }
            transport.send(message(text)?)?;
            next = waiting.next();
        }
        assert!(line(&mut transport).await? == texts[received], "message {received}");
        received += 1;
    }
    assert!(refused, "what waits for the server is bounded");
    transport.close().await;
    assert_eq!(transport.exit(), Some(Exit::Code(0)), "it ended by itself when its stdin was closed");
    Ok(())
}

#[tokio::test]
async fn an_end_is_told_at_once_with_how_it_came_and_what_was_said() -> Outcome {
    for (text, reason) in [
        ("echo one; echo 'the reason' >&2; exit 7", "the server exited with code 7"),
        ("echo one; kill -KILL $$", "the server was ended by SIGKILL"),
        ("echo one; exec 1>&-; sleep 1000", "the server closed its standard output"),
    ] {
        let mut transport = ChildTransport::spawn(&script(text)?)?;
        assert_eq!(line(&mut transport).await?, "one", "what came before the end is not lost");
        let begun = Instant::now();
        assert_eq!(end(&mut transport).await?, reason);
        assert!(begun.elapsed() < DEADLINE / 2);
        assert_eq!(transport.stderr().text().trim(), if text.contains("reason") { "the reason" } else { "" });
        transport.close().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_reads_no_more_is_lost() -> Outcome {
    let mut transport = ChildTransport::spawn(&script("exec 0<&-; echo closed; sleep 1000")?)?;
    assert_eq!(line(&mut transport).await?, "closed");
    // The supervisor lets go of its own end of the pipe a moment after the start.
    let reason = loop {
        transport.send(message(&ping(1, ""))?)?;
        if let Ok(ended) = timeout(Duration::from_millis(20), end(&mut transport)).await {
            break ended?;
        }
    };
    assert_eq!(reason, "the server closed its standard input");
    transport.close().await;
    Ok(())
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() -> Outcome {
    let mut transport = ChildTransport::spawn(&config("/etc/passwd", &[])?)?;
    end(&mut transport).await?;
    let failure = transport.start_failure().ok_or("no reason")?.to_string();
    assert!(failure.starts_with("cannot start /etc/passwd: Permission denied"), "{failure}");
    Ok(())
}

#[tokio::test]
async fn stderr_is_read_although_nobody_receives() -> Outcome {
    let text = "head -c 1000000 /dev/zero | tr '\\0' 'e' >&2; echo >&2; echo done >&2; cat >/dev/null";
    let mut transport = ChildTransport::spawn(&script(text)?)?;
    let begun = Instant::now();
    while !transport.stderr().text().ends_with("done\n") {
        assert!(begun.elapsed() < DEADLINE, "{}", transport.stderr().text().len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    transport.close().await;
    Ok(())
}

#[tokio::test]
async fn closing_ends_a_tree_that_ignores_everything_and_holds_nobody_up() -> Outcome {
    let stubborn = "trap '' TERM; exec sleep 1000";
    let text = format!(
        "trap '' TERM; setsid sh -c \"{stubborn}\" </dev/null >/dev/null 2>&1 & echo $$ $!; \
         while :; do sleep 1000; done"
    );
    let mut transport = ChildTransport::spawn(&script(&text)?)?;
    let pids = numbers(&mut transport).await?;
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    let ticking = async {
        loop {
            let before = Instant::now();
            tokio::time::sleep(Duration::from_millis(10)).await;
            longest = longest.max(before.elapsed());
        }
    };
    tokio::select! { () = transport.close() => {}, () = ticking => {} }
    assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
    assert!(longest < Duration::from_secs(1), "the event loop stood still for {longest:?}");
    assert!(!pids.iter().any(|&pid| runs(pid)), "all are gone when close returns");
    transport.close().await;
    Ok(())
}

#[tokio::test]
async fn dropping_it_ends_the_tree_by_force() -> Outcome {
    let mut transport = ChildTransport::spawn(&script("trap '' TERM; sleep 1000 & echo $$ $!; wait")?)?;
    let pids = numbers(&mut transport).await?;
    drop(transport);
    all_end(&pids)
}

#[tokio::test]
async fn a_server_outlives_the_thread_that_started_it() -> Outcome {
    let config = config("/bin/cat", &[])?;
    let started = std::thread::spawn(move || Child::spawn(&config)).join().map_err(|_| "a panic")?;
    let mut transport = ChildTransport::over(started?)?;
    // The supervisor has been told of the end of that thread by now, or is told any moment.
    for id in 0..100 {
        transport.send(message(&ping(id, ""))?)?;
        assert_eq!(line(&mut transport).await?, ping(id, ""));
    }
    transport.close().await;
    Ok(())
}

#[tokio::test]
async fn without_a_supervisor_what_holds_the_pipe_open_does_not_hide_the_end() -> Outcome {
    let config = ChildConfig { supervise: None, ..script("sleep 1000 & echo $!; exit 3")? };
    let mut transport = ChildTransport::spawn(&config)?;
    let pids = numbers(&mut transport).await?;
    assert_eq!(end(&mut transport).await?, "the server exited with code 3");
    drop(transport);
    for pid in pids {
        crate::support::send(pid, rustix::process::Signal::KILL)?;
    }
    Ok(())
}
