//! The harness measured by itself: its yardsticks carry everything, and what they do wrong is found.
#![cfg(target_os = "linux")]

use std::error::Error;
use std::process::Command;

use serde_json::{Value, json};

const BENCH: &str = env!("CARGO_BIN_EXE_toolway-bench");

/// The rows that a command of the harness prints.
fn rows(arguments: &[&str]) -> Result<Vec<Value>, Box<dyn Error>> {
    let done = Command::new(BENCH).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    let stdout = String::from_utf8(done.stdout)?;
    let rows: Vec<Value> =
        stdout.lines().filter(|l| l.starts_with('{')).filter_map(|l| serde_json::from_str(l).ok()).collect();
    if rows.is_empty() {
        return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(rows)
}

const SMALL: [&str; 9] =
    ["client", "--calls", "50", "--pipe", "500", "--cold", "0", "--sizes", "9000,1000000"];

/// Every call answered, every text whole.
fn assert_whole(row: &Value, name: &str) {
    assert_eq!((&row["echo_n"], &row["pipe_n"]), (&json!(50), &json!(500)), "{name}: {row}");
    let bad = |key: &str| key.ends_with("verdict") || key.ends_with("error") || key == "mismatches";
    assert!(!row.as_object().is_some_and(|row| row.keys().any(|key| bad(key))), "{name}: {row}");
    assert!(row["alive_after"] == true && row["blob_1M_ms"].is_number(), "{name}: {row}");
}

#[test]
fn upstream_alone_answers_over_stdio_and_http() -> Result<(), Box<dyn Error>> {
    for upstream in ["stdio", "http", "http-sse"] {
        assert_whole(&rows(&[&SMALL[..], &["--upstream", upstream]].concat())?[0], upstream);
    }
    Ok(())
}

#[test]
fn relays_carry_every_call() -> Result<(), Box<dyn Error>> {
    for mode in [&["relay", "--"][..], &["relay", "--splice", "--"], &["relay", "--frame", "--"]] {
        let row = rows(&[&SMALL[..], &["--", BENCH], mode, &["{up}"]].concat())?.remove(0);
        assert_whole(&row, &mode.concat());
        assert!(row["rss_idle_mb"].as_f64().is_some_and(|mib| mib > 0.5), "{row}");
    }
    Ok(())
}

#[test]
fn bridge_carries_every_call() -> Result<(), Box<dyn Error>> {
    for upstream in ["http", "http-sse"] {
        let command = [&SMALL[..], &["--upstream", upstream, "--", BENCH, "bridge", "{url}"]].concat();
        assert_whole(&rows(&command)?[0], upstream);
    }
    Ok(())
}

#[test]
fn relay_is_transparent_to_every_check() -> Result<(), Box<dyn Error>> {
    let row = rows(&["checks", "--fronts", "fronts.json", "--only", "relay"])?.remove(0);
    let row = row.as_object().ok_or("a row is an object")?;
    for (key, value) in
        row.iter().filter(|(key, _)| key.starts_with("answer:") || key.starts_with("initialize"))
    {
        assert_eq!(value, "identical", "{key}");
    }
    assert!(row["no_json_tree"].as_str().is_some_and(|word| word.starts_with("no tree")), "{row:?}");
    assert_eq!(row.keys().filter(|key| key.starts_with("answer:")).count(), 11);
    Ok(())
}

#[test]
fn large_stream_is_counted_whole() -> Result<(), Box<dyn Error>> {
    let command =
        ["huge", "--fronts", "fronts.json", "--only", "relay", "--rounds", "1", "--bytes", "10_000_000"];
    let row = rows(&command)?.remove(0);
    for made in ["huge_outcome", "huge_made_outcome"] {
        assert_eq!(row[made], "passed whole", "{row}");
    }
    Ok(())
}

#[test]
fn what_a_bare_relay_does_wrong_is_found() -> Result<(), Box<dyn Error>> {
    let scenarios = "crash,garbage,sigterm_inflight,sigkill_ignores_eof";
    let done = Command::new(BENCH)
        .args(["faults", "--fronts", "fronts.json", "--only", "relay", "--judge", "--scenarios", scenarios])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    let stdout = String::from_utf8(done.stdout)?;
    let wanted = "stdio relay: 1/4  wrong: crash, sigterm_inflight, sigkill_ignores_eof";
    assert!(stdout.contains(wanted) && done.status.code() == Some(1), "{stdout}");
    Ok(())
}
