//! Many echo calls in flight at once: over stdio a window of lines, over HTTP a window of connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::http_link::HttpLink;
use super::stdio_link::StdioLink;
use super::{Got, Link, Running};
use crate::json;

/// What a pipelined run did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pipelined {
    pub(crate) answered: usize,
    pub(crate) seconds: f64,
    pub(crate) mismatches: usize,
    /// Lines on the front's stdout that are not JSON objects.
    pub(crate) stray: usize,
}

/// The calls of one run: their ids begin at `base`.
struct Calls<'a> {
    base: u64,
    n: usize,
    /// One for each server: the calls go round.
    prefixes: &'a [String],
}

impl Calls<'_> {
    fn message(&self, k: usize) -> String {
        let id = self.base + k as u64;
        let prefix = &self.prefixes[k % self.prefixes.len()];
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{prefix}echo","arguments":{{"text":"pipelined call number {k}"}}}}}}"#
        )
    }

    /// Which call this is the right answer to.
    fn answered(&self, message: &[u8]) -> Option<usize> {
        let id = u64::try_from(json::int(json::get(message, "id"))?).ok()?;
        let k = usize::try_from(id.checked_sub(self.base)?).ok().filter(|k| *k < self.n)?;
        json::is_str(json::first_text_raw(message), &format!("pipelined call number {k}")).then_some(k)
    }
}

fn over_stdio(link: &mut StdioLink, calls: &Calls<'_>, window: usize, end: Instant) -> Pipelined {
    let mut out = Pipelined::default();
    let mut seen = vec![false; calls.n];
    let mut sent = 0;
    let grace = Duration::from_secs(5);
    let mut free = window;
    let mut stopped = false;
    loop {
        while free > 0 && sent < calls.n && !stopped {
            link.queue(calls.message(sent).as_bytes());
            sent += 1;
            free -= 1;
        }
        link.flush();
        if out.answered + out.mismatches >= sent {
            return out;
        }
        let deadline = if stopped { Instant::now() } else { end } + grace;
        let Got::Message(first) = link.receive(deadline) else { return out };
        // Take everything that has arrived, then refill in one write.
        let mut next = Some(first);
        free = 0;
        while let Some(message) = next {
            match calls.answered(&message) {
                Some(k) if !seen[k] => {
                    seen[k] = true;
                    out.answered += 1;
                    free += 1;
                }
                _ if !message.starts_with(b"{") => out.stray += 1,
                _ if json::get(&message, "method").is_none() => {
                    out.mismatches += 1;
                    free += 1;
                }
                _ => {}
            }
            next = link.take_line();
        }
        stopped |= Instant::now() > end;
    }
}

fn over_http(link: &HttpLink, calls: &Calls<'_>, window: usize, end: Instant) -> Pipelined {
    let (next, answered, mismatches) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let one = || {
        let Ok(mut conn) = link.target.connect() else { return };
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= calls.n || Instant::now() > end {
                return;
            }
            let posted = link.target.post(&mut conn, calls.message(k).as_bytes(), Duration::from_secs(10));
            match posted {
                Ok(p) if p.messages.iter().any(|m| calls.answered(m) == Some(k)) => {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok(_) => {
                    mismatches.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => {
                    mismatches.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..window {
            if std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, one).is_err() {
                break;
            }
        }
    });
    Pipelined { answered: answered.into_inner(), mismatches: mismatches.into_inner(), ..Pipelined::default() }
}

impl Running {
    /// `n` echo calls with at most `window` in flight, for at most `budget`.
    pub(crate) fn pipeline(&mut self, n: usize, window: usize, budget: Duration) -> Pipelined {
        let prefixes = self.prefixes.clone();
        let calls = Calls { base: self.reserve_ids(n), n, prefixes: &prefixes };
        let begin = Instant::now();
        let done = match &mut self.link {
            Link::Stdio(link) => over_stdio(link, &calls, window, begin + budget),
            Link::Http(link) => over_http(link, &calls, window, begin + budget),
        };
        Pipelined { seconds: begin.elapsed().as_secs_f64(), ..done }
    }
}

#[cfg(test)]
mod tests {
    use super::Calls;

    #[test]
    fn only_the_right_text_under_the_right_id_counts() {
        let prefixes = ["a__", "b__"].map(String::from);
        let calls = Calls { base: 10, n: 3, prefixes: &prefixes };
        assert!(calls.message(1).contains(r#""name":"b__echo""#) && calls.message(2).contains("a__echo"));
        let answer = |id: &str, k: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"pipelined call number {k}"}}]}}}}"#
            )
        };
        let table =
            [("11", 1, Some(1)), ("11", 2, None), ("9", 0, None), ("13", 3, None), ("12.0", 2, Some(2))];
        for (id, k, want) in table {
            assert_eq!(calls.answered(answer(id, k).as_bytes()), want, "{id} {k}");
        }
    }
}
