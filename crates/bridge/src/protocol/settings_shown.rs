//! Shows settings as the file would have them: every key with the value that holds.

use serde_json::{Value, json};

use super::answers::DeadlinesShown;
use super::session::deadlines_shown;
use crate::deadline::Deadlines;
use crate::settings::{AgentTransport, NativeDisplay, Settings, TaskPresentation};

/// Every key with its value. Times are as they count: whole milliseconds within their bounds.
pub(super) fn shown(settings: &Settings, deadlines: &Deadlines) -> Value {
    let DeadlinesShown { tool, bridge, connect } = deadlines_shown(deadlines);
    let Settings { tools, local, models, debug } = settings;
    let native = match tools.display.native {
        NativeDisplay::Auto => "auto",
        NativeDisplay::On => "on",
        NativeDisplay::Off => "off",
    };
    let presentation = match tools.display.task_presentation {
        TaskPresentation::Task => "task",
        TaskPresentation::Subagent => "subagent",
        TaskPresentation::SubagentMeta => "subagent-meta",
    };
    json!({
        "tools": {
            "manifest": tools.manifest,
            "bridge": {
                "enabled": tools.bridge.enabled,
                "exposeBuiltins": tools.bridge.expose_builtins,
                "exclude": tools.bridge.exclude,
                "callTimeoutMs": bridge,
                "debug": { "stderr": tools.bridge.debug.stderr, "file": tools.bridge.debug.file },
            },
            "mcp": {
                "callTimeoutMs": tool,
                "connectTimeoutMs": connect,
            },
            "display": { "native": native, "taskPresentation": presentation },
        },
        "local": {
            "settingSources": local.setting_sources,
            "preservePiAgentsContext": local.preserve_pi_agents_context,
            "autoReview": local.auto_review,
            "sandbox": local.sandbox,
            "resume": local.resume,
            "transport": transport(local.transport),
        },
        "models": {
            "fastDefaults": models.fast_defaults,
            "cache": { "enabled": models.cache.enabled, "ttlMs": whole(models.cache.ttl_ms) },
        },
        "debug": {
            "sdkEvents": {
                "enabled": debug.sdk_events.enabled,
                "directory": debug.sdk_events.directory,
                "stderr": debug.sdk_events.stderr,
            },
        },
    })
}

/// Whole milliseconds; less than none are none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast of a float cuts its fraction and stops at the bounds of the integer, as wanted"
)]
fn whole(ms: f64) -> u64 {
    ms as u64
}

/// As the file spells it.
pub(super) fn transport(transport: AgentTransport) -> &'static str {
    match transport {
        AgentTransport::Default => "default",
        AgentTransport::Http1 => "http1",
    }
}
