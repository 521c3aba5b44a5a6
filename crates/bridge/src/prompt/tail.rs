//! Owns the tail guard, with which every prompt ends, and the rule of plan mode.

use super::PromptInput;

/// Which prompt the guard ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    Bootstrap,
    Incremental,
}

/// The last section of a prompt.
pub(super) fn guard(input: &PromptInput<'_>, occasion: Occasion) -> String {
    let mut lines = vec![
        "Reminders".to_owned(),
        "- Begin shell commands with an explicit `cd` to the folder that is meant: the directory of the session may be \
         another one."
            .to_owned(),
    ];
    if input.plan_mode && occasion == Occasion::Incremental {
        lines.push(format!("- {}", plan_rule(input)));
    }
    lines.push(
        "- If the user asks for exact output, answer with exactly that and nothing around it.".to_owned(),
    );
    lines.push(
        "- To use a tool, call it. Never write a tool call, a tool card or a tool result as text of your answer."
            .to_owned(),
    );
    if !input.exposed.is_empty() {
        let prefix = input.profile.prefix;
        lines.push(format!(
            "- When this run exposes them, prefer `{prefix}mcp` for work with MCP and `{prefix}subagent` for delegation; \
             your own configured MCP servers and subagents are for when these are not exposed or do not work."
        ));
    }
    lines.join("\n")
}

/// What plan mode allows.
pub(super) fn plan_rule(input: &PromptInput<'_>) -> String {
    let bridged = if input.exposed.is_empty() {
        String::new()
    } else {
        format!(", and so are the `{}*` tools", input.profile.prefix)
    };
    format!(
        "Plan mode is on: plan, and change nothing. Tools that inspect and shell commands that do no harm are still \
         allowed{bridged}."
    )
}
