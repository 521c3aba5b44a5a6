//! Owns the way of one call: through the gate to the tool, and its result back through guard and hooks.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;
use toolway_proxy::gateway::CALL_TOOL;

use super::told::failed;
use super::{Work, task};
use crate::event::{Delta, Usage};
use crate::generation::{McpCall, McpProgress, McpResult, McpTarget};
use crate::native::model::UserPart;
use crate::native::toolset::{Target, Toolset};
use crate::native::turn_loop::{CallDone, PlannedCall};
use crate::native::{guarded, results};
use crate::options::Limits;
use crate::policy::{Action, After, ToolUse, Verdict};
use crate::subagent::TASK;
use crate::tools::{Arguments, Tool, ToolContext, ToolOutput};

/// Messages of progress that may wait; more of them are not told.
const PROGRESS: usize = 16;

/// Makes a call. Always ends with a result.
pub(super) async fn call(
    work: Arc<Work>,
    toolset: Arc<Toolset>,
    call: PlannedCall,
    left: Limits,
    cancel: CancellationToken,
) -> CallDone {
    match toolset.target(&call.name) {
        Some(Target::BuiltIn(tool)) => built_in(&work, tool.as_ref(), call, &cancel).await,
        Some(Target::Mcp(tool)) => server(&work, &tool.exposed, call, &cancel).await,
        Some(Target::Task) => subagent(&work, call, left, &cancel).await,
        Some(Target::Saved) => saved(&work, call).await,
        // Its server is on its way, or failed: it is waited for, and says so.
        None if work.servers.server_of(&call.name).is_some() => {
            server(&work, &call.name.clone(), call, &cancel).await
        }
        None => failed(call.id, &format!("There is no tool {:?} any more.", call.name)),
    }
}

async fn built_in(work: &Work, tool: &dyn Tool, call: PlannedCall, cancel: &CancellationToken) -> CallDone {
    let session = Arc::clone(&work.setup.session);
    let mut context = ToolContext::new(session, call.id.clone(), cancel.clone());
    context.sink = Some(Arc::clone(&work.sink));
    let for_actions = context.clone();
    // What the gate was asked about last is what is granted, whatever the disk says a moment later.
    let judged = Mutex::new(None);
    let actions = |input: &RawJson| -> Vec<Action> {
        let read = Arguments::from_raw(input)
            .and_then(|args| tool.actions(&for_actions, &args).map(|actions| (args, actions)));
        let actions = read.as_ref().map(|(_, actions)| actions.clone()).unwrap_or_default();
        *judged.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        actions
    };
    let tool_use = ToolUse {
        call_id: &call.id,
        tool: tool.name(),
        server: None,
        input: call.arguments.clone(),
        actions: &actions,
        facts: &work.facts,
    };
    let gate = &work.surroundings.gate;
    let input = match gate.before(&tool_use, cancel).await {
        Verdict::Go(input) => input,
        Verdict::Refused(text) => return failed(call.id, &text),
    };
    let begun = Instant::now();
    let judged_last = judged.lock().unwrap_or_else(PoisonError::into_inner).take();
    let output = match judged_last {
        Some(Ok((args, granted))) => {
            context.granted = granted;
            tool.run(&context, args).await
        }
        Some(Err(output)) => output,
        None => ToolOutput::error("The call was not judged, so it was not made.".to_owned()),
    };
    let (text, mut is_part) = fitted(work, tool.name(), &output).await;
    let mut result = results::shown_of_built_in(&output, &text);
    let mut content = results::of_built_in(&output, text);
    let mut is_error = output.is_error;
    let after = gate.after(&tool_use, &input, &result, begun.elapsed(), cancel).await;
    is_part &= !apply(after, &mut content, &mut is_error, &mut result);
    CallDone { id: call.id, content, is_error, result, is_part, usage: Usage::default(), cost: None }
}

/// Hooks see the task; the calls of the subagent are judged one by one.
async fn subagent(work: &Work, mut call: PlannedCall, left: Limits, cancel: &CancellationToken) -> CallDone {
    let no_actions = |_: &RawJson| Vec::new();
    let asked = call.clone();
    let tool_use = ToolUse {
        call_id: &asked.id,
        tool: TASK,
        server: None,
        input: asked.arguments.clone(),
        actions: &no_actions,
        facts: &work.facts,
    };
    let gate = &work.surroundings.gate;
    let arguments = match gate.before(&tool_use, cancel).await {
        Verdict::Go(input) => input,
        Verdict::Refused(text) => return failed(call.id, &text),
    };
    call.arguments = arguments.clone();
    let begun = Instant::now();
    let mut done = task::run(work, call, left, cancel).await;
    let after = gate.after(&tool_use, &arguments, &done.result, begun.elapsed(), cancel).await;
    apply(after, &mut done.content, &mut done.is_error, &mut done.result);
    done
}

/// The text of an answer, or what stands for it where it is too large; and whether it is that.
async fn fitted(work: &Work, tool: &str, output: &ToolOutput) -> (String, bool) {
    let Some(guard) = work.setup.guard.as_ref().filter(|_| output.text.len() > 900) else {
        return (output.text.clone(), false);
    };
    let (guard, tool, text) = (Arc::clone(guard), tool.to_owned(), output.text.clone());
    let (session, is_error) = (work.facts.conversation_id.clone(), output.is_error);
    let fitted =
        tokio::task::spawn_blocking(move || guarded::fitted(&guard, &tool, &session, &text, is_error));
    match fitted.await {
        Ok(Some(part)) => (part, true),
        _ => (output.text.clone(), false),
    }
}

async fn server(work: &Work, exposed: &str, call: PlannedCall, cancel: &CancellationToken) -> CallDone {
    let asked = McpCall { exposed, arguments: call.arguments.clone() };
    let found = work.servers.find(&asked, cancel).await;
    let target = found.filter(|target| !target.server.is_empty());
    let begun = Instant::now();
    let Some(target) = target else {
        // The gateway's own tools touch nothing, and what is not there says so.
        let result = ask(work, &call.id, asked, cancel).await;
        return of_server(call.id, &result, None);
    };
    let server_use = work.servers.server_use(&target.server);
    let no_actions = |_: &RawJson| Vec::new();
    let tool_use = ToolUse {
        call_id: &call.id,
        tool: &target.tool,
        server: Some(&server_use),
        input: target.arguments.clone(),
        actions: &no_actions,
        facts: &work.facts,
    };
    let gate = &work.surroundings.gate;
    let input = match gate.before(&tool_use, cancel).await {
        Verdict::Go(input) => input,
        Verdict::Refused(text) => return failed(call.id, &text),
    };
    let asked = if input == target.arguments { asked } else { changed(&asked, &target, &input) };
    let result = ask(work, &call.id, asked, cancel).await;
    let after = gate.after(&tool_use, &input, &result.content, begun.elapsed(), cancel).await;
    of_server(call.id, &result, Some(after))
}

/// The call with the arguments that a hook put in the place of the model's.
fn changed<'a>(asked: &McpCall<'a>, target: &McpTarget, input: &RawJson) -> McpCall<'a> {
    let exposed = asked.exposed;
    if exposed != CALL_TOOL {
        return McpCall { exposed, arguments: input.clone() };
    }
    let text = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    let (server, name) = (text(&target.server), text(&target.tool));
    let json = format!(r#"{{"name":{name},"server":{server},"arguments":{}}}"#, input.text());
    McpCall { exposed, arguments: RawJson::new(json.into_bytes()).unwrap_or_else(|_| input.clone()) }
}

/// Calls a server's tool and tells of its progress meanwhile.
async fn ask(work: &Work, call_id: &str, asked: McpCall<'_>, cancel: &CancellationToken) -> McpResult {
    let (told, mut heard) = tokio::sync::mpsc::channel::<McpProgress>(PROGRESS);
    let progress = move |progress: McpProgress| {
        // What cannot be told now is told by the next one.
        told.try_send(progress).ok();
    };
    let tell = async {
        while let Some(progress) = heard.recv().await {
            let delta = Delta::ToolCallProgress { call_id: call_id.to_owned(), message: said(&progress) };
            work.sink.delta(delta).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        result = work.servers.call(asked, progress, cancel) => result,
        () = tell => McpResult { content: RawJson::empty_object(), is_error: true },
    }
}

fn said(progress: &McpProgress) -> String {
    let McpProgress { progress, total, message } = progress;
    let far = match total {
        Some(total) => format!("{progress}/{total}"),
        None => progress.to_string(),
    };
    match message {
        Some(message) => format!("{far} {message}"),
        None => far,
    }
}

fn of_server(id: String, result: &McpResult, after: Option<After>) -> CallDone {
    let mut content = results::of_server(result);
    let mut shown = results::shown_of_server(result);
    let mut is_error = result.is_error;
    let mut is_part = results::is_saved(result);
    if let Some(after) = after {
        is_part &= !apply(after, &mut content, &mut is_error, &mut shown);
    }
    CallDone { id, content, is_error, result: shown, is_part, usage: Usage::default(), cost: None }
}

/// What hooks made of a result, and whether that is another one.
fn apply(after: After, content: &mut Vec<UserPart>, is_error: &mut bool, result: &mut RawJson) -> bool {
    let After { result: other, withheld, context } = after;
    let is_other = withheld.is_some() || other.is_some();
    if let Some(text) = withheld {
        *content = vec![UserPart::Text(text.clone())];
        *is_error = true;
        *result = results::error(&text);
    } else if let Some(other) = other {
        let is_failure = other.tree().get("isError").and_then(serde_json::Value::as_bool).unwrap_or(false);
        let other = McpResult { content: other, is_error: is_failure };
        *content = results::of_server(&other);
        *is_error = is_failure;
        *result = results::shown_of_server(&other);
    }
    content.extend(context.into_iter().map(UserPart::Text));
    is_other
}

async fn saved(work: &Work, call: PlannedCall) -> CallDone {
    let Some(guard) = &work.setup.guard else {
        return failed(call.id, "Nothing is saved here.");
    };
    let (guard, session) = (Arc::clone(guard), work.facts.conversation_id.clone());
    let arguments = call.arguments.clone();
    let read = tokio::task::spawn_blocking(move || guarded::read_back(&guard, &arguments, &session)).await;
    let (text, is_error) = read.unwrap_or_else(|_| ("The saved result cannot be read.".to_owned(), true));
    let result = RawJson::of(&serde_json::json!({ "text": text, "isError": is_error }));
    let content = vec![UserPart::Text(text)];
    CallDone { id: call.id, content, is_error, result, is_part: false, usage: Usage::default(), cost: None }
}
