//! A gibibyte through the guard: how long it takes and how much memory. Run by hand, in release, on a tmpfs:
//! `cargo test --release -p toolway-guard --test large -- --ignored --nocapture`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use toolway_guard::{Action, CallInfo, Guard, GuardConfig};
use toolway_wire::Verdict;

const GIB: usize = 1 << 30;
const PIECE: usize = 64 << 10;

/// Peak resident kibibytes of this process.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Processor time of this process so far, in hundredths of a second: user and system.
fn ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn pass(name: &str, unit: &str, piece: usize) -> Result<(), Box<dyn Error>> {
    let root = Path::new("/dev/shm").join(format!("toolway-large-{}", std::process::id()));
    let guard = Guard::new(GuardConfig::new(root.clone()));
    let chunk: Vec<u8> = unit.bytes().cycle().take(piece / unit.len() * unit.len()).collect();
    let call = CallInfo { method: "tools/call".into(), tool: Some("t".into()), ..CallInfo::default() };
    let (begin, ticks_before) = (SystemTime::now(), ticks().unwrap_or(0));
    let mut intake = guard.intake();
    intake.feed(br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""#);
    for _ in 0..GIB / chunk.len() {
        intake.feed(&chunk);
    }
    intake.feed(br#""}]}}"#);
    let mut taken = intake.finish();
    let (took_in, ticks_in) = (begin.elapsed()?, ticks().unwrap_or(0) - ticks_before);
    let Verdict::Message(envelope) = taken.verdict else { return Err("no message".into()) };
    let Action::Replace { shape, limit } = guard.action(envelope, Some(&call)) else {
        return Err("passes".into());
    };
    let answer = guard.replace(envelope, Some(&call), shape, limit, &mut taken.body).ok_or("passes")?;
    let (whole, ticks_all) = (begin.elapsed()?, ticks().unwrap_or(0) - ticks_before);
    std::io::stdout().write_all(
        format!(
            "{name}: taken in {took_in:.2?} ({ticks_in}0 ms of processor), saved, viewed and answered after {whole:.2?} ({ticks_all}0 ms), {} bytes, peak {} KiB\n",
            answer.len(),
            peak_kib().unwrap_or(0)
        )
        .as_bytes(),
    )?;
    std::fs::remove_dir_all(root)?;
    assert!(answer.len() <= 10_000);
    Ok(())
}

#[test]
#[ignore = "needs 2 GiB on /dev/shm; a measurement"]
fn a_gibibyte_is_fast_and_small() -> Result<(), Box<dyn Error>> {
    pass("one run of letters", "x", PIECE)?;
    pass(
        "lines of 80",
        "The quick brown fox jumps over the lazy dog and runs away from it, once more.\\n",
        PIECE,
    )?;
    pass("escapes and umlauts", "größer \\\"als\\\" \\u00e9 \\t 漢字\\n", PIECE)?;
    Ok(())
}
