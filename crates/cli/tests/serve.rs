//! `toolway serve` and `toolway daemon` as the real binary: over stdin and stdout, over HTTP, shared, and with nothing to
//! serve.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use toolway_testkit::{Client, Leaks, SOON, fakemcp};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A home of its own, with configuration files.
struct Home {
    directory: tempfile::TempDir,
    mark: String,
}

impl Home {
    fn new(mark: &str) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("toolway-serve-").tempdir()?;
        for name in ["home", "run"] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        Ok(Self { directory, mark: format!("serve-{mark}-{}-end", std::process::id()) })
    }

    /// An entry with one tool of this name.
    fn entry(&self, tool: &str) -> Result<String> {
        let script = format!("tool {{\"name\":\"{tool}\",\"inputSchema\":{{\"type\":\"object\"}}}}");
        let entry = serde_json::json!({
            "command": fakemcp()?,
            "args": ["--script", script, "--mark", self.mark],
        });
        Ok(entry.to_string())
    }

    fn write(&self, servers: &[(&str, &str)]) -> Result<()> {
        let entries: Vec<String> = servers
            .iter()
            .map(|(name, tool)| Ok(format!("\"{name}\":{}", self.entry(tool)?)))
            .collect::<Result<_>>()?;
        let file = self.directory.path().join("servers.json");
        let new = self.directory.path().join("servers.new");
        std::fs::write(&new, format!("{{\"mcpServers\":{{{}}}}}", entries.join(",")))?;
        Ok(std::fs::rename(new, file)?)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOOLWAY);
        command.args(arguments).env_clear().current_dir(self.directory.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.directory.path().join("home"));
        command.env("XDG_RUNTIME_DIR", self.directory.path().join("run"));
        command.env("TOOLWAY_TESTKIT_MARK", &self.mark);
        command
    }

    /// A gateway over stdin and stdout, after the handshake.
    fn serve(&self, options: &[&str]) -> Result<Client> {
        let mut arguments = vec!["serve", "--config", "servers.json", "--wait", "all"];
        arguments.extend_from_slice(options);
        let mut client = Client::start(&mut self.command(&arguments))?;
        client.handshake()?;
        Ok(client)
    }

    fn output(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn tools(client: &mut Client, id: &str) -> Result<Vec<String>> {
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#))?;
    let answer: Value = serde_json::from_slice(&client.answer(id)?)?;
    let tools = answer["result"]["tools"].as_array().context("no tools")?;
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    Ok(names.filter(|name| !name.starts_with("toolway")).map(str::to_owned).collect())
}

fn finish(mut client: Client, home: &Home) -> Result<()> {
    client.close_stdin();
    let status = client.wait_exit(SOON)?;
    ensure!(status.success(), "{status}: {}", client.stderr());
    Leaks::new(&home.mark).check(SOON)
}

#[test]
fn many_servers_are_one_and_follow_their_file() -> Result<()> {
    let home = Home::new("stdio")?;
    home.write(&[("one", "echo"), ("two", "other")])?;
    let mut client = home.serve(&[])?;
    ensure!(tools(&mut client, "1")? == ["one__echo", "two__other"]);
    client.call("2", "one__echo", r#"{"text":"through"}"#)?;
    ensure!(String::from_utf8_lossy(&client.answer("2")?).contains("through"));
    home.write(&[("one", "echo"), ("three", "third")])?;
    let until = std::time::Instant::now() + SOON;
    let mut id = 10;
    loop {
        let found = tools(&mut client, &id.to_string())?;
        if found == ["one__echo", "three__third"] {
            break;
        }
        ensure!(std::time::Instant::now() < until, "the file was not followed: {found:?}");
        id += 1;
    }
    finish(client, &home)
}

#[test]
fn shared_gateways_use_one_copy_that_a_daemon_runs() -> Result<()> {
    let home = Home::new("shared")?;
    home.write(&[("one", "echo")])?;
    let mut first = home.serve(&["--shared"])?;
    let mut second = home.serve(&["--shared"])?;
    for client in [&mut first, &mut second] {
        ensure!(tools(client, "1")? == ["one__echo"]);
        client.call("2", "one__echo", r#"{"text":"through"}"#)?;
        ensure!(String::from_utf8_lossy(&client.answer("2")?).contains("through"));
    }
    let status: Value = serde_json::from_str(&home.output(&["daemon", "--status", "--json"])?)?;
    let copy = &status["servers"][0];
    ensure!((&copy["clients"], &copy["instances"]) == (&2.into(), &1.into()), "{status}");
    for mut client in [first, second] {
        client.close_stdin();
        ensure!(client.wait_exit(SOON)?.success());
    }
    ensure!(home.output(&["daemon", "--stop"])?.contains("has ended"));
    ensure!(home.output(&["daemon", "--status"])?.contains("no daemon runs"));
    Leaks::new(&home.mark).check(SOON)
}

#[test]
fn without_a_configuration_a_client_is_told_what_to_do() -> Result<()> {
    let home = Home::new("nothing")?;
    let mut client = Client::start(&mut home.command(&["serve"]))?;
    client.send(toolway_testkit::INITIALIZE)?;
    let answer: Value = serde_json::from_slice(&client.answer("0")?)?;
    let text = answer["error"]["message"].as_str().context("no error")?;
    ensure!(text.contains("toolway import") && text.contains("no MCP server is configured"), "{text}");
    client.close_stdin();
    ensure!(client.wait_exit(SOON)?.code() == Some(2));
    let listening = home.command(&["serve", "--listen", "0"]).stdin(Stdio::null()).output()?;
    ensure!(listening.status.code() == Some(2));
    ensure!(String::from_utf8_lossy(&listening.stderr).contains("toolway import"));
    Ok(())
}

/// One request; the status line and the body.
fn http(port: u16, headers: &str, body: &str) -> Result<(String, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(SOON))?;
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

#[test]
fn over_http_the_token_is_said_once_and_a_signal_ends_everything() -> Result<()> {
    let home = Home::new("http")?;
    home.write(&[("one", "echo")])?;
    let mut server = home
        .command(&["serve", "--config", "servers.json", "--listen", "127.0.0.1:0", "--wait", "all"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = std::io::BufReader::new(server.stderr.take().context("no stderr")?);
    let mut line = || -> Result<String> {
        let mut text = String::new();
        std::io::BufRead::read_line(&mut stderr, &mut text)?;
        Ok(text.trim().to_owned())
    };
    let (place, token) = (line()?, line()?);
    let port = place.rsplit_once(':').and_then(|(_, rest)| rest.strip_suffix("/mcp")).context("no port")?;
    let port: u16 = port.parse()?;
    let token = token.strip_prefix("send: ").context("no token")?;
    let modern = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let (status, body) = http(port, &format!("{token}\r\n{modern}"), list)?;
    ensure!(status.contains("200") && body.contains("one__echo"), "{status}: {body}");
    for (headers, expected) in [
        (modern.to_owned(), "401"),
        (format!("{token}x\r\n{modern}"), "401"),
        (format!("{token}\r\nOrigin: http://evil.example\r\n{modern}"), "403"),
    ] {
        let (status, _) = http(port, &headers, list)?;
        ensure!(status.contains(expected), "{headers}: {status}");
    }
    let pid = rustix::process::Pid::from_raw(server.id().cast_signed()).context("no pid")?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    let status = server.wait()?;
    ensure!(status.code() == Some(143), "{status}");
    if TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), Duration::from_secs(1)).is_ok() {
        bail!("the port is still open");
    }
    Leaks::new(&home.mark).check(SOON)
}
