//! Server definitions from the files of every MCP client: read, checked, merged, trusted, edited. Starts no server.

mod clients;
mod command;
mod definition;
mod dialect;
mod digest;
mod edit;
mod entry;
mod envfile;
mod environment;
mod error;
mod expand;
mod expanded;
mod glob;
mod lines;
mod load;
mod locate;
mod merge;
mod origin;
mod own;
mod plugins;
mod policy;
mod problem;
mod schema;
mod sensitive;
mod servers;
mod settled;
mod source;
mod template;
mod tree;
mod trust;
mod watch;

pub use clients::{
    CLIENTS, Client, ClientFile, ExportLine, ExportOutcome, ExportPlan, Found, Home, ImportLine,
    ImportOutcome, ImportPlan, InFile, Limits, Scope, find, plan_export, plan_import, plan_removal,
    plan_switch,
};
pub use definition::{
    Auth, Content, Definition, GrantType, HeaderCase, InheritEnv, Options, Placement, Protocol, ReadEntry,
    RemoteKind, RemoteTarget, Share, StdioTarget, Target, Text, Tls, ToolOptions,
};
pub use dialect::{Dialect, Field, Syntax};
pub use edit::{Audience, Change, Edited, Written, edit, edit_file};
pub use entry::{Entry, FileReport, FileStatus, Place, Standing};
pub use environment::{Environment, KeyringReader, Platform};
pub use error::ConfigError;
pub use expanded::{Expanded, ExpandedAuth, ExpandedRemote, ExpandedStdio, ExpandedTarget};
pub use load::{LoadOptions, Loader, Resolved, TrustMode, load};
pub use locate::{project_root, team_url};
pub use origin::ORIGIN;
pub use own::{
    check_own, own_project_file, own_servers, own_user_file, plan_own_addition, plan_own_removal,
    plan_own_switch,
};
pub use plugins::{PluginRoot, plugin_roots};
pub use policy::{Policy, Rule};
pub use problem::{Position, Problem, Severity};
pub use schema::json_schema;
pub use source::{SettingSource, Source};
pub use tree::{Format, Key, MAX_BYTES, MAX_DEPTH, Node, Value, read, read_bytes, read_tolerant};
pub use trust::{Approval, TrustStore, Verdict};
pub use watch::Watch;
