//! A front under test: how it is started (this file), and how it is talked to, over stdio or over Streamable HTTP.
//! Knows commands and files, not what is measured.

mod http_link;
mod members;
mod pipeline;
mod running;
mod stdio_link;
mod upstream;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

pub(crate) use http_link::{HttpLink, Target};
pub(crate) use members::Member;
pub(crate) use running::{Link, Running};
pub(crate) use upstream::HttpUpstream;

/// What the harness's client says first.
pub(crate) const INIT: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{},"experimental":{"x-client":{"n":1.0}}},"clientInfo":{"name":"toolway-bench","title":"Bench","version":"0.1.0"}}}"#;

/// What a wait for a message ended with.
#[derive(Debug)]
pub(crate) enum Got {
    Message(Vec<u8>),
    Timeout,
    Closed,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    Timeout,
    Closed,
    Failed(String),
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timeout"),
            Self::Closed => f.write_str("closed"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<std::io::Error> for Miss {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// One front of a fronts file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spec {
    pub(crate) name: String,
    /// The front itself is an HTTP server, and the harness an HTTP client.
    pub(crate) is_http: bool,
    pub(crate) path: String,
    /// Arguments by kind of upstream.
    pub(crate) commands: BTreeMap<String, Vec<String>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) files: Vec<(String, String)>,
    /// Put before every tool name, for fronts that add a namespace.
    pub(crate) prefix: String,
    /// A gateway before so many upstreams, `s0`, `s1`, ...; 0: a front before one.
    pub(crate) servers: usize,
    /// What stands between a server's name and a tool's.
    pub(crate) separator: String,
    /// The front's own tool that finds others, where it shows no others.
    pub(crate) search: Option<String>,
    /// Its servers are started by their first call.
    pub(crate) is_lazy: bool,
    /// Flags for the upstream without which this front cannot work at all.
    pub(crate) upstream_flags: Vec<String>,
}

impl Spec {
    /// The command for this kind of upstream: `http-sse` falls back on `http`.
    pub(crate) fn command(&self, upstream: &str) -> Option<&Vec<String>> {
        self.commands.get(upstream).or_else(|| self.commands.get(kind(upstream)))
    }

    /// What is put before the tool names of each of these servers.
    pub(crate) fn prefixes(&self, members: &[Member]) -> Vec<String> {
        match members {
            [] => vec![self.prefix.clone()],
            members => members.iter().map(|m| format!("{}{}", m.name, self.separator)).collect(),
        }
    }

    fn parse(front: &Value, fill: &dyn Fn(&str) -> String) -> Self {
        let text = |key: &str, default: &str| front[key].as_str().unwrap_or(default).to_owned();
        let pairs = |key: &str| -> Vec<(String, String)> {
            let fields = front[key].as_object().into_iter().flatten();
            fields
                .map(|(k, v)| (k.clone(), fill(&v.as_str().map_or_else(|| v.to_string(), str::to_owned))))
                .collect()
        };
        let strings = |value: &Value| -> Vec<String> {
            let all = value.as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(fill).collect()
        };
        let commands = front["cmd"].as_object().into_iter().flatten();
        Self {
            name: text("name", "?"),
            is_http: front["front"] == "http",
            path: text("path", "/mcp"),
            commands: commands.map(|(k, v)| (k.clone(), strings(v))).collect(),
            env: pairs("env"),
            files: pairs("files"),
            prefix: text("prefix", ""),
            servers: front["servers"].as_u64().and_then(|n| n.try_into().ok()).unwrap_or(0),
            separator: text("separator", "__"),
            search: front["search"].as_str().map(str::to_owned),
            is_lazy: front["lazy"] == true,
            upstream_flags: strings(&front["up_flags"]),
        }
    }
}

/// `http-sse` is an `http` upstream whose replies are event streams.
pub(crate) fn kind(upstream: &str) -> &str {
    upstream.split('-').next().unwrap_or(upstream)
}

/// Reads a fronts file; a variable of the environment wins over the file's own.
pub(crate) fn load(file: &Path) -> anyhow::Result<Vec<Spec>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let value: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
    Ok(parse(&value, &|name| std::env::var(name).ok()))
}

fn parse(file: &Value, env: &dyn Fn(&str) -> Option<String>) -> Vec<Spec> {
    let vars: Vec<(String, String)> = file["vars"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| (format!("{{{k}}}"), env(k).unwrap_or_else(|| v.as_str().unwrap_or("").to_owned())))
        .collect();
    let fill = |text: &str| vars.iter().fold(text.to_owned(), |all, (k, v)| all.replace(k, v));
    file["fronts"].as_array().into_iter().flatten().map(|front| Spec::parse(front, &fill)).collect()
}

/// How one run of a front is started.
#[derive(Clone, Debug)]
pub(crate) struct StartOptions {
    pub(crate) upstream: String,
    pub(crate) upstream_flags: Vec<String>,
    pub(crate) init_timeout: Duration,
    /// The upstream is the child of a shell.
    pub(crate) in_shell: bool,
    /// The servers of a gateway.
    pub(crate) members: Vec<Member>,
    /// This folder in place of a new one; it is not removed afterwards.
    pub(crate) folder: Option<PathBuf>,
    /// Where the run's own folder is made; HOME is in it.
    pub(crate) tmp: PathBuf,
}

impl StartOptions {
    pub(crate) fn of(spec: &Spec, upstream: &str) -> Self {
        Self {
            upstream: upstream.to_owned(),
            upstream_flags: spec.upstream_flags.clone(),
            init_timeout: Duration::from_secs(20),
            in_shell: false,
            members: Member::plain(spec.servers),
            folder: None,
            tmp: std::env::temp_dir(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_of_this_repository_are_valid() {
        let file = serde_json::from_str(include_str!("../fronts.json")).expect("valid JSON");
        let specs = parse(&file, &|_| None);
        for (name, upstream) in
            [("relay", "stdio"), ("toolway", "sse"), ("toolway-raised", "stdio"), ("mcp-relay", "http-sse")]
        {
            assert!(specs.iter().any(|s| s.name == name && s.command(upstream).is_some()), "{name}");
        }
        let of = |name| specs.iter().find(|s| s.name == name).expect("is there");
        assert_eq!(of("serve-8").prefixes(&Member::plain(2)), ["s0__", "s1__"]);
        assert_eq!((of("serve-8").servers, of("relay").servers, of("serve-lazy").is_lazy), (8, 0, true));
        assert_eq!(of("serve-search").search.as_deref(), Some("toolway_search"));
    }

    #[test]
    fn variables_are_filled_in_and_the_environment_wins() {
        let file = serde_json::json!({"vars": {"P": "/file", "Q": "/q"}, "fronts": [
            {"name": "a", "cmd": {"stdio": ["{P}/x", "{Q}", "{up}"]}, "files": {"c.json": {"k": 1}}, "env": {"E": "{Q}"}},
            {"name": "b", "front": "http", "cmd": {"http": []}, "prefix": "b/", "up_flags": ["--stateless"]},
        ]});
        let specs = parse(&file, &|name| (name == "P").then(|| "/env".to_owned()));
        assert_eq!(specs[0].command("stdio"), Some(&vec!["/env/x".into(), "/q".into(), "{up}".into()]));
        assert_eq!(specs[0].files, [("c.json".to_owned(), "{\"k\":1}".to_owned())]);
        assert_eq!(specs[0].env, [("E".to_owned(), "/q".to_owned())]);
        assert!(specs[1].is_http && specs[1].command("http-sse").is_some_and(Vec::is_empty));
        assert_eq!((specs[1].prefix.as_str(), specs[1].upstream_flags.len()), ("b/", 1));
        assert_eq!(specs[1].command("stdio"), None);
    }
}
