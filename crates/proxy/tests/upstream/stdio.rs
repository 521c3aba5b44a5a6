//! Connections to child processes: every way to start, and every way not to.

use std::time::{Duration, Instant};

use anyhow::Result;
use toolway_proxy::gateway::{Carrier, Connection, Eras, Known, Protocol, Stage, Target};
use toolway_testkit::Leaks;
use toolway_wire::era::Era;

use super::support::{DEADLINE, child, command, mark, shared, shared_with};

const MODERN: &str = r#"set defaults off
on initialize -> error -32601 unknown method
on server/discover -> answer {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;

#[tokio::test]
async fn a_legacy_server_answers_initialize_and_is_told_that_it_is_initialized() -> Result<()> {
    let mark = mark();
    let script = "on notifications/initialized -> stderr INITIALIZED\\n";
    let connection = Connection::open(&child(script, &mark)?, &shared()).await?;
    let negotiated = connection.negotiated();
    assert_eq!((negotiated.era, negotiated.carrier), (Era::Legacy, Carrier::Stdio));
    assert!(negotiated.version.starts_with("20") && negotiated.server_name().is_some());
    let mut connection = connection;
    let end = Instant::now() + DEADLINE;
    while connection.stderr().is_some_and(|text| !text.contains("INITIALIZED")) {
        assert!(Instant::now() < end, "not told");
        tokio::time::timeout(Duration::from_millis(10), connection.receive()).await.ok();
    }
    connection.close().await;
    Leaks::new(&mark).check(Duration::ZERO)
}

#[tokio::test]
async fn an_error_to_initialize_leads_to_discover_and_is_remembered() -> Result<()> {
    let mark = mark();
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("eras");
    let config = child(MODERN, &mark)?;
    let first = shared_with(Eras::new(Some(file.clone())));
    let connection = Connection::open(&config, &first).await?;
    assert_eq!((connection.negotiated().era, &*connection.negotiated().version), (Era::Modern, "2026-07-28"));
    connection.close().await;
    // A new process knows, and does not ask in vain: this server would not survive an initialize.
    let mut strict = child(&MODERN.replace("error -32601 unknown method", "exit 3"), &mark)?;
    strict.digest.clone_from(&config.digest);
    let again = shared_with(Eras::new(Some(file)));
    Connection::open(&strict, &again).await?.close().await;
    Ok(())
}

#[tokio::test]
async fn what_was_remembered_wrongly_is_found_out() -> Result<()> {
    let eras = Eras::new(None);
    let config = child("", &mark())?;
    eras.set(&config.digest, Known { era: Era::Modern, carrier: Carrier::Stdio });
    let shared = shared_with(eras);
    let connection = Connection::open(&config, &shared).await?;
    assert_eq!(connection.negotiated().era, Era::Legacy);
    connection.close().await;
    Ok(())
}

#[tokio::test]
async fn a_generation_that_is_asked_for_is_not_replaced() -> Result<()> {
    for (script, protocol, said) in [
        (MODERN, Protocol::Legacy, "initialize: the server refused the handshake: unknown method (-32601)"),
        ("", Protocol::Modern, "initialize: the server refused the handshake: "),
    ] {
        let mut config = child(script, &mark())?;
        config.protocol = protocol;
        let error = Connection::open(&config, &shared()).await.expect_err("connected").to_string();
        assert!(error.starts_with(said), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn an_absent_command_is_told_with_the_places_searched() {
    let error = Connection::open(&command("no-such-binary-xyz", &[]), &shared()).await.expect_err("found");
    assert_eq!(error.stage, Stage::Resolve);
    assert_eq!(error.reason, "command not found: no-such-binary-xyz; searched: /usr/local/bin:/usr/bin:/bin");
    assert_eq!(error.detail.searched, ["/usr/local/bin", "/usr/bin", "/bin"]);
    assert!(error.hint.is_some());
}

#[tokio::test]
async fn a_command_of_a_version_manager_is_pointed_at() -> Result<()> {
    let home = tempfile::tempdir()?;
    let bin = home.path().join(".nvm/versions/node/v22.1.0/bin");
    std::fs::create_dir_all(&bin)?;
    std::os::unix::fs::symlink("/bin/sh", bin.join("npx-of-test"))?;
    let mut config = command("npx-of-test", &[]);
    if let Target::Child(target) = &mut config.target {
        target.child.env.insert("HOME".into(), home.path().into());
    }
    let error = Connection::open(&config, &shared()).await.expect_err("found");
    assert_eq!(error.detail.found_at, [bin.join("npx-of-test").to_string_lossy()]);
    assert!(error.hint.is_some_and(|hint| hint.contains(".nvm/versions/node/v22.1.0/bin")));
    Ok(())
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let mut config = command("/bin/sh", &[]);
    if let Target::Child(target) = &mut config.target {
        target.child.cwd = Some("/no/such/place".into());
    }
    let error = Connection::open(&config, &shared()).await.expect_err("started");
    assert_eq!(
        (error.stage, &*error.reason),
        (Stage::Spawn, "the working directory does not exist: /no/such/place")
    );
}

#[tokio::test]
async fn a_crash_at_start_is_told_at_once_with_its_last_words_and_no_secret() {
    let script = r#"i=0; while [ $i -lt 2000 ]; do echo "line $i of the trace" >&2; i=$((i+1)); done
        echo "bad key hunter2-token" >&2; exit 7"#;
    let mut config = command("/bin/sh", &["-c", script]);
    config.timeouts.startup = DEADLINE * 4;
    let begun = Instant::now();
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert!(begun.elapsed() < DEADLINE);
    assert_eq!(error.stage, Stage::Spawn);
    let said = "the server exited with code 7 before it answered the handshake; its last words: ";
    assert!(error.reason.starts_with(said), "{}", error.reason);
    assert!(error.reason.ends_with("line 1999 of the trace | bad key [redacted]"), "{}", error.reason);
    let tail = error.detail.stderr.unwrap_or_default();
    assert!(
        tail.len() <= 8192 && tail.len() > 7000 && tail.ends_with("bad key [redacted]\n"),
        "{}",
        tail.len()
    );
    assert_eq!(error.detail.exit.map(|exit| exit.to_string()).as_deref(), Some("exited with code 7"));
}

#[tokio::test]
async fn a_mute_server_is_cut_at_its_time_and_gone() -> Result<()> {
    let mark = mark();
    let mut config =
        child("set defaults off\nset eof ignore\nset term ignore\non start -> spawn stubborn", &mark)?;
    config.timeouts.startup = Duration::from_millis(300);
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert_eq!((error.stage, &*error.reason), (Stage::Initialize, "no answer to initialize in 0.3 s"));
    assert!(error.detail.timed_out && error.hint.is_some());
    Leaks::new(&mark).check(DEADLINE)
}

#[tokio::test]
async fn banners_on_stdout_are_skipped_and_named_when_nothing_else_comes() -> Result<()> {
    let banner = r"on start -> raw Starting v1.0 ...\n\n{not json\n";
    let connection = Connection::open(&child(banner, &mark())?, &shared()).await?;
    connection.close().await;
    let mut config = child(&format!("set defaults off\n{banner}"), &mark())?;
    config.timeouts.startup = Duration::from_millis(500);
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert_eq!(error.detail.garbage, Some(("Starting v1.0 ...".to_owned(), 2)));
    assert!(error.hint.is_some_and(|hint| hint.contains("Starting v1.0")));
    Ok(())
}

#[tokio::test]
async fn stderr_of_any_size_does_not_hold_a_server_up() -> Result<()> {
    let config = child(
        r#"on initialize -> stderr {e*300000}\n
    answer {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"loud","version":"1"}}"#,
        &mark(),
    )?;
    let connection = Connection::open(&config, &shared()).await?;
    assert_eq!(connection.negotiated().server_name().as_deref(), Some("loud"));
    connection.close().await;
    Ok(())
}

#[tokio::test]
async fn two_hundred_connections_leave_nothing() -> Result<()> {
    let mark = mark();
    let config = child("", &mark)?;
    let shared = shared();
    let own = std::process::id();
    let open = || toolway_testkit::open_files(own).len();
    Connection::open(&config, &shared).await?.close().await;
    let before = open();
    for round in 0..50 {
        let (a, b, c, d) = tokio::join!(
            Connection::open(&config, &shared),
            Connection::open(&config, &shared),
            Connection::open(&config, &shared),
            Connection::open(&config, &shared),
        );
        for connection in [a, b, c, d] {
            let connection = connection?;
            if round % 2 == 0 { connection.close().await } else { drop(connection) }
        }
    }
    Leaks::new(&mark).check(DEADLINE)?;
    // Other tests of this process open and close files meanwhile.
    let end = Instant::now() + DEADLINE;
    while open() > before + 40 {
        assert!(Instant::now() < end, "{before} -> {}", open());
        tokio::task::yield_now().await;
    }
    Ok(())
}
