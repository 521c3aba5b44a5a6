//! Owns the person at the terminal, or nobody: lines that are typed, and what an agent asks: permission, and questions.
//! Knows no agent's run.

mod console;
mod options;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use toolway_agent::{Answer, ApprovalRequest, Approver, AskHost, Question};

use crate::show::{one_line, safe};

pub(crate) use console::{Console, Held, Line};
pub(crate) use options::chosen;

/// The most characters of one action in a question.
const ACTION: usize = 2000;
/// Attempts at an answer.
const ATTEMPTS: usize = 5;
/// What the model is told where nobody can be asked.
const NOBODY: &str = "Nobody can be asked for permission here, and no rule allows it. Go on without it, and say in the \
answer what was not done.";

/// Who is asked for permission, and who answers the model's questions.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    console: Console,
    /// A person can be asked.
    asks: bool,
    /// Everything is allowed that no rule denies.
    yes: bool,
    /// What was denied because nobody could be asked, each once.
    told: Arc<Mutex<BTreeSet<String>>>,
}

impl Asker {
    pub(crate) fn new(console: Console, asks: bool, yes: bool) -> Self {
        Self { console, asks, yes, told: Arc::default() }
    }

    /// As an agent's options want it.
    pub(crate) fn person(&self) -> toolway_agent::Person {
        toolway_agent::Person {
            approver: Some(Arc::new(self.clone())),
            host: self.asks.then(|| Arc::new(self.clone()) as Arc<dyn AskHost>),
        }
    }

    /// Asks whether something may be done; where nobody can answer, it may not.
    pub(crate) async fn confirms(&self, what: &str) -> bool {
        if self.yes {
            return true;
        }
        if !self.asks {
            return false;
        }
        let line = self.console.ask(&format!("{} [y/N] ", safe(what))).await;
        matches!(line, Line::Typed(text) if is_yes(&text))
    }

    /// Waits for the terminal, and has it until what is returned is dropped.
    pub(crate) async fn hold(&self) -> Held {
        self.console.hold().await
    }

    /// Gives the terminal something that steers it, which we made ourselves.
    pub(crate) fn terminal(&self, sequence: &str) {
        self.console.tell(sequence);
    }

    /// Says, once, that it was denied, and which flag allows it.
    fn denied(&self, request: &ApprovalRequest) {
        let done = actions(request);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.insert(done.clone()) {
            return;
        }
        let flags: Vec<String> = request
            .rules
            .iter()
            .map(|rule| format!("--allow {}", crate::render::quoted(rule, cfg!(windows))))
            .collect();
        let flags =
            if flags.is_empty() { "--yes".to_owned() } else { format!("{}, or --yes", flags.join(" ")) };
        self.console.tell(&format!(
            "denied: {done}\nhint: nobody can be asked here (no terminal); allow it with {flags}\n"
        ));
    }

    async fn permission(&self, request: &ApprovalRequest) -> Answer {
        let mut text = format!("\n{} wants to {}\n", one_line(&request.tool, 80), actions(request));
        if !request.reason.is_empty() {
            text.extend(["  (", &one_line(&request.reason, 200), ")\n"]);
        }
        if !request.rules.is_empty() {
            let rules: Vec<String> = request.rules.iter().map(|rule| one_line(rule, 200)).collect();
            text.extend(["  a and w allow: ", &rules.join(" "), "\n"]);
        }
        let longer = if request.rules.is_empty() { "" } else { " [a] for this agent, [w] always," };
        text.extend(["[y] once,", longer, " [n] no, or what to do instead: "]);
        let mut prompt = text;
        for _ in 0..ATTEMPTS {
            let typed = match self.console.ask(&prompt).await {
                Line::Typed(typed) => typed,
                Line::End => return Answer::No(None),
            };
            match typed.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Answer::Once,
                "a" if !request.rules.is_empty() => return Answer::ThisAgent,
                "w" if !request.rules.is_empty() => return Answer::Always,
                "n" | "no" => return Answer::No(None),
                word if word.chars().count() > 3 => return Answer::No(Some(typed.trim().to_owned())),
                _ => "y, n, or some words: ".clone_into(&mut prompt),
            }
        }
        Answer::No(None)
    }

    /// The answers to a question.
    pub(crate) async fn answers(&self, question: &Question) -> Result<Vec<String>, String> {
        if !self.asks {
            return Err("nobody can be asked here (no terminal)".to_owned());
        }
        let mut prompt = format!("\n{}\n", safe(&question.text));
        for (index, option) in question.options.iter().enumerate() {
            writeln!(prompt, "  {}. {}", index + 1, one_line(option, 200)).unwrap_or_default();
        }
        let several = if question.several { ", several with commas" } else { "" };
        if question.options.is_empty() {
            prompt.push_str("> ");
        } else {
            write!(prompt, "a number{several}, or any other answer> ").unwrap_or_default();
        }
        match self.console.ask(&prompt).await {
            Line::Typed(typed) => Ok(chosen(&typed, &question.options, question.several)),
            Line::End => Err("the user gave no answer".to_owned()),
        }
    }
}

impl Approver for Asker {
    fn ask<'a>(
        &'a self,
        request: ApprovalRequest,
        cancel: &'a CancellationToken,
    ) -> toolway_agent::BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.yes {
                return Answer::Once;
            }
            if !self.asks {
                self.denied(&request);
                return Answer::No(Some(NOBODY.to_owned()));
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => Answer::No(None),
                answer = self.permission(&request) => answer,
            }
        })
    }
}

impl AskHost for Asker {
    fn ask<'a>(
        &'a self,
        question: Question,
        cancel: &'a CancellationToken,
    ) -> toolway_agent::BoxFuture<'a, Result<Vec<String>, String>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err("it was cancelled".to_owned()),
                answers = self.answers(&question) => answers,
            }
        })
    }
}

fn actions(request: &ApprovalRequest) -> String {
    let all: Vec<String> =
        request.actions.iter().map(|action| one_line(&action.to_string(), ACTION)).collect();
    if all.is_empty() { one_line(&request.tool, 80) } else { all.join("\n  and ") }
}

fn is_yes(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
