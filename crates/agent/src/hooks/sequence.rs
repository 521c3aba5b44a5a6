//! Owns the order of hooks around a call, and what their answers add up to: a denial stands above everything.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;
use toolway_transport::ChildConfig;

use super::message::{Given, Permission, Reply, as_result, message, shown_name};
use super::process::{Ran, run};
use super::{Hook, HookCall, HookEvent, Hooks};

/// Exit code of a hook that blocks a call.
const BLOCKS: i32 = 2;
/// The most of a hook's words that a model gets, in characters.
const MOST_WORDS: usize = 4000;

/// What hooks before a call say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Beforehand {
    /// Other arguments.
    pub(crate) input: Option<RawJson>,
    /// The call is not made: what the model is told.
    pub(crate) deny: Option<String>,
    /// Somebody is to be asked: why.
    pub(crate) ask: Option<String>,
}

/// What hooks after a call say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Afterwards {
    /// Another result, of a server's tool.
    pub(crate) result: Option<RawJson>,
    /// The model does not get the result: what it gets instead.
    pub(crate) withheld: Option<String>,
    /// More for the model.
    pub(crate) context: Vec<String>,
}

/// What became of one hook.
enum Outcome {
    Reply(Reply),
    Blocked(String),
    /// It failed, and that is to be passed over.
    Passed,
}

impl Hooks {
    /// `preToolUse`.
    pub(crate) async fn before_tool(&self, call: HookCall<'_>, cancel: &CancellationToken) -> Beforehand {
        self.before(HookEvent::PreToolUse, call, cancel).await
    }

    /// `beforeMCPExecution`.
    pub(crate) async fn before_server(&self, call: HookCall<'_>, cancel: &CancellationToken) -> Beforehand {
        let mut before = self.before(HookEvent::BeforeMcpExecution, call, cancel).await;
        if before.input.take().is_some() {
            tracing::warn!("a hook of beforeMCPExecution wants other arguments; preToolUse changes them");
        }
        before
    }

    async fn before(&self, event: HookEvent, call: HookCall<'_>, cancel: &CancellationToken) -> Beforehand {
        let mut before = Beforehand::default();
        for hook in self.of(event, call) {
            let input = before.input.as_ref().unwrap_or(call.input).clone();
            let seen = HookCall { input: &input, ..call };
            let reply = match self.run(hook, seen, None, cancel).await {
                Outcome::Reply(reply) => reply,
                Outcome::Passed => continue,
                Outcome::Blocked(text) => {
                    before.deny = Some(text);
                    return before;
                }
            };
            let words = reply.message().map(|text| self.shown(text));
            match reply.permission {
                Some(Permission::Deny) => {
                    let words = words.unwrap_or_else(|| "it gave no reason".to_owned());
                    before.deny = Some(format!("permission denied by the hook {}: {words}", hook.place));
                    return before;
                }
                Some(Permission::Ask) => {
                    let why = words.unwrap_or_else(|| format!("the hook {} wants it", hook.place));
                    before.ask.get_or_insert(why);
                }
                Some(Permission::Allow) | None => {}
            }
            before.input = reply.updated_input.or(before.input);
        }
        before
    }

    /// `afterMCPExecution`, for a server's tool, and `postToolUse`.
    pub(crate) async fn after(
        &self,
        call: HookCall<'_>,
        result: &RawJson,
        duration: Duration,
        cancel: &CancellationToken,
    ) -> Afterwards {
        let mut after = Afterwards::default();
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let events = [HookEvent::AfterMcpExecution, HookEvent::PostToolUse];
        for event in
            events.into_iter().filter(|event| call.server.is_some() || *event == HookEvent::PostToolUse)
        {
            for hook in self.of(event, call) {
                let seen = after.result.as_ref().unwrap_or(result).clone();
                let given = Given { result: &seen, duration_ms };
                let reply = match self.run(hook, call, Some(given), cancel).await {
                    Outcome::Reply(reply) => reply,
                    Outcome::Passed => continue,
                    Outcome::Blocked(text) => {
                        after.withheld = Some(text);
                        return after;
                    }
                };
                if event == HookEvent::AfterMcpExecution {
                    // It only watches.
                    continue;
                }
                after.context.extend(reply.additional_context.map(|text| self.shown(&text)));
                match reply.updated_mcp_tool_output {
                    Some(output) if call.server.is_some() => after.result = Some(as_result(&output)),
                    Some(_) => tracing::warn!(
                        hook = hook.place,
                        "only results of servers' tools are changed by hooks"
                    ),
                    None => {}
                }
            }
        }
        after
    }

    /// The hooks of an event that watch this tool.
    fn of<'h>(&'h self, event: HookEvent, call: HookCall<'_>) -> Vec<&'h Hook> {
        let mut names = vec![shown_name(&call), call.tool.to_owned()];
        names.extend(call.server.map(|server| format!("MCP:{}:{}", server.name, call.tool)));
        let watches = |hook: &&Hook| {
            let matcher = hook.matcher.as_ref();
            hook.event == event
                && matcher.is_none_or(|matcher| names.iter().any(|name| matcher.is_match(name)))
        };
        self.all.iter().filter(watches).collect()
    }

    async fn run(
        &self,
        hook: &Hook,
        call: HookCall<'_>,
        given: Option<Given<'_>>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let failure = match &hook.command {
            Err(why) => format!("it cannot be used: {why}"),
            Ok(command) => {
                let input = message(hook.event, &call, given);
                match run(self.config(hook, command), input, hook.timeout, cancel).await {
                    Ran::Cancelled => return Outcome::Blocked("the run was cancelled".to_owned()),
                    Ran::Failed(why) => why,
                    Ran::Ended { code: 0, stdout, .. } => match Reply::parse(&stdout) {
                        Ok(reply) => return Outcome::Reply(reply),
                        Err(why) => why,
                    },
                    Ran::Ended { code: BLOCKS, stdout, stderr } => {
                        let reply = Reply::parse(&stdout).unwrap_or_default();
                        let words = reply.message().unwrap_or(stderr.trim());
                        let words = if words.is_empty() { "it gave no reason" } else { words };
                        let words = self.shown(words);
                        return Outcome::Blocked(format!(
                            "permission denied by the hook {}: {words}",
                            hook.place
                        ));
                    }
                    Ran::Ended { code, stderr, .. } => {
                        format!("it ended with code {code}: {}", stderr.trim())
                    }
                }
            }
        };
        let failure = self.shown(&failure);
        if hook.fail_closed {
            let text = "permission denied, because a hook that must agree failed";
            return Outcome::Blocked(format!("{text} ({}): {failure}", hook.place));
        }
        tracing::warn!(
            hook = hook.place,
            event = hook.event.name(),
            failure,
            "a hook failed and is passed over"
        );
        Outcome::Passed
    }

    fn config(&self, hook: &Hook, command: &str) -> ChildConfig {
        let mut env = (*self.env).clone();
        env.extend(hook.env.clone());
        let (program, first): (&str, &[&str]) =
            if cfg!(windows) { ("cmd.exe", &["/d", "/s", "/c"]) } else { ("/bin/sh", &["-c"]) };
        let args = first.iter().copied().chain([command]).map(OsString::from).collect();
        ChildConfig {
            program: PathBuf::from(program),
            args,
            env,
            cwd: Some(hook.cwd.clone()),
            supervise: self.supervise.clone(),
        }
    }

    /// Words of a hook as they may be shown: without secrets, and not too many.
    fn shown(&self, text: &str) -> String {
        let text = self.scrubber.scrub(text);
        match text.char_indices().nth(MOST_WORDS) {
            Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
            None => text.into_owned(),
        }
    }
}
