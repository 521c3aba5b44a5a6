//! The fake server by itself, over each of its transports: what tests of a relay rely on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use toolway_testkit::{Client, Hub, Leaks, Peer, SOON, listening};

const FAKEMCP: &str = env!("CARGO_BIN_EXE_fakemcp");

fn stdio(script: &str) -> Result<(Client, Peer, Hub)> {
    let mut hub = Hub::new()?;
    let mut command = Command::new(FAKEMCP);
    command.args(["--script", script, "--test", &hub.address().to_string()]);
    let client = Client::start(&mut command)?;
    let peer = hub.arrival("server", SOON)?;
    Ok((client, peer, hub))
}

fn text(line: &[u8]) -> &str {
    std::str::from_utf8(line).unwrap_or("not UTF-8")
}

#[test]
fn the_handshake_needs_no_script_and_all_bytes_are_reported() {
    let (mut client, mut peer, _hub) = stdio("on tools/call/build -> text hi").unwrap();
    let answer = client.handshake().unwrap();
    assert_eq!(
        text(&answer),
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}}"#
    );
    client.send(r#"{"jsonrpc":"2.0", "id":"l" ,"method":"tools/list"}"#).unwrap();
    let list = client.answer("\"l\"").unwrap();
    assert!(text(&list).contains(r#"{"tools":[{"name":"build","#));
    client.call("1", "build", "{}").unwrap();
    client.call("2", "echo", r#"{"text":"\u00e9"}"#).unwrap();
    client.call("3", "other", "{}").unwrap();
    assert!(text(&client.answer("2").unwrap()).contains(r#""text":"\u00e9""#));
    assert!(text(&client.answer("1").unwrap()).contains("hi"));
    assert!(text(&client.answer("3").unwrap()).contains("-32602"));
    client.close_stdin();
    assert!(client.wait_exit(SOON).unwrap().success());
    client.capture.check_complete().unwrap();
    peer.wait_gone(SOON).unwrap();
    assert!(
        String::from_utf8(peer.received())
            .unwrap()
            .contains("{\"jsonrpc\":\"2.0\", \"id\":\"l\" ,\"method\":\"tools/list\"}\n")
    );
}

#[test]
fn rules_count_wait_and_are_armed() {
    let script = "on ping 1 -> error -1 first\n\
                  on ping 3+ when on -> answer {\"n\":{count}}\n\
                  on tools/call/slow\n    wait go\n    text slow\n\
                  on tools/call/ask\n    send {\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"roots/list\"}\n    wait response:\"s\"\n    text asked";
    let (mut client, mut peer, _hub) = stdio(script).unwrap();
    client.answer_to("roots/list", "{\"roots\":[]}");
    client.call("\"s\"", "slow", "{}").unwrap();
    let ping = |client: &mut Client, id: &str| {
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).unwrap();
        String::from_utf8(client.answer(id).unwrap()).unwrap()
    };
    assert!(ping(&mut client, "1").contains("first"));
    assert!(ping(&mut client, "2").contains("{}"));
    assert!(ping(&mut client, "3").contains("{}"));
    peer.act("arm on").unwrap();
    assert!(ping(&mut client, "4").contains(r#"{"n":4}"#));
    peer.act("arm go").unwrap();
    client.answer("\"s\"").unwrap();
    client.call("5", "ask", "{}").unwrap();
    client.answer("5").unwrap();
    peer.act("send {\"jsonrpc\":\"2.0\",\"method\":\"n\"}").unwrap();
    let noticed = client.line_that(SOON, "n", |line| line.ends_with(b"\"n\"}"));
    noticed.unwrap();
    assert!(peer.act("status 500").is_err());
}

#[test]
fn bytes_leave_exactly_as_scripted() {
    let script = r#"
on start -> raw \xef\xbb\xbfbanner\r\n
on tools/call/bytes
    pieces 1
    raw {"jsonrpc":"2.0","id":{id},
    raw "result":{}}\n\xff{x*3}\n
on tools/call/end
    stderr last words
    close
"#;
    let (mut client, _peer, _hub) = stdio(script).unwrap();
    client.capture.allow("banner");
    client.capture.allow("xxx");
    assert_eq!(client.next_line(SOON).unwrap().unwrap(), b"\xef\xbb\xbfbanner\r");
    client.call("1", "bytes", "{}").unwrap();
    client.answer("1").unwrap();
    assert_eq!(client.next_line(SOON).unwrap().unwrap(), b"\xffxxx");
    client.call("2", "end", "{}").unwrap();
    assert_eq!(client.next_line(SOON).unwrap(), None);
    client.close_stdin();
    assert!(client.wait_exit(SOON).unwrap().success());
    assert_eq!(client.stderr(), "last words\n");
    assert_eq!(client.capture.unanswered(), ["2"]);
    client.capture.check().unwrap();
}

#[test]
fn ends_are_as_scripted_and_what_stays_is_seen() {
    let mark = "fakemcp-test-mark-stays";
    let script = "set eof ignore\nset term ignore\n\
                  on tools/call/fork -> spawn setsid stubborn orphan\n\
                  on tools/call/die -> exit 7";
    let mut hub = Hub::new().unwrap();
    let mut command = Command::new(FAKEMCP);
    command.args(["--script", script, "--mark", mark]);
    command.args(["--test", &hub.address().to_string()]);
    let mut client = Client::start(&mut command).unwrap();
    let mut peer = hub.arrival("server", SOON).unwrap();
    client.call("1", "fork", "{}").unwrap();
    let mut stays = hub.arrival("linger", SOON).unwrap();
    client.signal(Signal::TERM).unwrap();
    client.call("2", "echo", r#"{"text":""}"#).unwrap();
    client.answer("2").unwrap();
    client.call("3", "die", "{}").unwrap();
    assert_eq!(client.wait_exit(SOON).unwrap().code(), Some(7));
    peer.wait_gone(SOON).unwrap();
    let leaks = Leaks::new(mark);
    assert!(leaks.processes().iter().any(|(pid, _)| *pid == stays.pid()));
    drop(client);
    stays.tell("anything").unwrap();
    drop(stays);
    leaks.check(SOON).unwrap();
}

#[test]
fn a_deaf_client_reads_when_it_wants_to() {
    let mut command = Command::new(FAKEMCP);
    command.args(["--script", "on tools/call/big -> text {x*5000000}"]);
    let mut client = Client::start_deaf(&mut command).unwrap();
    client.call("1", "big", "{}").unwrap();
    client.call("2", "big", "{}").unwrap();
    let hundred = std::time::Duration::from_millis(100);
    assert!(client.answer_within("1", hundred).is_err());
    client.read_on();
    assert!(client.answer("2").unwrap().len() > 5_000_000);
}

struct Web {
    process: Child,
    peer: Peer,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        self.process.wait().map(drop).unwrap_or_default();
    }
}

impl Web {
    fn start(transport: &str, script: &str) -> Result<Self> {
        let mut hub = Hub::new()?;
        let process = Command::new(FAKEMCP)
            .args(["--script", script, "--transport", transport])
            .args(["--test", &hub.address().to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let peer = hub.arrival("server", SOON)?;
        Ok(Self { process, peer })
    }

    fn send(&self, verb: &str, headers: &str, body: &str) -> Result<TcpStream> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.peer.port()))?;
        connection.set_read_timeout(Some(SOON))?;
        let path = if verb.contains(' ') { "" } else { " /mcp" };
        let length = body.len();
        write!(connection, "{verb}{path} HTTP/1.1\r\nContent-Length: {length}\r\n{headers}\r\n{body}")?;
        Ok(connection)
    }

    /// Status, head and body of an answer with a length, a chunked one as it came, or one that breaks.
    fn ask(&self, verb: &str, headers: &str, body: &str) -> Result<(u16, String, String)> {
        let mut input = BufReader::new(self.send(verb, headers, body)?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if input.read_line(&mut head)? == 0 {
                break;
            }
        }
        let status = head.split(' ').nth(1).unwrap_or("0").parse()?;
        let mut body = String::new();
        let length = head.split("Content-Length: ").nth(1).and_then(|h| h.split('\r').next());
        match length {
            Some(length) => input.take(length.parse()?).read_to_string(&mut body)?,
            None => loop {
                let n = input.read_line(&mut body)?;
                if n == 0 || body.ends_with("\r\n0\r\n") {
                    break n;
                }
            },
        };
        Ok((status, head, body))
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

#[test]
fn http_keeps_sessions_and_forgets_them() {
    let mut web = Web::start("http", "on tools/call -> forget").unwrap();
    assert!(listening(web.peer.pid()).contains(&web.peer.port()));
    assert_eq!(web.ask("POST", "", PING).unwrap().0, 400);
    let (status, head, body) = web.ask("POST", "", INITIALIZE).unwrap();
    assert_eq!(status, 200);
    assert!(head.contains("Mcp-Session-Id: S1\r\n"), "{head}");
    assert!(body.contains("2025-11-25"));
    let session = "Mcp-Session-Id: S1\r\nX-Y: z\r\n";
    let (status, _, body) = web.ask("POST", session, PING).unwrap();
    assert_eq!((status, body.as_str()), (200, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#));
    let note = r#"{"jsonrpc":"2.0","method":"n"}"#;
    assert_eq!(web.ask("POST", session, note).unwrap().0, 202);
    let batch = format!("[{PING},{note}]");
    let (_, _, body) = web.ask("POST", session, &batch).unwrap();
    assert_eq!(body, r#"[{"jsonrpc":"2.0","id":"p","result":{}}]"#);
    web.peer.act("forget").unwrap();
    assert_eq!(web.ask("POST", session, PING).unwrap().0, 404);
    assert_eq!(web.ask("DELETE", session, "").unwrap().0, 200);
    let requests = web.peer.requests();
    assert_eq!(requests.len(), 7);
    assert_eq!(requests[2].header("x-y"), Some("z"));
    assert_eq!(requests[2].method().as_deref(), Some("ping"));
}

#[test]
fn http_answers_are_as_scripted() {
    let script = r#"
set session off
on GET -> status 406 Not Acceptable
on tools/call/403
    status 403
    header WWW-Authenticate: Bearer
    body {"error":"insufficient_scope"}
on tools/call/move
    status 307
    header Location: http://127.0.0.1:1/x
on tools/call/stream
    stream
    id e-1
    retry 10
    send {"jsonrpc":"2.0","method":"n"}
    resume e-1 {"jsonrpc":"2.0","id":{id},"result":{}}
    cut
on tools/call/half
    body {x*1000}
    cut
on tools/call/chunks
    chunked
    pieces 2
    answer {"a":1}
on tools/call/hang -> never
"#;
    let mut web = Web::start("http", script).unwrap();
    let call = |tool: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
    };
    assert_eq!(web.ask("GET", "", "").unwrap().0, 406);
    let (status, head, body) = web.ask("POST", "", &call("403")).unwrap();
    assert_eq!((status, body.as_str()), (403, r#"{"error":"insufficient_scope"}"#));
    assert!(head.contains("WWW-Authenticate: Bearer\r\n"));
    let (status, head, _) = web.ask("POST", "", &call("move")).unwrap();
    assert!(status == 307 && head.contains("Location: http://127.0.0.1:1/x\r\n"));
    let (_, head, body) = web.ask("POST", "", &call("stream")).unwrap();
    assert!(head.contains("text/event-stream"), "{head}");
    assert!(
        body.contains("event: message\nid: e-1\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n")
    );
    assert!(!body.contains("\r\n0\r\n"));
    let connection = web.send("POST", "", &call("half")).unwrap();
    let mut bytes = String::new();
    BufReader::new(connection).read_to_string(&mut bytes).unwrap();
    assert!(bytes.contains("Content-Length: 1000"));
    assert_eq!(bytes.matches('x').count(), 500);
    let (_, _, body) = web.ask("POST", "", &call("chunks")).unwrap();
    assert!(body.starts_with("2\r\n{\"\r\n"), "{body}");
    drop(web.send("POST", "", &call("hang")).unwrap());
    web.peer.wait("closed", SOON, |_| true).unwrap();
}

#[test]
fn a_stream_is_resumed_and_the_server_speaks_first() {
    let mut web =
        Web::start("http", "set reply sse\non ping\n    resume e {\"id\":{id}}\n    id e\n    answer {}")
            .unwrap();
    let (_, head, body) = web.ask("POST", "", INITIALIZE).unwrap();
    assert!(head.contains("Mcp-Session-Id: S1") && body.contains("data: {"));
    let session = "Mcp-Session-Id: S1\r\n";
    let (_, _, body) = web.ask("POST", session, PING).unwrap();
    assert!(body.contains("id: e\ndata: {"), "{body}");
    let resumed = web.ask("GET", "Mcp-Session-Id: S1\r\nLast-Event-ID: e\r\n", "");
    assert!(resumed.unwrap().2.contains("data: {\"id\":\"p\"}\n"));
    let mut stream = BufReader::new(web.send("GET", session, "").unwrap());
    web.peer.wait("stream", SOON, |_| true).unwrap();
    web.peer.act("send {\"jsonrpc\":\"2.0\",\"method\":\"n\"}").unwrap();
    let mut seen = String::new();
    while !seen.contains("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}") {
        assert!(stream.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    web.peer.act("reset").unwrap();
    stream.read_to_string(&mut seen).unwrap();
    assert!(seen.ends_with("\n\n\r\n"), "{seen}");
}

#[test]
fn legacy_sse_answers_on_the_stream() {
    let web = Web::start("sse", "on tools/call/no -> status 403").unwrap();
    let mut stream = BufReader::new(web.send("GET /sse", "", "").unwrap());
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0);
    }
    assert_eq!(line, "data: /message?sessionId=S1\n");
    let post = "POST /message?sessionId=S1";
    assert_eq!(web.ask(post, "", PING).unwrap().0, 202);
    while !line.contains("\"result\":{}") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0);
    }
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no"}}"#;
    assert_eq!(web.ask(post, "", call).unwrap().0, 403);
    assert_eq!(web.ask("POST /message?sessionId=S9", "", PING).unwrap().0, 404);
}

#[test]
fn the_log_file_has_what_was_seen() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let script = directory.path().join("script");
    std::fs::write(&script, "on ping -> exit 4").unwrap();
    let mut command = Command::new(FAKEMCP);
    command.arg(&script).env("LOG", &log);
    let mut client = Client::start(&mut command).unwrap();
    client.send(PING).unwrap();
    assert_eq!(client.wait_exit(SOON).unwrap().code(), Some(4));
    let log = std::fs::read_to_string(log).unwrap();
    let events: Vec<_> = log.lines().map(|l| l.get(..30).unwrap_or(l)).collect();
    assert_eq!(events.len(), 2, "{log}");
    assert!(log.contains(r#""event":"line""#) && log.contains(r#""code":4"#));
}

#[test]
fn a_recording_is_played() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let recording = directory.path().join("recording");
    std::fs::write(
        &recording,
        r#"{"time":"t","direction":"downstream->upstream","message":{"jsonrpc":"2.0","id":1,"method":"x/y"}}
{"time":"t","direction":"upstream->downstream","message":{"jsonrpc":"2.0","id":1,"result":{"n":1.0}}}
"#,
    )?;
    let mut command = Command::new(FAKEMCP);
    command.arg("--replay").arg(&recording);
    let mut client = Client::start(&mut command)?;
    client.send(r#"{"jsonrpc":"2.0","id":"new","method":"x/y"}"#)?;
    let answer = client.answer("\"new\"").context("no answer")?;
    assert_eq!(text(&answer), r#"{"jsonrpc":"2.0","id":"new","result":{"n":1.0}}"#);
    Ok(())
}
