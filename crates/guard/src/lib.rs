//! Size policy, previews and saved results.

mod config;
mod directory;
mod error;
mod file_uri;
mod glob;
mod name;

pub use config::{GuardConfig, OutputSchema, PathMap, ReadBack, StoreConfig, ToolRule, UnknownResults};
pub use error::GuardError;
pub use file_uri::{PathStyle, file_uri};
pub use glob::Glob;
