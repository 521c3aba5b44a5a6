//! The bridge: tools of a host application, offered to the agent that it drives, executed by the host alone.

mod agent_port;
mod call;
mod calls;
mod continuity;
mod coordinator;
mod deadline;
mod diagnostics;
mod error;
mod host_port;
mod json;
mod live;
mod manifest;
mod naming;
mod own_activity;
mod profile;
mod prompt;
mod protocol;
mod registry;
mod replay;
mod report;
mod result;
mod run;
mod scrub;
mod self_test;
mod server;
mod settings;
mod skills;
mod snapshot;
mod tool;

pub use call::{CallId, HostCall, HostResult, Rejection, RejectionKind};
pub use error::BridgeError;
pub use json::RawJson;
pub use profile::Profile;
pub use replay::{
    Activity, AgentToolEvent, Card, CardBlock, Details, Disk, OutputStream, PreviewFiles, Records, Refusal,
    Replay, ReplayContext, ReplayOutput, Replayed, Route, RunEnd, TaskPresentation, ToolActivity, ToolStatus,
    Trace, TraceKind, WrapperMoment, WrapperPlan, WrapperSurroundings, Wrappers, final_answer, replayed_turn,
    wrapper_definition,
};
pub use scrub::Scrubber;
pub use tool::{HostTool, HostTools, Provenance};
