//! How programs end, by themselves and by the stop sequence, and that nothing of their tree survives.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use toolway_transport::Exit;

use crate::support::{
    DEADLINE, Outcome, all_end, config, line, numbers, rest, runs, script, send, start, supervised, until,
};

/// A grandchild that ignores TERM and one that also leaves session and group, as a daemon does; prints both
/// numbers, then goes on as told.
fn tree(then: &str) -> String {
    let stubborn = "trap '' TERM; echo $$ >&3; exec sleep 1000";
    format!(
        "exec 3>&1; sh -c \"{stubborn}\" </dev/null >/dev/null 2>&1 & \
         (setsid sh -c \"{stubborn}\" </dev/null >/dev/null 2>&1 &) ; exec 3>&-; {then}"
    )
    .replace("$$", "\\$\\$")
}

fn two(stdout: &mut impl std::io::BufRead) -> Outcome<Vec<i32>> {
    Ok([numbers(stdout)?, numbers(stdout)?].concat())
}

#[test]
fn codes_and_signals_are_the_programs_own() -> Outcome {
    let table = [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("exit 255", Exit::Code(255)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -SEGV $$", Exit::Signal(11)),
        ("kill -PIPE $$", Exit::Signal(13)),
        ("kill -INT $$", Exit::Signal(2)),
        ("kill -HUP $$", Exit::Signal(1)),
        ("kill -USR1 $$", Exit::Signal(10)),
    ];
    for (text, expected) in table {
        let (child, mut stdout, _) = start(&script(text)?)?;
        rest(&mut stdout)?;
        assert_eq!(child.wait_timeout(DEADLINE), Some(expected), "{text}");
        assert_eq!(child.try_wait(), Some(expected), "it is known for good");
    }
    Ok(())
}

#[test]
fn a_program_that_ends_takes_its_daemons_with_it() -> Outcome {
    let (child, mut stdout, _) = start(&script(&tree("exit 7"))?)?;
    let pids = two(&mut stdout)?;
    assert_eq!(child.wait_timeout(DEADLINE), Some(Exit::Code(7)));
    assert!(!pids.iter().any(|&pid| runs(pid)), "all are gone when the end is reported");
    Ok(())
}

#[test]
fn stop_ends_a_tree_that_ignores_everything() -> Outcome {
    let begin = Instant::now();
    let (mut child, mut stdout, _) = start(&script(&tree("trap '' TERM; while :; do sleep 1000; done"))?)?;
    let pids = two(&mut stdout)?;
    let stdin = child.take_stdin();
    assert_eq!(child.stop(|| drop(stdin)), Exit::Signal(9));
    assert!(!pids.iter().any(|&pid| runs(pid)));
    assert!(begin.elapsed() < DEADLINE);
    Ok(())
}

#[test]
fn stop_is_quick_with_a_program_that_ends_at_the_end_of_its_input() -> Outcome {
    let (mut child, _stdout, _) = start(&config("/bin/cat", &[])?)?;
    let stdin = child.take_stdin();
    let begin = Instant::now();
    assert_eq!(child.stop(|| drop(stdin)), Exit::Code(0));
    assert!(begin.elapsed() < Duration::from_secs(2), "no step but the first was needed");
    Ok(())
}

#[test]
fn terminate_lets_a_program_end_in_its_own_way() -> Outcome {
    for supervise in [true, false] {
        let mut config = script("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")?;
        config.supervise = config.supervise.filter(|_| supervise);
        let (child, mut stdout, _) = start(&config)?;
        assert_eq!(line(&mut stdout)?, "up");
        child.terminate();
        assert_eq!(child.wait_timeout(DEADLINE), Some(Exit::Code(5)));
        assert_eq!(rest(&mut stdout)?, "bye\n");
    }
    Ok(())
}

#[test]
fn a_stopped_program_is_woken_to_end() -> Outcome {
    let (child, mut stdout, _) =
        start(&script("trap 'exit 5' TERM; echo $$; while :; do sleep 0.05; done")?)?;
    let pids = numbers(&mut stdout)?;
    send(pids[0], Signal::STOP)?;
    child.terminate();
    assert_eq!(child.wait_timeout(DEADLINE), Some(Exit::Code(5)));
    Ok(())
}

#[test]
fn kill_all_ends_the_tree_even_if_the_supervisor_is_stopped() -> Outcome {
    let (child, mut stdout, _) = start(&script(&tree("sleep 1000"))?)?;
    let pids = two(&mut stdout)?;
    send(i32::try_from(child.id())?, Signal::STOP)?;
    child.kill_all();
    assert_eq!(child.try_wait(), Some(Exit::Signal(9)));
    all_end(&pids)
}

#[test]
fn dropping_a_child_ends_its_tree() -> Outcome {
    let (child, mut stdout, _) = start(&script(&tree("sleep 1000"))?)?;
    let pids = two(&mut stdout)?;
    drop(child);
    all_end(&pids)
}

#[test]
fn a_program_outlives_the_thread_that_started_it() -> Outcome {
    let started = std::thread::spawn(|| start(&script("echo up; read line; echo $line; exit 3")?));
    let (mut child, mut stdout, _) = started.join().map_err(|_| "the thread failed")??;
    assert_eq!(line(&mut stdout)?, "up");
    // The supervisor has been told of the thread's death by now or will be: it must look who died.
    let mut stdin = child.take_stdin().ok_or("no stdin")?;
    std::io::Write::write_all(&mut stdin, b"still here\n")?;
    assert_eq!(line(&mut stdout)?, "still here");
    assert_eq!(child.wait_timeout(DEADLINE), Some(Exit::Code(3)));
    Ok(())
}

#[test]
fn two_hundred_starts_leave_no_process_and_no_descriptor() -> Outcome {
    // In a process of its own: other tests open descriptors meanwhile.
    let output = std::process::Command::new(supervised()?)
        .args(["--leaks", "200", "--", "/bin/sh", "-c", "sleep 1000 & exit 0"])
        .output()?;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "descriptors 0 children 0\n", "{output:?}");
    Ok(())
}

#[test]
fn waiting_ends_at_its_deadline() -> Outcome {
    let (child, _stdout, _) = start(&config("/bin/cat", &[])?)?;
    let begin = Instant::now();
    assert_eq!(child.wait_timeout(Duration::from_millis(50)), None);
    assert!(begin.elapsed() >= Duration::from_millis(50) && begin.elapsed() < DEADLINE);
    child.kill_all();
    until("the end", || child.try_wait().is_some())?;
    Ok(())
}
