//! Owns the description of how a client writes an entry. Data only.

/// How a client writes an entry, where that differs from Toolway's own way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Where the entries stand, from the top of the file: the first is the one that is written.
    pub(super) roots: &'static [&'static [&'static str]],
    /// What `type` says.
    pub(super) words: Words,
    /// How program and arguments are written.
    pub(super) command: Command,
    /// Whether a command without `args` is split as a shell would.
    pub(super) splits: bool,
    /// The variables.
    pub(super) env: &'static str,
    /// A list of the names of variables that are handed on.
    pub(super) forward: Option<&'static str>,
    /// The file of variables.
    pub(super) env_file: bool,
    /// The address of a Streamable HTTP server, and of one with legacy SSE.
    pub(super) url: (&'static str, &'static str),
    /// The headers: a path of names.
    pub(super) headers: &'static [&'static str],
    /// A registered OAuth client.
    pub(super) auth: Auth,
    /// The off switch.
    pub(super) switch: Switch,
    /// The list of tools that are shown, and what stands there for all of them.
    pub(super) allow: Option<(&'static str, Option<&'static str>)>,
    /// The list of tools that are not shown.
    pub(super) deny: Option<&'static str>,
    /// Waiting times: their name, our name, their unit in milliseconds.
    pub(super) times: &'static [(&'static str, &'static str, u64)],
    /// Members that are written as Toolway writes them.
    pub(super) same: &'static [&'static str],
    /// Whether Toolway reads the client's files in place, with its own members in them.
    pub(super) holds_own: bool,
    /// What only this client does.
    pub(super) quirk: Quirk,
}

/// What `type` says; `None`: it is left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    pub(super) stdio: Option<&'static str>,
    pub(super) http: Option<&'static str>,
    pub(super) sse: Option<&'static str>,
}

/// How program and arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// `command` and `args`.
    Plain,
    /// One list, `command`.
    List,
    /// `cmd` and `args`.
    Cmd,
}

/// How a registered OAuth client is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Auth {
    /// Not at all.
    No,
    /// `auth: {CLIENT_ID, CLIENT_SECRET, scopes: []}`.
    Own,
    /// `oauth: {clientId, clientSecret, scopes: []}`.
    Oauth,
    /// `oauth: {clientId, clientSecret, scope: ""}`.
    OauthScope,
}

/// Where a server is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// Not in the file.
    No,
    /// `disabled`.
    Disabled,
    /// `enabled`.
    Enabled,
    /// `mcp.excluded` and `mcp.allowed` at the top of the file.
    Lists,
}

/// What only one client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirk {
    /// Nothing.
    No,
    /// Names of variables in the place of values, also for headers.
    Codex,
    /// `url` without a type means legacy SSE.
    UrlIsSse,
    /// The entry names itself, and is off unless it says `enabled: true`. Other kinds of extensions are beside it.
    Goose,
    /// `inputs` stand beside the entries.
    Inputs,
    /// Entries of one project stand under `projects`.
    Projects,
    /// The name of the package goes before the name of the server.
    Package,
}
