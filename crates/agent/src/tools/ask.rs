//! Owns the tool `askQuestion`: the user is asked, where there is one.

use serde_json::{Value, json};

use super::arguments::fault;
use super::{Arguments, Capability, Tool, ToolContext, ToolOutput};
use crate::engine::BoxFuture;
use crate::person::Question;
use crate::policy::Action;

const ARGUMENTS: [&str; 3] = ["question", "options", "several"];
/// Answers to choose from.
const MOST_OPTIONS: usize = 20;

/// `askQuestion`.
#[derive(Debug)]
pub(super) struct AskQuestion;

impl Tool for AskQuestion {
    fn name(&self) -> &'static str {
        "askQuestion"
    }

    fn capability(&self) -> Capability {
        Capability::AskQuestion
    }

    fn description(&self) -> String {
        "Asks the user and waits for the answer. For what cannot be found out otherwise and decides how to go on."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "The question"},
                "options": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_OPTIONS, "description": "Answers to choose from"},
                "several": {"type": "boolean", "description": "More than one may be chosen"},
            },
            "required": ["question"],
        })
    }

    fn actions(&self, _context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        question(args)?;
        Ok(Vec::new())
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

fn question(args: &Arguments) -> Result<Question, ToolOutput> {
    args.only(&ARGUMENTS)?;
    let options = args.texts("options")?;
    if options.len() > MOST_OPTIONS {
        return Err(fault("options", format!("may be {MOST_OPTIONS} at most")));
    }
    Ok(Question { text: args.required("question")?, options, several: args.flag("several")? })
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    let question = question(args)?;
    let Some(host) = &context.session.host else {
        return Err(ToolOutput::error(
            "Nobody can be asked here. Decide by yourself, and say in the answer what was assumed.",
        ));
    };
    let asked = question.text.clone();
    let answer = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Err(ToolOutput::cancelled()),
        answer = host.ask(question, &context.cancel) => answer,
    };
    match answer {
        Ok(answers) if answers.iter().all(|answer| answer.trim().is_empty()) => {
            Ok(ToolOutput::text("The user gave no answer."))
        }
        Ok(answers) => {
            let details = json!({"question": asked, "answers": answers});
            Ok(ToolOutput::text(answers.join("\n")).with_details(&details))
        }
        Err(reason) => Err(ToolOutput::error(format!("There is no answer: {reason}."))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::person::AskHost;
    use crate::tools::{ToolSession, ToolSetup};

    /// Answers with what it was asked, never, or not at all.
    struct Host(Option<Result<(), String>>);

    impl AskHost for Host {
        fn ask<'a>(
            &'a self,
            question: Question,
            _cancel: &'a CancellationToken,
        ) -> BoxFuture<'a, Result<Vec<String>, String>> {
            Box::pin(async move {
                match &self.0 {
                    None => std::future::pending().await,
                    Some(Err(reason)) => Err(reason.clone()),
                    Some(Ok(())) => Ok(question.options.into_iter().chain([question.text]).collect()),
                }
            })
        }
    }

    async fn ask(host: Option<Host>, args: Value, cancel: CancellationToken) -> ToolOutput {
        let host = host.map(|host| Arc::new(host) as Arc<dyn AskHost>);
        let session = Arc::new(ToolSession::new(ToolSetup::new("/".into(), "/tmp".into()), host));
        let context = ToolContext::new(session, "c", cancel);
        AskQuestion.run(&context, Arguments::of(args).unwrap()).await
    }

    #[tokio::test]
    async fn the_answer_comes_back_or_why_there_is_none() {
        let token = CancellationToken::new;
        let args = || json!({"question": "which?", "options": ["a", "b"]});
        assert_eq!(ask(Some(Host(Some(Ok(())))), args(), token()).await.text, "a\nb\nwhich?");
        let output = ask(Some(Host(Some(Err("the window was closed".to_owned())))), args(), token()).await;
        assert_eq!(
            (output.text.as_str(), output.is_error),
            ("There is no answer: the window was closed.", true)
        );
        let output = ask(None, args(), token()).await;
        assert!(output.is_error && output.text.starts_with("Nobody can be asked here"), "{}", output.text);
        let cancelled = token();
        cancelled.cancel();
        assert!(ask(Some(Host(None)), args(), cancelled).await.is_error);
        assert_eq!(ask(None, json!({}), token()).await.text, "Argument `question`: is missing.");
    }
}
