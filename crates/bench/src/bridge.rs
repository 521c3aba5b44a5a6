//! Yardstick between stdio and Streamable HTTP: lines to POSTs on kept-alive connections, without a JSON tree, at
//! most 64 in flight. A lone message is answered by the thread that read it. It has no GET stream, no retries and no
//! errors but the plainest, on purpose; while an SSE reply streams on that path it does not read stdin.

use std::collections::VecDeque;
use std::io::{Error, Result, Write, stdin, stdout};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use crate::conn::Conn;
use crate::sys::held;
use crate::{json, sys};

const WORKERS: usize = 64;

enum Job {
    Line(Vec<u8>),
    /// Sent already; the answer is awaited on this connection.
    Finish(Conn, Vec<u8>),
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    workers: usize,
}

struct Bridge {
    host: String,
    path: String,
    free: Mutex<Vec<Conn>>,
    session: Mutex<String>,
    out: Mutex<()>,
    live: Mutex<usize>,
    ended: Condvar,
    queue: Mutex<Queue>,
    work: Condvar,
}

impl Bridge {
    fn send(&self, line: &[u8]) -> Result<Conn> {
        let kept = held(&self.free).pop();
        let mut conn = match kept {
            Some(conn) => conn,
            None => Conn::new(TcpStream::connect(&self.host)?),
        };
        let session = match held(&self.session).as_str() {
            "" => String::new(),
            id => format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18\r\n"),
        };
        let mut request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n{session}\r\n",
            self.path,
            self.host,
            line.len(),
        )
        .into_bytes();
        request.extend_from_slice(line);
        conn.stream.write_all(&request)?;
        Ok(conn)
    }

    fn write(&self, line: &[u8]) {
        let _turn = held(&self.out);
        sys::write_all(stdout(), line);
    }

    fn receive(&self, mut conn: Conn, want: bool) -> Result<()> {
        let Some(head) = conn.head()? else { return Err(Error::other("closed")) };
        if let Some(session) = head.get("mcp-session-id") {
            session.clone_into(&mut held(&self.session));
        }
        if head.is_events() {
            self.events(&mut conn)?;
        } else {
            let mut body = conn.body(&head)?;
            if want && !body.is_empty() {
                body.push(b'\n');
                self.write(&body);
            }
        }
        held(&self.free).push(conn);
        Ok(())
    }

    fn events(&self, conn: &mut Conn) -> Result<()> {
        let mut all = Vec::new();
        let (mut from, mut seen) = (0, 0);
        loop {
            let chunk = conn.chunk(&mut all)?;
            while let Some(k) = memchr::memmem::find(&all[seen..], b"\n\n") {
                let end = seen + k;
                if let Some(data) = memchr::memmem::find(&all[from..end], b"data: ") {
                    self.write(&all[from + data + 6..=end]);
                }
                from = end + 2;
                seen = from;
            }
            seen = all.len().saturating_sub(1).max(from);
            if chunk.is_none_or(|n| n == 0) {
                return Ok(());
            }
        }
    }

    fn post(&self, line: &[u8], want: bool) -> Result<()> {
        self.receive(self.send(line)?, want)
    }

    fn fail(&self, id: &[u8], error: &Error) {
        let message = json::quote(&error.to_string());
        let id = String::from_utf8_lossy(id);
        let answer = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":{message}}}}}\n"
        );
        self.write(answer.as_bytes());
    }

    fn line(self: &Arc<Self>, line: Vec<u8>, alone: bool) -> Result<()> {
        let id = json::get(&line, "id").map(<[u8]>::to_vec);
        let Some(id) = id.filter(|_| !json::is_str(json::get(&line, "method"), "initialize")) else {
            let want = json::get(&line, "id").is_some();
            if let Err(error) = self.post(&line, want) {
                sys::note(&format!("bridge: {error}"));
            }
            return Ok(());
        };
        let mut job = Job::Line(line);
        if alone && *held(&self.live) == 0 {
            let Job::Line(line) = &job else { return Ok(()) };
            match self.send(line) {
                Ok(conn) if answer_comes_first(&conn) => {
                    if let Err(error) = self.receive(conn, true) {
                        self.fail(&id, &error);
                    }
                    return Ok(());
                }
                Ok(conn) => job = Job::Finish(conn, id),
                Err(error) => {
                    self.fail(&id, &error);
                    return Ok(());
                }
            }
        }
        self.enqueue(job)
    }

    fn enqueue(self: &Arc<Self>, job: Job) -> Result<()> {
        *held(&self.live) += 1;
        let mut queue = held(&self.queue);
        queue.jobs.push_back(job);
        if queue.idle >= queue.jobs.len() || queue.workers == WORKERS {
            self.work.notify_one();
            return Ok(());
        }
        queue.workers += 1;
        let me = Arc::clone(self);
        std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
            loop {
                me.work_once();
            }
        })?;
        Ok(())
    }

    fn next_job(&self) -> Job {
        let mut queue = held(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return job;
            }
            queue.idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    fn work_once(&self) {
        let (id, done) = match self.next_job() {
            Job::Line(line) => {
                let done = self.post(&line, true);
                (json::get(&line, "id").unwrap_or(b"null").to_vec(), done)
            }
            Job::Finish(conn, id) => (id, self.receive(conn, true)),
        };
        if let Err(error) = done {
            self.fail(&id, &error);
        }
        *held(&self.live) -= 1;
        self.ended.notify_all();
    }
}

/// Waits for either: true if the answer came first, false if there is more to read on stdin.
fn answer_comes_first(conn: &Conn) -> bool {
    let stdin = stdin();
    let mut fds = [PollFd::new(&conn.stream, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
    retry_on_intr(|| poll(&mut fds, None)).is_ok() && !fds[0].revents().is_empty()
}

/// Serves stdin until it ends and everything in flight is answered.
pub(crate) fn run(url: &str) -> anyhow::Result<()> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let bridge = Arc::new(Bridge {
        host: host.to_owned(),
        path: format!("/{path}"),
        free: Mutex::default(),
        session: Mutex::default(),
        out: Mutex::default(),
        live: Mutex::default(),
        ended: Condvar::new(),
        queue: Mutex::default(),
        work: Condvar::new(),
    });
    let mut buf: Vec<u8> = Vec::with_capacity(1 << 16);
    let mut scanned = 0;
    while sys::read_more(stdin(), &mut buf, 1 << 16).is_ok_and(|n| n > 0) {
        let mut lines: Vec<Vec<u8>> = vec![];
        let mut end = 0;
        while let Some(k) = memchr::memchr(b'\n', &buf[scanned..]) {
            lines.push(buf[end..scanned + k].to_vec());
            end = scanned + k + 1;
            scanned = end;
        }
        buf.drain(..end);
        scanned = buf.len();
        let alone = lines.len() == 1;
        for line in lines.into_iter().filter(|l| !l.trim_ascii().is_empty()) {
            bridge.line(line, alone)?;
        }
    }
    let mut live = held(&bridge.live);
    while *live > 0 {
        let wait = bridge.ended.wait_timeout(live, Duration::from_secs(10));
        live = wait.unwrap_or_else(PoisonError::into_inner).0;
    }
    sys::quit(0)
}
