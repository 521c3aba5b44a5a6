//! Size policy, previews and saved results: what happens when a message is too large for the client.

mod config;
mod directory;
mod error;
mod file_uri;
mod glob;
mod guard;
mod lost;
mod name;
mod policy;
mod preview;
mod read_back;
mod redact;
mod reshape;
mod saved;
mod schemas;
mod source;
mod spill;
mod views;

pub use config::{
    GuardConfig, OutputSchema, PathMap, QueryProcess, ReadBack, StoreConfig, ToolRule, UnknownResults,
};
pub use error::GuardError;
pub use file_uri::{PathStyle, file_uri};
pub use glob::Glob;
pub use guard::Guard;
pub use policy::{Action, CallInfo, Shape, action};
pub use read_back::{
    MAX_REFERENCED, QUERY_COMMAND, TOOL as READ_BACK_TOOL, answer_query, bound_query,
    definition as read_back_definition, query_process,
};
pub use saved::{Found, Purged, QUERY_MAX, SavedEntry, SavedFile, Span, Store};
pub use schemas::{add_read_back_tool, add_resources_capability, add_tools_capability, relax_schemas};
pub use spill::{Body, Intake, SpoolFile, Taken};
