//! The few system calls and process-wide habits that the harness needs, without unsafe code. Knows nothing of MCP.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, retry_on_intr};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Reads once into the spare room of `buf`, of which there is at least `room` bytes. 0 is the end.
pub(crate) fn read_more(fd: impl AsFd, buf: &mut Vec<u8>, room: usize) -> rustix::io::Result<usize> {
    buf.reserve(room);
    retry_on_intr(|| rustix::io::read(&fd, spare_capacity(buf)))
}

/// Writes everything; false when the other side is gone.
pub(crate) fn write_all(fd: impl AsFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(&fd, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

/// Bytes from one descriptor to another through a buffer of 64 KiB, until either ends.
pub(crate) fn copy(from: impl AsFd, to: impl AsFd) {
    let mut buf = vec![0u8; 1 << 16];
    while let Ok(n) = retry_on_intr(|| rustix::io::read(&from, &mut buf[..])) {
        if n == 0 || !write_all(&to, &buf[..n]) {
            return;
        }
    }
}

/// The lock, also after a thread died with it: a measurement goes on.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A wait that is part of a scenario or of polling another process, never of synchronising threads.
#[expect(clippy::disallowed_methods, reason = "other processes are polled, and tools sleep on purpose")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Ends the process from wherever it is: a crash on purpose, or a yardstick that is done.
#[expect(
    clippy::exit,
    reason = "the upstream crashes on purpose, the yardsticks end with their child's code"
)]
pub(crate) fn quit(code: i32) -> ! {
    std::process::exit(code)
}

/// One line on stdout, at once.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).ok();
}

/// One line on stderr.
pub(crate) fn note(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}

/// Binds this process, and so every process that it starts, to the last core it may use.
pub(crate) fn pin_to_one_core() -> anyhow::Result<usize> {
    let allowed = sched_getaffinity(None)?;
    let core = (0..CpuSet::MAX_CPU).rev().find(|c| allowed.is_set(*c)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one)?;
    Ok(core)
}

/// A count as a float, for rates and means.
#[expect(clippy::cast_precision_loss, reason = "counts of calls and bytes here are far below 2^52")]
pub(crate) fn float(n: u64) -> f64 {
    n as f64
}

/// Milliseconds as a float.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A value at a percentage of the sorted list, the nearest one; NaN of an empty list.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    values[(last * percent + 50) / 100]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_takes_the_nearest_value() {
        assert!(percentile(&mut [], 50).is_nan());
        assert!((percentile(&mut [3.0, 1.0, 2.0], 50) - 2.0).abs() < f64::EPSILON);
        let mut many: Vec<f64> = (0..=100).map(float).collect();
        assert!((percentile(&mut many, 99) - 99.0).abs() < f64::EPSILON);
    }

    #[test]
    fn pinned_process_may_use_one_core_only() {
        // In a thread of its own: the affinity is a property of the thread.
        let count = std::thread::spawn(|| {
            pin_to_one_core().expect("affinity can be set");
            sched_getaffinity(None).expect("affinity can be read").count()
        });
        assert_eq!(count.join().expect("thread ends"), 1);
    }
}
