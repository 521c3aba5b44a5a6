//! Owns the way of a call through hooks, rules and answers, before and after it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;
use toolway_config::Environment;

use super::action::{Action, PermissionMode};
use super::answer::{Answer, ApprovalRequest, Approver};
use super::decide::{Decision, Rulebook};
use super::files::user_file;
use super::remember::remember;
use super::rule::{PermissionRules, Rule};
use crate::hooks::{HookCall, HookFacts, Hooks, McpServerUse};

/// How the text of a refusal begins that a person gave, who knows of it.
pub(crate) const USER_REFUSED: &str = "permission denied: the user refused to ";

/// A call that is about to be made.
pub struct ToolUse<'a> {
    /// Its id.
    pub call_id: &'a str,
    /// A built-in tool's name, or a tool's own name at its server.
    pub tool: &'a str,
    /// Its server, if it is a server's.
    pub server: Option<&'a McpServerUse>,
    /// Its arguments.
    pub input: RawJson,
    /// What it does with these arguments. Called again when a hook changed them. Empty: nothing that needs permission.
    /// For a server's tool the call itself is added.
    pub actions: &'a (dyn Fn(&RawJson) -> Vec<Action> + Send + Sync),
    /// Whose call it is.
    pub facts: &'a HookFacts,
}

impl fmt::Debug for ToolUse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call_id, tool, server, .. } = self;
        f.debug_struct("ToolUse")
            .field("call_id", call_id)
            .field("tool", tool)
            .field("server", server)
            .finish()
    }
}

/// Whether a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is, with these arguments.
    Go(RawJson),
    /// It is not; the model gets this text as an error result.
    Refused(String),
}

/// What becomes of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct After {
    /// Another result in place of the server's, a whole `CallToolResult`.
    pub result: Option<RawJson>,
    /// The model gets this text as an error result instead.
    pub withheld: Option<String>,
    /// More for the model to read.
    pub context: Vec<String>,
}

/// What a gate is made of.
pub struct GateOptions {
    /// How strict.
    pub mode: PermissionMode,
    /// The rules.
    pub rules: PermissionRules,
    /// Who is asked; nobody: what would be asked is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// The hooks.
    pub hooks: Hooks,
    /// The machine.
    pub environment: Environment,
    /// The agent's folder.
    pub cwd: PathBuf,
    /// The folders it works in besides.
    pub roots: Vec<PathBuf>,
}

impl fmt::Debug for GateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, rules, hooks, cwd, roots, .. } = self;
        let mut shown = f.debug_struct("GateOptions");
        shown.field("mode", mode).field("rules", rules).field("hooks", hooks).field("cwd", cwd);
        shown.field("roots", roots).finish_non_exhaustive()
    }
}

/// What stands between a model and its tools. One for each agent's handle; clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

struct Inner {
    book: Mutex<Rulebook>,
    /// Actions that were allowed for this agent and that no rule can name.
    allowed: Mutex<BTreeSet<Action>>,
    approver: Option<Arc<dyn Approver>>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
    hooks: Hooks,
    user_file: PathBuf,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let approver = self.inner.approver.is_some();
        f.debug_struct("Gate").field("approver", &approver).field("hooks", &self.inner.hooks).finish()
    }
}

/// What rules say about a whole call.
#[derive(Debug)]
enum Ruled {
    Free,
    Refused(String),
    Asked { actions: Vec<Action>, reasons: Vec<String>, rules: Vec<String> },
}

impl Gate {
    /// A gate.
    pub fn new(options: GateOptions) -> Self {
        let GateOptions { mode, rules, approver, hooks, environment, cwd, roots } = options;
        let book = Rulebook::new(mode, rules, &cwd, &roots, &environment);
        let user_file = user_file(&environment);
        let inner = Inner {
            book: Mutex::new(book),
            allowed: Mutex::default(),
            approver,
            asking: tokio::sync::Mutex::default(),
            hooks,
            user_file,
        };
        Self { inner: Arc::new(inner) }
    }

    /// What the rules say about one action. Nobody is asked, and no hook runs.
    pub fn decide(&self, action: &Action) -> Decision {
        let decision = self.book().decide(action);
        let is_asked = matches!(decision, Decision::Ask { .. });
        if is_asked && lock(&self.inner.allowed).contains(action) { Decision::Allow } else { decision }
    }

    /// Whether any rule denies reading: otherwise every file that is within reach may be seen.
    pub fn hides_files(&self) -> bool {
        self.book().denies_reading()
    }

    /// Asks the rules, and whoever answers, about actions alone: for an agent behind a protocol that executes its tools
    /// itself. A text: it is refused.
    pub async fn permit(
        &self,
        call_id: &str,
        tool: &str,
        actions: &[Action],
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        match self.rule(actions).await {
            Ruled::Free => Ok(()),
            Ruled::Refused(text) => Err(text),
            Ruled::Asked { .. } => self.ask(call_id, tool, actions, None, cancel).await,
        }
    }

    /// Before a call: hooks of tools, rules, hooks of servers, and then whoever is asked.
    pub async fn before(&self, tool_use: &ToolUse<'_>, cancel: &CancellationToken) -> Verdict {
        let ToolUse { call_id, tool, server, input, actions, facts } = tool_use;
        let hooks = &self.inner.hooks;
        let call = HookCall { facts, call_id, tool, server: *server, input };
        let first = hooks.before_tool(call, cancel).await;
        if let Some(text) = first.deny {
            return Verdict::Refused(text);
        }
        let input = first.input.unwrap_or_else(|| input.clone());
        let mut actions = actions(&input);
        actions.extend(server.map(|server| Action::Mcp {
            server: server.name.clone(),
            tool: (*tool).to_owned(),
            explicit: server.explicit,
        }));
        let ruled = self.rule(&actions).await;
        if let Ruled::Refused(text) = ruled {
            return Verdict::Refused(text);
        }
        let mut why = first.ask;
        if server.is_some() {
            let second = hooks.before_server(HookCall { input: &input, ..call }, cancel).await;
            if let Some(text) = second.deny {
                return Verdict::Refused(text);
            }
            why = why.or(second.ask);
        }
        if matches!(ruled, Ruled::Free) && why.is_none() {
            return Verdict::Go(input);
        }
        match self.ask(call_id, tool, &actions, why, cancel).await {
            Ok(()) => Verdict::Go(input),
            Err(text) => Verdict::Refused(text),
        }
    }

    /// After a call: `input` is what it was made with, `result` what it gave, of a server's tool the whole result.
    pub async fn after(
        &self,
        tool_use: &ToolUse<'_>,
        input: &RawJson,
        result: &RawJson,
        duration: Duration,
        cancel: &CancellationToken,
    ) -> After {
        let ToolUse { call_id, tool, server, facts, .. } = tool_use;
        let call = HookCall { facts, call_id, tool, server: *server, input };
        let after = self.inner.hooks.after(call, result, duration, cancel).await;
        After { result: after.result, withheld: after.withheld, context: after.context }
    }

    /// Whether any hook wants to hear what calls of servers gave.
    pub fn hears(&self) -> bool {
        self.inner.hooks.hears()
    }

    fn book(&self) -> MutexGuard<'_, Rulebook> {
        lock(&self.inner.book)
    }

    /// What the rules say about a call. Paths are looked at on the disk, so it is done where one may wait.
    async fn rule(&self, actions: &[Action]) -> Ruled {
        if actions.is_empty() {
            return Ruled::Free;
        }
        let (gate, actions) = (self.clone(), actions.to_vec());
        let ruled = tokio::task::spawn_blocking(move || gate.rule_now(actions)).await;
        ruled.unwrap_or_else(|error| Ruled::Refused(format!("permission denied: the rules failed: {error}")))
    }

    fn rule_now(&self, actions: Vec<Action>) -> Ruled {
        let mut asked = (Vec::new(), Vec::new(), Vec::new());
        let mut nameless = false;
        for action in actions {
            match self.decide(&action) {
                Decision::Allow => {}
                Decision::Deny { rule, place } => {
                    return Ruled::Refused(format!(
                        "permission denied: the rule {rule} ({place}) denies to {action}. Only the user can change \
                         that, by removing the rule; do not try to reach the same another way."
                    ));
                }
                Decision::Ask { reason, rules } => {
                    nameless |= rules.is_empty();
                    asked.0.push(action);
                    asked.1.push(reason);
                    asked.2.extend(rules);
                }
            }
        }
        let (actions, reasons, rules) = asked;
        if actions.is_empty() {
            return Ruled::Free;
        }
        Ruled::Asked { actions, reasons, rules: if nameless { Vec::new() } else { rules } }
    }

    /// Asks whoever answers. The rules are looked at again: the answer before may have settled it.
    async fn ask(
        &self,
        call_id: &str,
        tool: &str,
        actions: &[Action],
        why: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        let _turn = tokio::select! {
            turn = self.inner.asking.lock() => turn,
            () = cancel.cancelled() => return Err("the run was cancelled".to_owned()),
        };
        let (open, reasons, rules) = match self.rule(actions).await {
            Ruled::Refused(text) => return Err(text),
            Ruled::Free if why.is_none() => return Ok(()),
            Ruled::Free => (actions.to_vec(), Vec::new(), Vec::new()),
            Ruled::Asked { actions, reasons, rules } => (actions, reasons, rules),
        };
        // What a hook wants asked is asked each time.
        let rules = if why.is_some() { Vec::new() } else { rules };
        let reason = why.iter().chain(&reasons).cloned().collect::<Vec<_>>().join("; ");
        let Some(approver) = &self.inner.approver else {
            return Err(self.unanswered(&open, &reason, &rules));
        };
        let request = ApprovalRequest {
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            actions: open.clone(),
            reason,
            rules: rules.clone(),
        };
        let answer = tokio::select! {
            answer = approver.ask(request, cancel) => answer,
            () = cancel.cancelled() => return Err("the run was cancelled".to_owned()),
        };
        match answer {
            Answer::ThisAgent if why.is_none() => self.keep(&open, &rules),
            Answer::Always if why.is_none() => {
                self.keep(&open, &rules);
                self.keep_for_good(rules).await;
            }
            Answer::Once | Answer::ThisAgent | Answer::Always => {}
            Answer::No(said) => {
                let said = said.map(|said| format!(" and said: {said}")).unwrap_or_default();
                return Err(format!("{USER_REFUSED}{}{said}", listed(&open)));
            }
        }
        Ok(())
    }

    fn keep(&self, actions: &[Action], rules: &[String]) {
        let rules = rules.iter().filter_map(|rule| Rule::parse(rule, "an answer").ok());
        self.book().permit(rules);
        lock(&self.inner.allowed).extend(actions.iter().cloned());
    }

    async fn keep_for_good(&self, rules: Vec<String>) {
        if rules.is_empty() {
            return;
        }
        let file = self.inner.user_file.clone();
        let kept = tokio::task::spawn_blocking(move || remember(&file, &rules)).await;
        match kept {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => tracing::warn!(%problem, "an answer holds for this agent only"),
            Err(error) => tracing::warn!(%error, "an answer holds for this agent only"),
        }
    }

    fn unanswered(&self, actions: &[Action], reason: &str, rules: &[String]) -> String {
        let wanted = listed(actions);
        let how = if rules.is_empty() {
            "nobody is here to answer, and no rule can allow it".to_owned()
        } else {
            let rules: Vec<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
            let file = self.inner.user_file.display();
            format!(
                "nobody is here to answer; to allow it, the user adds {} to permissions.allow, in the program's \
                 options or in {file}",
                rules.join(", ")
            )
        };
        format!("permission denied to {wanted}: {reason}; {how}")
    }
}

fn listed(actions: &[Action]) -> String {
    let texts: Vec<String> = actions.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// A panic of somebody who held the lock leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
