//! Owns the demonstration server of `quickstart`: an MCP server over stdio (2025-11-25, "basic/transports") with tools
//! whose results are too large for most clients. Knows nothing of Toolway; every answer is made when it is asked for.

mod picture;
mod results;

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolway_wire::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};

use crate::exit::Exit;

const NEWEST: &str = "2025-11-25";
const KNOWN: [&str; 4] = [NEWEST, "2025-06-18", "2025-03-26", "2024-11-05"];
/// The slow tool takes this many steps, each this long.
const STEPS: u32 = 5;
const STEP: Duration = Duration::from_millis(80);

/// Serves until its input ends.
pub(crate) fn run() -> Exit {
    let (sender, lines) = sync_channel(16);
    let read = move || {
        for line in io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    if std::thread::Builder::new().name("input".to_owned()).spawn(read).is_err() {
        return Exit::NotStarted;
    }
    let mut server = Server { lines, waiting: VecDeque::new(), out: io::stdout() };
    // Output that nobody reads any more ends the server as the end of its input does.
    server.serve().map_or(Exit::Ended, |()| Exit::Done)
}

struct Server<W> {
    lines: Receiver<Vec<u8>>,
    /// What came while the slow tool ran.
    waiting: VecDeque<Vec<u8>>,
    out: W,
}

impl<W: Write> Server<W> {
    fn serve(&mut self) -> io::Result<()> {
        while let Some(line) = self.waiting.pop_front().or_else(|| self.lines.recv().ok()) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(message) => self.receive(&message)?,
                Err(error) => self.send(&failure(&Value::Null, PARSE_ERROR, &error.to_string()))?,
            }
        }
        Ok(())
    }

    fn receive(&mut self, message: &Value) -> io::Result<()> {
        let Some(method) = message["method"].as_str() else {
            return match message.get("result").or(message.get("error")) {
                Some(_) => Ok(()),
                None => self.send(&failure(&Value::Null, INVALID_REQUEST, "no method")),
            };
        };
        let Some(id) = message.get("id") else { return Ok(()) };
        let params = &message["params"];
        let answer = match method {
            "initialize" => success(id, &greeting(params)),
            "ping" => success(id, &json!({})),
            "tools/list" => success(id, &json!({ "tools": results::tools() })),
            "tools/call" if params["name"] == "slow" => match self.slow(id, params)? {
                Some(result) => success(id, &result),
                None => return Ok(()),
            },
            "tools/call" => match params["name"].as_str().and_then(results::call) {
                Some(result) => success(id, &result),
                None => failure(id, INVALID_PARAMS, &format!("unknown tool: {}", params["name"])),
            },
            _ => failure(id, METHOD_NOT_FOUND, "method not found"),
        };
        self.send(&answer)
    }

    /// Waits step by step, telling of its progress; nothing when it was cancelled.
    fn slow(&mut self, id: &Value, params: &Value) -> io::Result<Option<Value>> {
        let token = params.pointer("/_meta/progressToken");
        for step in 1..=STEPS {
            let until = Instant::now() + STEP;
            while let Some(rest) = until.checked_duration_since(Instant::now()) {
                match self.lines.recv_timeout(rest) {
                    Ok(line) if cancels(&line, id) => return Ok(None),
                    Ok(line) => self.waiting.push_back(line),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                }
            }
            if let Some(token) = token {
                self.send(&json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": step, "total": STEPS },
                }))?;
            }
        }
        Ok(Some(results::text("done, after 5 steps", false)))
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.out.write_all(line.as_bytes())?;
        self.out.flush()
    }
}

fn greeting(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().filter(|version| KNOWN.contains(version));
    json!({
        "protocolVersion": asked.unwrap_or(NEWEST),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "toolway-demo", "version": env!("CARGO_PKG_VERSION") },
    })
}

fn cancels(line: &[u8], id: &Value) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|message| {
        message["method"] == "notifications/cancelled" && message["params"]["requestId"] == *id
    })
}

fn success(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(lines: &[Value]) -> Vec<Value> {
        let (sender, receiver) = sync_channel(lines.len());
        for line in lines {
            sender.send(line.to_string().into_bytes()).unwrap();
        }
        drop(sender);
        let mut server = Server { lines: receiver, waiting: VecDeque::new(), out: Vec::new() };
        server.serve().unwrap();
        server.out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(parsed).collect()
    }

    fn parsed(line: &[u8]) -> Value {
        serde_json::from_slice(line).unwrap()
    }

    fn call(id: u64, tool: &str) -> Value {
        let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": "t" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    }

    #[test]
    fn it_is_a_server_of_the_protocol() {
        let ask = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let got = answers(&[
            ask(1, "initialize", json!({ "protocolVersion": "2025-06-18" })),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            ask(2, "initialize", json!({ "protocolVersion": "1999-01-01" })),
            ask(3, "nope", json!({})),
            call(4, "nope"),
        ]);
        assert_eq!(got[0]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(got[1]["result"]["protocolVersion"], NEWEST);
        assert_eq!((&got[2]["error"]["code"], &got[3]["error"]["code"]), (&json!(-32601), &json!(-32602)));
        assert_eq!(got.len(), 4);
    }

    #[test]
    fn the_slow_tool_tells_its_progress_and_can_be_cancelled() {
        let (sender, receiver) = sync_channel(4);
        let mut server = Server { lines: receiver, waiting: VecDeque::new(), out: Vec::new() };
        let params = call(1, "slow")["params"].clone();
        assert!(server.slow(&json!(1), &params).unwrap().is_some());
        let told = server.out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(parsed);
        assert_eq!(told.map(|told| told["params"]["progress"].clone()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        for id in [2, 1] {
            let params = json!({ "requestId": id });
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            sender.send(cancel.to_string().into_bytes()).unwrap();
        }
        assert_eq!(server.slow(&json!(1), &params).unwrap(), None);
    }

    #[test]
    fn every_tool_answers_with_the_sizes_it_promises() {
        let got = answers(&["build_log", "table", "picture", "failing"].map(|tool| call(1, tool)));
        let size = |index: usize| got[index]["result"]["content"][0]["text"].as_str().unwrap().len();
        assert!((200_000..210_000).contains(&size(0)), "{}", size(0));
        assert_eq!(got[1]["result"]["structuredContent"]["rows"].as_array().unwrap().len(), 3000);
        assert_eq!(got[2]["result"]["content"][0]["mimeType"], "image/png");
        assert!((30_000..33_000).contains(&size(3)) && got[3]["result"]["isError"] == true, "{}", size(3));
    }
}
