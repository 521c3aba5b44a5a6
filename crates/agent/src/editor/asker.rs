//! Owns the person at the editor: who is asked for permission, and who answers the model's questions. It knows no runs.

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::calls;
use super::outlet::Outlet;
use super::{Shared, lock};
use crate::engine::BoxFuture;
use crate::person::{AskHost, Question};
use crate::policy::{Action, Answer, ApprovalRequest, Approver};

/// What the model is told where the editor shows no forms.
const NO_FORMS: &str = "this editor shows no questions; put the question into your answer and end your turn, and the \
user answers with the next prompt";

/// Asks the person at the editor, for one session.
pub(super) struct Asker {
    session: String,
    outlet: Outlet,
    /// Everything is allowed that no rule denies.
    unasked: bool,
    /// The editor shows forms.
    shows_forms: bool,
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Asker {
    pub(super) fn new(session: &str, shared: &Shared) -> Self {
        Self {
            session: session.to_owned(),
            outlet: shared.outlet.clone(),
            unasked: shared.options.unasked,
            shows_forms: lock(&shared.client).asks,
        }
    }

    async fn permission(&self, request: &ApprovalRequest, cancel: &CancellationToken) -> Answer {
        let params = json!({
            "sessionId": self.session,
            "toolCall": asked_for(request),
            "options": choices(&request.rules),
        });
        let answer = match self.outlet.ask("session/request_permission", &params, cancel).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(reason = error.text(), "a question for permission has no answer");
                return Answer::No(None);
            }
        };
        match answer.pointer("/outcome/optionId").and_then(Value::as_str) {
            Some("once") => Answer::Once,
            Some("session") if !request.rules.is_empty() => Answer::ThisAgent,
            Some("always") if !request.rules.is_empty() => Answer::Always,
            _ => Answer::No(None),
        }
    }

    async fn answers(&self, question: &Question, cancel: &CancellationToken) -> Result<Vec<String>, String> {
        if !self.shows_forms {
            return Err(NO_FORMS.to_owned());
        }
        let answer = match (question.options.is_empty(), question.several) {
            (true, _) => json!({"type": "string", "title": "Answer"}),
            (false, false) => json!({"type": "string", "title": "Answer", "enum": question.options}),
            (false, true) => json!({
                "type": "array", "title": "Answers", "items": {"type": "string", "enum": question.options},
            }),
        };
        let params = json!({
            "mode": "form",
            "sessionId": self.session,
            "message": question.text,
            "requestedSchema": {"type": "object", "properties": {"answer": answer}, "required": ["answer"]},
        });
        let given =
            self.outlet.ask("elicitation/create", &params, cancel).await.map_err(|error| error.text())?;
        match given.pointer("/content/answer") {
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(list)) => {
                Ok(list.iter().filter_map(|one| Some(one.as_str()?.to_owned())).collect())
            }
            _ => Err("the user gave none".to_owned()),
        }
    }
}

impl Approver for Asker {
    fn ask<'a>(&'a self, request: ApprovalRequest, cancel: &'a CancellationToken) -> BoxFuture<'a, Answer> {
        Box::pin(
            async move { if self.unasked { Answer::Once } else { self.permission(&request, cancel).await } },
        )
    }
}

impl AskHost for Asker {
    fn ask<'a>(
        &'a self,
        question: Question,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<String>, String>> {
        Box::pin(async move { self.answers(&question, cancel).await })
    }
}

/// The answers that there are. One for longer says what it allows.
fn choices(rules: &[String]) -> Vec<Value> {
    let choice = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
    let mut choices = vec![choice("once", "Allow once", "allow_once")];
    if !rules.is_empty() {
        let rules = rules.join(", ");
        choices.push(choice("session", &format!("Allow {rules} in this session"), "allow_always"));
        choices.push(choice("always", &format!("Always allow {rules}"), "allow_always"));
    }
    choices.push(choice("no", "Do not allow", "reject_once"));
    choices
}

/// The call that is asked about: what it is about to do that nothing allows, and why it is asked. What the editor knows
/// of the call beside that, a difference above all, stays.
fn asked_for(request: &ApprovalRequest) -> Value {
    let mut call = Map::from_iter([
        ("toolCallId".to_owned(), json!(request.call_id)),
        ("status".to_owned(), json!("pending")),
    ]);
    let mut titles = Vec::new();
    let mut places = Vec::new();
    for action in &request.actions {
        let place = |path: &Path| json!({"path": path});
        let (kind, title, input) = match action {
            Action::Shell { command, cwd } => {
                ("execute", calls::code(command), json!({"command": command, "cwd": cwd}))
            }
            Action::Read(path) => {
                places.push(place(path));
                ("read", format!("Read {}", path.display()), Value::Null)
            }
            Action::Write(path) => {
                places.push(place(path));
                ("edit", format!("Write {}", path.display()), Value::Null)
            }
            Action::Fetch(url) => ("fetch", format!("Fetch {url}"), json!({"url": url})),
            Action::Mcp { server, tool, .. } => ("other", calls::of_server(server, tool), Value::Null),
        };
        titles.push(title);
        call.entry("kind").or_insert_with(|| json!(kind));
        if !input.is_null() {
            call.entry("rawInput").or_insert(input);
        }
    }
    let mut title = if titles.is_empty() { request.tool.clone() } else { titles.join("; ") };
    if !request.reason.is_empty() {
        title.extend([" (", &request.reason, ")"]);
    }
    call.insert("title".to_owned(), json!(title));
    if !places.is_empty() {
        call.insert("locations".to_owned(), json!(places));
    }
    Value::Object(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_what_is_about_to_be_done_and_what_an_answer_allows() {
        let mut request = ApprovalRequest {
            call_id: "c".to_owned(),
            tool: "shell".to_owned(),
            actions: vec![
                Action::Shell { command: "touch a".to_owned(), cwd: None },
                Action::Write("/w/a".into()),
            ],
            reason: "nothing allows it".to_owned(),
            rules: vec!["Shell(touch)".to_owned()],
        };
        let call = asked_for(&request);
        assert_eq!(
            (&call["title"], &call["kind"], &call["rawInput"]["command"], &call["locations"][0]["path"]),
            (
                &json!("`touch a`; Write /w/a (nothing allows it)"),
                &json!("execute"),
                &json!("touch a"),
                &json!("/w/a")
            )
        );
        let ids = |rules: &[String]| -> Vec<String> {
            choices(rules).iter().map(|choice| choice["optionId"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(&request.rules), ["once", "session", "always", "no"]);
        request.rules.clear();
        assert_eq!(ids(&request.rules), ["once", "no"]);
    }
}
