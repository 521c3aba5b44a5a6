//! Shows settings as the file would have them: every key with the value that holds.

use serde_json::{Value, json};

use crate::settings::{AgentTransport, NativeDisplay, Settings, TaskPresentation};

/// Every key with its value.
pub(super) fn shown(settings: &Settings) -> Value {
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
                "callTimeoutMs": tools.bridge.call_timeout_ms,
                "debug": { "stderr": tools.bridge.debug.stderr, "file": tools.bridge.debug.file },
            },
            "mcp": {
                "callTimeoutMs": tools.mcp.call_timeout_ms,
                "connectTimeoutMs": tools.mcp.connect_timeout_ms,
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
            "cache": { "enabled": models.cache.enabled, "ttlMs": models.cache.ttl_ms },
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

/// As the file spells it.
pub(super) fn transport(transport: AgentTransport) -> &'static str {
    match transport {
        AgentTransport::Default => "default",
        AgentTransport::Http1 => "http1",
    }
}
