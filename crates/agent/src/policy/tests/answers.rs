//! Who is asked, and what is remembered.

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::*;
use crate::boxed::BoxFuture;
use crate::hooks::{HookFacts, McpServerUse};
use crate::policy::{Answer, ApprovalRequest, Approver, ToolUse, Verdict};

/// Gives its answers one after the other, and then says no.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Scripted {
    fn new(answers: &[Answer]) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.to_vec()), asked: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Approver for Scripted {
    fn ask<'a>(&'a self, request: ApprovalRequest, _: &'a CancellationToken) -> BoxFuture<'a, Answer> {
        self.asked.lock().unwrap().push(request);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.is_empty() { Answer::No(None) } else { answers.remove(0) };
        Box::pin(async move { answer })
    }
}

fn gate(machine: &Machine, approver: Option<Arc<Scripted>>) -> Gate {
    let mut options = machine.options(PermissionMode::Ask, PermissionRules::default());
    options.approver = approver.map(|approver| approver as Arc<dyn Approver>);
    Gate::new(options)
}

async fn run(gate: &Gate, command: &str) -> Verdict {
    let actions = [shell(command)];
    let tool_use = ToolUse {
        call_id: "c1",
        tool: "shell",
        server: None,
        input: RawJson::empty_object(),
        actions: &|_| actions.to_vec(),
        facts: &HookFacts::default(),
    };
    gate.before(&tool_use, &CancellationToken::new()).await
}

fn refusal(verdict: Verdict) -> String {
    match verdict {
        Verdict::Refused(text) => text,
        Verdict::Go(_) => panic!("it went"),
    }
}

#[tokio::test]
async fn without_anybody_to_ask_it_is_denied_with_the_rule_that_would_allow_it() {
    let machine = Machine::new();
    let text = refusal(run(&gate(&machine, None), "git status").await);
    let file = machine.home.join(".config/toolway/permissions.json");
    assert!(text.contains("\"Shell(git status)\"") && text.contains(&file.display().to_string()), "{text}");
    let text = refusal(run(&machine.gate(PermissionMode::Ask, &[], &["Shell(git)"]), "git status").await);
    assert!(text.contains("Shell(git) (options)"), "{text}");
}

#[tokio::test]
async fn answers_hold_as_long_as_they_say() {
    let machine = Machine::new();
    let approver = Scripted::new(&[Answer::Once, Answer::ThisAgent, Answer::No(Some("use cargo".into()))]);
    let gate = gate(&machine, Some(Arc::clone(&approver)));
    assert!(matches!(run(&gate, "make all").await, Verdict::Go(_)));
    assert!(matches!(run(&gate, "make all").await, Verdict::Go(_)));
    assert!(matches!(run(&gate, "make all -j").await, Verdict::Go(_)));
    assert_eq!(approver.asked(), 2);
    let text = refusal(run(&gate, "make clean").await);
    assert!(text.contains("use cargo"), "{text}");
    assert!(!machine.home.join(".config").exists(), "nothing was to be kept for good");
}

#[tokio::test]
async fn what_no_rule_can_name_is_kept_as_it_is() {
    let machine = Machine::new();
    let approver = Scripted::new(&[Answer::ThisAgent]);
    let gate = gate(&machine, Some(Arc::clone(&approver)));
    assert!(matches!(run(&gate, "A=1 make").await, Verdict::Go(_)));
    assert!(matches!(run(&gate, "A=1 make").await, Verdict::Go(_)));
    assert!(matches!(run(&gate, "A=2 make").await, Verdict::Refused(_)));
    let asked = approver.asked.lock().unwrap();
    assert!(asked[0].rules.is_empty() && asked.len() == 2);
}

#[tokio::test]
async fn a_lasting_answer_is_in_the_users_own_file_and_the_rest_of_it_stays() {
    let machine = Machine::new();
    let before =
        "{\n  // mine\n  \"permissions\": {\"allow\": [\"Shell(ls)\"], \"deny\": [\"Shell(rm)\"]}\n}\n";
    let file = machine.write(".config/toolway/permissions.json", before);
    let approver = Scripted::new(&[Answer::Always, Answer::Always]);
    assert!(matches!(run(&gate(&machine, Some(Arc::clone(&approver))), "git status").await, Verdict::Go(_)));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("// mine") && text.contains("Shell(git status)") && text.contains("Shell(rm)"),
        "{text}"
    );
    let rules = PermissionRules::load(&machine.sources(&[SettingSource::User]));
    let later = Gate::new(machine.options(PermissionMode::Ask, rules));
    assert!(matches!(run(&later, "git status && ls").await, Verdict::Go(_)));
}

#[tokio::test]
async fn a_lasting_answer_makes_the_file_for_the_user_alone() {
    let machine = Machine::new();
    let approver = Scripted::new(&[Answer::Always]);
    assert!(matches!(run(&gate(&machine, Some(approver)), "git status").await, Verdict::Go(_)));
    let file = machine.home.join(".config/toolway/permissions.json");
    let node = toolway_config::read(&std::fs::read(&file).unwrap(), toolway_config::Format::Json).unwrap();
    assert_eq!(node.to_json(), serde_json::json!({"permissions": {"allow": ["Shell(git status)"]}}));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
    }
}

#[tokio::test]
async fn one_question_at_a_time_and_its_answer_settles_the_next() {
    let machine = Machine::new();
    let approver = Scripted::new(&[Answer::ThisAgent]);
    let gate = gate(&machine, Some(Arc::clone(&approver)));
    let (one, other) = tokio::join!(run(&gate, "git status"), run(&gate, "git status -s"));
    assert!(matches!((one, other), (Verdict::Go(_), Verdict::Go(_))));
    assert_eq!(approver.asked(), 1);
}

#[tokio::test]
async fn a_cancelled_run_waits_for_no_answer() {
    struct Silent;
    impl Approver for Silent {
        fn ask<'a>(&'a self, _: ApprovalRequest, _: &'a CancellationToken) -> BoxFuture<'a, Answer> {
            Box::pin(std::future::pending())
        }
    }
    let machine = Machine::new();
    let mut options = machine.options(PermissionMode::Ask, PermissionRules::default());
    options.approver = Some(Arc::new(Silent));
    let gate = Gate::new(options);
    let cancel = CancellationToken::new();
    let actions = [shell("ls")];
    let permit = gate.permit("c", "shell", &actions, &cancel);
    let (answer, ()) = tokio::join!(permit, async { cancel.cancel() });
    assert!(answer.unwrap_err().contains("cancelled"));
}

#[tokio::test]
async fn servers_of_files_are_asked_and_those_of_programs_are_not() {
    let machine = Machine::new();
    let gate = gate(&machine, None);
    for explicit in [true, false] {
        let server = McpServerUse { name: "db".into(), explicit, ..McpServerUse::default() };
        let tool_use = ToolUse {
            call_id: "c1",
            tool: "query",
            server: Some(&server),
            input: RawJson::empty_object(),
            actions: &|_| Vec::new(),
            facts: &HookFacts::default(),
        };
        match gate.before(&tool_use, &CancellationToken::new()).await {
            Verdict::Go(_) => assert!(explicit),
            Verdict::Refused(text) => assert!(!explicit && text.contains("Mcp(db:query)"), "{text}"),
        }
    }
}
