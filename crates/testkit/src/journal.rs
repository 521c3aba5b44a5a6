//! What a fake server saw and did, as JSON lines: to a file, and to the test that listens. It judges nothing.

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use serde_json::{Map, Value, json};

/// Writes events; every event is one line and is flushed at once.
#[derive(Debug, Default)]
pub struct Journal {
    outputs: Mutex<(Option<File>, Option<TcpStream>)>,
}

impl Journal {
    /// A journal that writes to these.
    pub fn new(file: Option<File>, test: Option<TcpStream>) -> Self {
        Self { outputs: Mutex::new((file, test)) }
    }

    /// Lets a test listen, and tells it that this process has started.
    pub fn start(&self, test: &TcpStream, members: Value) -> io::Result<()> {
        let listener = test.try_clone()?;
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(listener);
        let environment: Map<String, Value> = std::env::vars_os()
            .map(|(name, value)| {
                let text = value.to_string_lossy().into_owned();
                (name.to_string_lossy().into_owned(), text.into())
            })
            .collect();
        let directory = std::env::current_dir().unwrap_or_default();
        let mut all = json!({
            "pid": std::process::id(), "env": environment, "cwd": directory,
            "args": std::env::args().collect::<Vec<_>>(),
        });
        if let (Value::Object(all), Value::Object(members)) = (&mut all, members) {
            all.extend(members);
        }
        self.event("start", all);
        Ok(())
    }

    /// Writes one event; `members` is an object.
    pub fn event(&self, name: &str, members: Value) {
        let mut event = json!({ "event": name });
        if let (Value::Object(event), Value::Object(members)) = (&mut event, members) {
            event.extend(members);
        }
        let line = format!("{event}\n");
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &mut outputs.0 {
            file.write_all(line.as_bytes()).unwrap_or_default();
        }
        if let Some(test) = &mut outputs.1 {
            // A test that has gone needs no events.
            test.write_all(line.as_bytes()).unwrap_or_default();
        }
    }

    /// Writes bytes that came from the client: `text` if they are UTF-8, else `base64`.
    pub fn bytes(&self, name: &str, bytes: &[u8], mut members: Value) {
        let (key, text) = match std::str::from_utf8(bytes) {
            Ok(text) => ("text", text.to_owned()),
            Err(_) => ("base64", base64::engine::general_purpose::STANDARD.encode(bytes)),
        };
        if let Value::Object(members) = &mut members {
            members.insert(key.to_owned(), text.into());
        }
        self.event(name, members);
    }
}

/// The bytes of an event that [`Journal::bytes`] wrote.
pub fn bytes_of(event: &Value) -> Vec<u8> {
    if let Some(text) = event.get("text").and_then(Value::as_str) {
        return text.as_bytes().to_vec();
    }
    event
        .get("base64")
        .and_then(Value::as_str)
        .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok())
        .unwrap_or_default()
}
