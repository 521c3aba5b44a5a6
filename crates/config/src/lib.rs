//! Server definitions from the files of every MCP client: read, checked, merged, trusted, edited. Starts no server.

mod clients;
mod definition;
mod dialect;
mod edit;
mod entry;
mod environment;
mod expanded;
mod load;
mod policy;
mod problem;
mod source;
mod template;
mod tree;

pub use clients::{
    CLIENTS, Client, ClientFile, ExportLine, ExportOutcome, ExportPlan, Found, Home, ImportLine, ImportOutcome,
    ImportPlan, InFile, Limits, ORIGIN, Scope, find, plan_export, plan_import,
};
pub use edit::{Change, Edited, Written, edit, edit_file};
pub use definition::{
    Auth, Definition, HeaderCase, InheritEnv, Options, Placement, Protocol, RemoteKind, RemoteTarget, Share,
    StdioTarget, Target, Text, Tls, ToolOptions,
};
pub use dialect::{Dialect, Field, Syntax};
pub use entry::{Entry, FileReport, FileStatus, Place, Standing};
pub use environment::{Environment, Platform};
pub use expanded::{Expanded, ExpandedAuth, ExpandedRemote, ExpandedStdio, ExpandedTarget};
pub use load::{LoadOptions, Resolved, TrustMode};
pub use policy::{Policy, Rule};
pub use problem::{Position, Problem, Severity};
pub use source::{SettingSource, Source};
pub use tree::{Format, Key, MAX_BYTES, MAX_DEPTH, Node, Value, read, read_bytes, read_tolerant};
