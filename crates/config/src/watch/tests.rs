use std::fs;
use std::sync::mpsc::{Receiver, channel};

use super::*;

const SETTLE: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(20);

fn watch(files: &[&Path]) -> (Watch, Receiver<()>) {
    let (sender, receiver) = channel();
    let files = files.iter().map(|file| file.to_path_buf()).collect();
    let watch = Watch::start(files, SETTLE, move || {
        sender.send(()).ok();
    });
    (watch.unwrap(), receiver)
}

fn told(receiver: &Receiver<()>) {
    receiver.recv_timeout(PATIENCE).expect("a change is told");
}

/// The same where a slow machine may see one change as two: what comes late is no answer to the next step.
fn told_and_quiet(receiver: &Receiver<()>) {
    told(receiver);
    while receiver.recv_timeout(SETTLE * 4).is_ok() {}
}

/// Nothing comes that was not told yet.
fn quiet(receiver: &Receiver<()>) {
    receiver.recv_timeout(SETTLE * 6).expect_err("nothing has changed");
}

#[test]
fn a_file_that_is_written_replaced_removed_and_made_again_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.json");
    fs::write(&file, "1").unwrap();
    let (_watch, changes) = watch(&[&file]);
    fs::write(&file, "22").unwrap();
    told(&changes);
    for text in ["333", "444"] {
        fs::write(dir.path().join("new"), text).unwrap();
        fs::rename(dir.path().join("new"), &file).unwrap();
        told(&changes);
    }
    fs::remove_file(&file).unwrap();
    told(&changes);
    fs::write(&file, "5").unwrap();
    told(&changes);
    quiet(&changes);
}

#[test]
fn what_happens_beside_a_file_is_not_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.json");
    fs::write(&file, "1").unwrap();
    let (_watch, changes) = watch(&[&file]);
    fs::write(dir.path().join("other"), "x").unwrap();
    fs::read(&file).unwrap();
    quiet(&changes);
}

#[test]
fn directories_may_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("a/b");
    let file = below.join("mcp.json");
    let (_watch, changes) = watch(&[&file]);
    for _ in 0..4 {
        fs::create_dir_all(&below).unwrap();
        fs::write(&file, "1").unwrap();
        told_and_quiet(&changes);
        fs::write(&file, "22").unwrap();
        told_and_quiet(&changes);
        fs::remove_dir_all(dir.path().join("a")).unwrap();
        told_and_quiet(&changes);
    }
}

/// As when the directory of a file is made and the file a moment later: nobody would watch the directory.
#[test]
fn a_signal_that_comes_while_nothing_has_changed_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a/mcp.json");
    let files = Arc::new(Mutex::new(vec![file.clone()]));
    let (signals, receiver) = sync_channel(1);
    let teller = Told {
        signals: signals.clone(),
        files: Arc::downgrade(&files),
        links: Arc::default(),
        stale: Arc::default(),
    };
    let mut watching = Watching::new(teller, SETTLE);
    fs::create_dir(dir.path().join("a")).unwrap();
    signals.try_send(Signal::Touched).ok();
    assert!(!watching.settled(&receiver, std::slice::from_ref(&file)));
    assert!(watching.woken);
    let (sender, changes) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || watching.run(&receiver, move || sender.send(()).unwrap()));
        // Seen by itself, or by the watch over its directory.
        fs::write(&file, "1").unwrap();
        told_and_quiet(&changes);
        fs::write(&file, "22").unwrap();
        told(&changes);
        drop(files);
        signals.try_send(Signal::Files).ok();
    });
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["one", "two", "place"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("one/mcp.json"), "1").unwrap();
    fs::write(at("two/mcp.json"), "22").unwrap();
    symlink(at("one/mcp.json"), at("place/mcp.json")).unwrap();
    let (_watch, changes) = watch(&[&at("place/mcp.json")]);
    fs::write(at("one/mcp.json"), "333").unwrap();
    told(&changes);
    symlink(at("two/mcp.json"), at("place/new")).unwrap();
    fs::rename(at("place/new"), at("place/mcp.json")).unwrap();
    told(&changes);
    fs::write(at("two/mcp.json"), "4444").unwrap();
    told(&changes);
}

#[test]
fn other_files_can_be_watched_later() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("1/f"), dir.path().join("2/f"));
    for file in [&one, &two] {
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(file, "1").unwrap();
    }
    let (watch, changes) = watch(&[&one]);
    watch.set(vec![two.clone()]);
    quiet(&changes);
    fs::write(&one, "22").unwrap();
    quiet(&changes);
    fs::write(&two, "22").unwrap();
    told(&changes);
}

#[test]
fn many_writes_are_told_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.json");
    fs::write(&file, "1").unwrap();
    let (_watch, changes) = watch(&[&file]);
    for length in 2..200 {
        fs::write(&file, "x".repeat(length)).unwrap();
    }
    told(&changes);
    assert!(changes.try_iter().count() < 20);
}

#[test]
fn the_thread_ends_with_the_watch() {
    let dir = tempfile::tempdir().unwrap();
    let (watch, changes) = watch(&[&dir.path().join("f")]);
    drop(watch);
    let ended = changes.recv_timeout(PATIENCE);
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
}
