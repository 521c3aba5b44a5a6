//! Owns what belongs to an agent in the cloud alone. It sends nothing.

use serde_json::{Map, Value};
use toolway_secret::Secret;

/// An agent in the cloud.
#[derive(Debug, Clone, Default)]
pub struct CloudOptions {
    /// Where its machine is: `cloud`, `pool`, `machine`, and which one.
    pub env: Option<CloudEnv>,
    /// Repositories that it works on.
    pub repos: Vec<CloudRepo>,
    /// It commits to the branch that it starts from.
    pub work_on_current_branch: bool,
    /// It opens a pull request at its end.
    pub auto_create_pr: bool,
    /// Nobody is asked to review that.
    pub skip_reviewer_request: bool,
    /// Variables of its shell.
    pub env_vars: Vec<(String, Secret)>,
    /// Whatever the program wants to find again.
    pub metadata: Map<String, Value>,
}

/// Where an agent's machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEnv {
    /// `cloud`, `pool` or `machine`.
    pub kind: String,
    /// Which one.
    pub name: Option<String>,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudRepo {
    /// Its address.
    pub url: String,
    /// Branch, tag or commit to start from.
    pub starting_ref: Option<String>,
    /// A pull request to work on.
    pub pr_url: Option<String>,
}
