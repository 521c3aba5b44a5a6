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
                "callTimeoutMs": tools.bridge.call_timeout_ms.map(number),
                "debug": { "stderr": tools.bridge.debug.stderr, "file": tools.bridge.debug.file },
            },
            "mcp": {
                "callTimeoutMs": tools.mcp.call_timeout_ms.map(number),
                "connectTimeoutMs": tools.mcp.connect_timeout_ms.map(number),
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
            "cache": { "enabled": models.cache.enabled, "ttlMs": number(models.cache.ttl_ms) },
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

/// A whole number is written as one: programs that read integers take no `2000.0`.
fn number(value: f64) -> Value {
    let whole = format!("{value:.0}").parse::<i64>().ok();
    // Above 2^53 a number of a file is not exact any more.
    let whole = whole.filter(|_| value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0);
    whole.map_or_else(|| json!(value), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_milliseconds_are_integers() {
        let (settings, _) =
            Settings::parse(br#"{"tools":{"bridge":{"callTimeoutMs":2e3},"mcp":{"callTimeoutMs":90000.5}}}"#);
        let shown = shown(&settings);
        assert_eq!(shown["tools"]["bridge"]["callTimeoutMs"].to_string(), "2000");
        assert_eq!(shown["tools"]["mcp"]["callTimeoutMs"].to_string(), "90000.5");
        assert_eq!(shown["models"]["cache"]["ttlMs"].to_string(), "86400000");
        assert_eq!([-3.0, 1e300].map(|value| number(value).to_string()), ["-3", "1e+300"]);
    }
}
