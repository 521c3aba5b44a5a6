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

pub use agent_port::{
    Agent, AgentEnd, AgentEvent, AgentFailure, AgentMode, AgentModel, AgentOptions, AgentPort, AgentPrompt,
    InlineServer, McpTimeouts, SafetyOption, Usage,
};
pub use call::{CallId, HostCall, HostResult, Rejection, RejectionKind};
pub use continuity::{Cause, Continuity, Decision, Fingerprint, PoolKey, PoolMember, Situation, Step};
pub use coordinator::{Coordinator, Session, SessionOptions, Turn};
pub use deadline::{DeadlineWarning, Deadlines};
pub use diagnostics::{
    CallFields, DiagnosticSink, Diagnostics, DiagnosticsConfig, Event as DiagnosticEvent,
    EventKind as DiagnosticKind, SkipReason,
};
pub use error::BridgeError;
pub use host_port::{
    AssistantBlock, AssistantMessage, HostEvent, HostPort, NoticeLevel, StopReason, ToolCall, TurnEvent,
    TurnRequest,
};
pub use json::RawJson;
pub use live::{Emit, LiveItem, LiveQueue, Pace, Poll};
pub use manifest::{ManifestOptions, manifest};
pub use naming::Naming;
pub use profile::Profile;
pub use prompt::{
    Block, Digest, HostSystem, InstructionFile, InstructionLayer, Message, MessageBody, Prompt, PromptImage,
    PromptInput, SystemOptions, SystemPart, SystemPartKind, bootstrap, estimate, incremental,
};
pub use protocol::{
    HostEnding, HostProtocolConfig, PROTOCOL_VERSION, host_protocol_schema, serve_host, serve_host_with,
};
pub use registry::{Bridge, BridgeConfig};
pub use replay::{
    Activity, AgentToolEvent, Card, CardBlock, Details, Disk, OutputStream, PreviewFiles, Records, Refusal,
    Replay, ReplayContext, ReplayOutput, Replayed, Route, RunEnd, Sight, ToolActivity, ToolStatus, Trace,
    TraceKind, Wish, WrapperMoment, WrapperPlan, WrapperSurroundings, Wrappers, final_answer, replayed_turn,
    wrapper_definition,
};
pub use report::{ReportInput, ReportedRun, report};
pub use run::{Binding, CallSink, Facts, Progress, Run, Settlement};
pub use scrub::Scrubber;
pub use self_test::{Finding, SelfTest, self_test};
pub use settings::{
    AgentTransport, BridgeSettings, CacheSettings, DebugSettings, DiagnosticSettings, DisplaySettings,
    HostMode, LocalSettings, McpSettings, ModelSettings, NativeDisplay, SdkEventSettings, SettingChange,
    Settings, TaskPresentation, ToolSettings, Warning, settings_path,
};
pub use skills::{
    Activation, ActivationDetails, Catalogue, Skill, SkillError, SkillList, Skills, ToolConditions, activate,
    is_tool_active, skill_tool,
};
pub use snapshot::{ExposedTool, HiddenReason, HiddenTool, OddSchema, Snapshot, SurfaceOptions};
pub use tool::{HostTool, HostTools, Provenance};
