//! The table of how each client writes an entry.

use super::shape::{Auth, Command, Quirk, Shape, Switch, Words};

const MS: u64 = 1;
const S: u64 = 1000;
const IDLE: &str = "callIdleTimeoutMs";
const NO_WORDS: Words = Words { stdio: None, http: None, sse: Some("sse") };
const ALL_WORDS: Words = Words { stdio: Some("stdio"), http: Some("http"), sse: Some("sse") };

/// What most clients do, after the first of them.
pub(super) const PLAIN: Shape = Shape {
    roots: &[&["mcpServers"]],
    words: NO_WORDS,
    command: Command::Plain,
    splits: false,
    env: "env",
    forward: None,
    env_file: false,
    url: ("url", "url"),
    headers: &["headers"],
    auth: Auth::No,
    switch: Switch::No,
    allow: None,
    deny: None,
    times: &[],
    same: &[],
    holds_own: false,
    quirk: Quirk::No,
};

pub(super) static CURSOR: Shape = Shape {
    allow: Some(("enabledTools", None)),
    times: &[("startupTimeoutSec", "startupTimeoutMs", S)],
    same: &["tls", "placement"],
    holds_own: true,
    ..LIKE_CURSOR
};

/// Clients that read what Cursor documents.
pub(super) static LIKE_CURSOR: Shape = Shape { splits: true, env_file: true, auth: Auth::Own, ..PLAIN };

pub(super) static VSCODE: Shape = Shape {
    roots: &[
        &["servers"],
        &["mcp", "servers"],
        &["customizations", "vscode", "mcp", "servers"],
        &["mcpServers"],
    ],
    words: ALL_WORDS,
    env_file: true,
    quirk: Quirk::Inputs,
    ..PLAIN
};

pub(super) static COPILOT_CLI: Shape = Shape {
    words: Words { stdio: Some("local"), http: Some("http"), sse: Some("sse") },
    allow: Some(("tools", Some("*"))),
    ..PLAIN
};

pub(super) static CLAUDE_CODE: Shape =
    Shape { words: ALL_WORDS, holds_own: true, quirk: Quirk::Projects, ..PLAIN };

pub(super) static CLAUDE_DESKTOP: Shape = PLAIN;

pub(super) static CODEX: Shape = Shape {
    roots: &[&["mcp_servers"]],
    words: Words { stdio: None, http: None, sse: None },
    forward: Some("env_vars"),
    headers: &["http_headers"],
    switch: Switch::Enabled,
    allow: Some(("enabled_tools", None)),
    deny: Some("disabled_tools"),
    times: &[
        ("startup_timeout_sec", "startupTimeoutMs", S),
        ("startup_timeout_ms", "startupTimeoutMs", MS),
        ("tool_timeout_sec", IDLE, S),
    ],
    quirk: Quirk::Codex,
    ..PLAIN
};

/// Gemini CLI and Qwen Code.
pub(super) static GEMINI: Shape = Shape {
    words: Words { stdio: None, http: None, sse: None },
    url: ("httpUrl", "url"),
    auth: Auth::Oauth,
    switch: Switch::Lists,
    allow: Some(("includeTools", None)),
    deny: Some("excludeTools"),
    times: &[("timeout", IDLE, MS)],
    quirk: Quirk::UrlIsSse,
    ..PLAIN
};

pub(super) static WINDSURF: Shape = Shape {
    words: Words { stdio: None, http: None, sse: None },
    url: ("serverUrl", "serverUrl"),
    switch: Switch::Disabled,
    deny: Some("disabledTools"),
    ..PLAIN
};

pub(super) static ANTIGRAVITY: Shape = Shape {
    words: Words { stdio: None, http: None, sse: None },
    url: ("serverUrl", "serverUrl"),
    switch: Switch::Disabled,
    ..PLAIN
};

pub(super) static CLINE: Shape = Shape {
    words: Words { stdio: None, http: Some("streamableHttp"), sse: Some("sse") },
    switch: Switch::Disabled,
    times: &[("timeout", IDLE, S)],
    ..PLAIN
};

pub(super) static ROO: Shape = Shape {
    words: Words { stdio: None, http: Some("streamable-http"), sse: Some("sse") },
    switch: Switch::Disabled,
    deny: Some("disabledTools"),
    times: &[("timeout", IDLE, S)],
    ..PLAIN
};

pub(super) static ZED: Shape = Shape {
    roots: &[&["context_servers"]],
    words: Words { stdio: None, http: None, sse: None },
    switch: Switch::Enabled,
    ..PLAIN
};

pub(super) static OPENCODE: Shape = Shape {
    roots: &[&["mcp"], &["mcp", "servers"]],
    words: Words { stdio: Some("local"), http: Some("remote"), sse: Some("remote") },
    command: Command::List,
    env: "environment",
    auth: Auth::OauthScope,
    switch: Switch::Enabled,
    times: &[("timeout", "listTimeoutMs", MS)],
    ..PLAIN
};

pub(super) static GOOSE: Shape = Shape {
    roots: &[&["extensions"]],
    words: Words { stdio: Some("stdio"), http: Some("streamable_http"), sse: Some("sse") },
    command: Command::Cmd,
    env: "envs",
    forward: Some("env_keys"),
    url: ("uri", "uri"),
    switch: Switch::Enabled,
    allow: Some(("available_tools", None)),
    times: &[("timeout", IDLE, S)],
    quirk: Quirk::Goose,
    ..PLAIN
};

/// Kiro and Amazon Q Developer.
pub(super) static KIRO: Shape =
    Shape { switch: Switch::Disabled, deny: Some("disabledTools"), times: &[("timeout", IDLE, MS)], ..PLAIN };

pub(super) static FACTORY: Shape = Shape { words: ALL_WORDS, switch: Switch::Disabled, ..PLAIN };

pub(super) static CRUSH: Shape = Shape {
    roots: &[&["mcp"]],
    words: ALL_WORDS,
    switch: Switch::Disabled,
    deny: Some("disabled_tools"),
    times: &[("timeout", IDLE, S)],
    ..PLAIN
};

pub(super) static PI: Shape = Shape {
    auth: Auth::Oauth,
    switch: Switch::Disabled,
    allow: Some(("includeTools", None)),
    deny: Some("excludeTools"),
    times: &[("requestTimeoutMs", IDLE, MS)],
    ..PLAIN
};

pub(super) static CONTINUE: Shape = Shape {
    words: Words { stdio: Some("stdio"), http: Some("streamable-http"), sse: Some("sse") },
    headers: &["requestOptions", "headers"],
    times: &[("connectionTimeout", "startupTimeoutMs", MS)],
    ..PLAIN
};

/// The package form of Agent Plugins.
pub(super) static PACKAGE: Shape = Shape { quirk: Quirk::Package, ..PLAIN };

/// Toolway's own files, with the spellings they accept.
pub(super) static OWN: Shape = Shape { splits: true, auth: Auth::Own, switch: Switch::Enabled, ..PLAIN };
