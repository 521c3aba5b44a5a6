//! When a plain follow-up is enough, and everything that forces a new beginning.

use serde_json::json;

use super::*;

const TOOLS: &[u8] = br#"[{"name":"pi__todo"}]"#;

fn system(text: &str) -> HostSystem {
    HostSystem::Text(text.to_owned())
}

fn pool() -> PoolKey {
    PoolKey {
        session: "s1".to_owned(),
        cwd: "/w".to_owned(),
        model: "fast".to_owned(),
        setting_sources: vec!["user".to_owned(), "project".to_owned()],
        auto_review: false,
        sandbox: false,
        transport: "default".to_owned(),
        api_key: Some(PoolKey::key_digest(&toolway_secret::Secret::new("hunter2"))),
        surface: "bridge:on:1a2b3c4d".to_owned(),
    }
}

fn turns(count: usize) -> Vec<Message> {
    let turn =
        |number| [Message::user(&format!("wish {number}")), Message::assistant(&format!("answer {number}"))];
    (0..count).flat_map(turn).chain([Message::user("latest")]).collect()
}

/// One session: the host's view, and what its agent knows.
struct Session {
    continuity: Continuity,
    system: HostSystem,
    catalogue: Option<Catalogue>,
    tools: Vec<u8>,
    messages: Vec<Message>,
    pool: PoolKey,
    now: Instant,
}

impl Session {
    fn new() -> Self {
        Self {
            continuity: Continuity::new(),
            system: system("be kind"),
            catalogue: None,
            tools: TOOLS.to_vec(),
            messages: turns(0),
            pool: pool(),
            now: Instant::now(),
        }
    }

    /// A session that was sent its first prompt, and whose agent answered.
    fn begun() -> Self {
        let mut session = Self::new();
        session.send();
        session.follow_up();
        session
    }

    fn follow_up(&mut self) {
        self.messages.extend([Message::assistant("answer"), Message::user("more")]);
    }

    fn step(&self) -> Step {
        let Self { system, tools, messages, pool, .. } = self;
        let catalogue = self.catalogue.as_ref();
        self.continuity.decide(&Situation { system, catalogue, tools, messages, pool }, self.now)
    }

    fn send(&mut self) -> Decision {
        let step = self.step();
        let decision = step.decision.clone();
        self.continuity.commit(step, self.now);
        decision
    }

    fn cause(&self) -> Option<Cause> {
        match self.step().decision {
            Decision::Bootstrap { cause, new_agent } => {
                assert_eq!(new_agent, !matches!(cause, Cause::NeverSent | Cause::Resumed), "{cause}");
                Some(cause)
            }
            Decision::Incremental { .. } => None,
        }
    }
}

fn message(value: serde_json::Value) -> Message {
    serde_json::from_value(value).unwrap()
}

#[test]
fn statement_38_changes_of_what_was_sent_and_the_21st_increment_begin_anew_a_follow_up_does_not() {
    let mut session = Session::new();
    assert_eq!(session.send(), Decision::Bootstrap { cause: Cause::NeverSent, new_agent: false });
    session.follow_up();
    assert_eq!(session.step().decision, Decision::Incremental { sent: 1 });

    session.system = system("be quick");
    assert_eq!(session.cause(), Some(Cause::SystemPrompt));

    let mut session = Session::begun();
    session.messages[0] = Message::user("what I meant");
    assert_eq!(session.cause(), Some(Cause::History(0)));

    for (summary, cause) in
        [("branchSummary", Cause::BranchSummary), ("compactionSummary", Cause::CompactionSummary)]
    {
        let mut session = Session::begun();
        session.messages.insert(1, message(json!({"role": summary, "summary": "s"})));
        assert_eq!(session.cause(), Some(cause));
    }

    let mut session = Session::begun();
    for number in 1..=20 {
        assert!(matches!(session.send(), Decision::Incremental { .. }), "increment {number}");
        session.follow_up();
    }
    let expected = Decision::Bootstrap { cause: Cause::IncrementalLimit, new_agent: true };
    assert_eq!(session.send(), expected, "the 21st");
    session.follow_up();
    assert!(matches!(session.send(), Decision::Incremental { .. }), "the count begins anew");
}

#[test]
fn every_divergence_has_its_cause() {
    let mut session = Session::begun();
    session.tools = b"[]".to_vec();
    assert_eq!(session.cause(), Some(Cause::Tools));

    let skill = crate::skills::Skill {
        name: "swim".to_owned(),
        description: String::new(),
        file_path: "/skills/swim/SKILL.md".to_owned(),
        base_dir: "/skills/swim".to_owned(),
        disable_model_invocation: false,
    };
    let list = crate::skills::SkillList::read(vec![skill]);
    let mut session = Session::begun();
    session.catalogue = Some(Catalogue::new(list.clone(), None));
    assert_eq!(session.cause(), Some(Cause::SystemPrompt), "skills came that the agent does not know");
    session.send();
    session.follow_up();
    assert_eq!(session.cause(), None);
    session.catalogue = Some(Catalogue::new(list, Some("pi__cursor_activate_skill")));
    assert_eq!(session.cause(), Some(Cause::SystemPrompt), "they are activated in another way");

    let mut session = Session::begun();
    session.messages.clear();
    assert_eq!(session.cause(), Some(Cause::FewerMessages));

    let mut session = Session::new();
    session.messages = turns(3);
    session.send();
    session.follow_up();
    session.messages[4] = Message::user("edited");
    assert_eq!(session.cause(), Some(Cause::History(4)));
    session.messages.truncate(5);
    assert_eq!(session.cause(), Some(Cause::History(4)), "an edit is told before a loss");

    for kept in ["custom", "bashExecution", "compactionSummary", "branchSummary"] {
        let mut session = Session::new();
        session
            .messages
            .insert(0, message(json!({"role": kept, "summary": "a", "content": "a", "output": "a"})));
        session.send();
        session.follow_up();
        assert_eq!(session.cause(), None, "a summary that the agent has is no reason: {kept}");
        session.messages[0] = message(json!({"role": kept, "summary": "b", "content": "b", "output": "b"}));
        assert_eq!(session.cause(), Some(Cause::History(0)), "{kept}");
    }
}

#[test]
fn every_event_has_its_cause_and_holds_until_a_send_was_accepted() {
    for cause in [Cause::SendError, Cause::Compaction, Cause::TreeNavigation, Cause::DeadTransport] {
        let mut session = Session::begun();
        session.continuity.broken(cause.clone());
        session.continuity.broken(Cause::SendError);
        assert_eq!(session.cause(), Some(cause.clone()));
        session.follow_up();
        assert_eq!(session.cause(), Some(cause.clone()), "not before a send was accepted");
        session.send();
        session.follow_up();
        assert_eq!(session.cause(), None);
    }
    let mut session = Session::begun();
    session.now += Duration::from_secs(299);
    assert_eq!(session.cause(), None);
    session.now += Duration::from_secs(1);
    assert_eq!(session.cause(), Some(Cause::Stale));
}

#[test]
fn nothing_is_committed_before_the_send_was_accepted() {
    let mut session = Session::new();
    let first = session.step();
    assert_eq!(session.cause(), Some(Cause::NeverSent), "a decision alone changes nothing");
    session.continuity.commit(first, session.now);
    session.follow_up();
    let lost = session.step();
    assert_eq!(lost.decision, Decision::Incremental { sent: 1 });
    drop(lost);
    session.messages[2] = Message::user("typed anew after the failure");
    assert_eq!(session.step().decision, Decision::Incremental { sent: 1 }, "what was not sent may change");
    for _ in 0..100 {
        drop(session.step());
    }
    assert_eq!(session.cause(), None, "only sends are counted");
}

#[test]
fn a_process_that_resumes_an_agent_sends_everything_to_that_agent() {
    let mut before = Session::begun();
    before.send();
    before.follow_up();
    let kept = before.continuity.kept().unwrap();
    let resume = |kept: &[u8]| Session {
        continuity: Continuity::resumed(kept),
        messages: before.messages.clone(),
        ..Session::new()
    };

    let mut session = resume(kept.bytes());
    assert_eq!(session.send(), Decision::Bootstrap { cause: Cause::Resumed, new_agent: false });
    session.follow_up();
    assert_eq!(session.cause(), None);

    let mut session = resume(kept.bytes());
    session.pool.surface = "bridge:off".to_owned();
    assert_eq!(session.cause(), Some(Cause::Pool(PoolMember::Surface)));
    let mut session = resume(kept.bytes());
    session.messages[0] = Message::user("edited meanwhile");
    assert_eq!(session.cause(), Some(Cause::History(0)));

    let newer = kept.text().replace("\"version\":1", "\"version\":2");
    let odd = kept.text().replacen("\"messages\":[\"", "\"messages\":[\"x", 1);
    assert!(newer != kept.text() && odd != kept.text());
    for unreadable in ["", "{}", "null", kept.text().get(..40).unwrap(), &newer, &odd] {
        let session = resume(unreadable.as_bytes());
        assert_eq!(session.cause(), Some(Cause::UnreadableFingerprint), "{unreadable}");
    }
    assert_eq!(Continuity::new().kept(), None);
    assert!(!kept.text().contains("wish") && !kept.text().contains("hunter2"), "{kept:?}");
}

#[test]
fn a_change_of_any_member_of_the_pool_key_needs_a_new_agent() {
    type Change = fn(&mut PoolKey);
    let changes: [(Change, PoolMember); 10] = [
        (|key| key.session.push('x'), PoolMember::Session),
        (|key| key.cwd.push('x'), PoolMember::Cwd),
        (|key| key.model.push('x'), PoolMember::Model),
        (|key| key.setting_sources.clear(), PoolMember::SettingSources),
        (|key| key.auto_review = true, PoolMember::Safety),
        (|key| key.sandbox = true, PoolMember::Safety),
        (|key| key.transport.push('x'), PoolMember::Transport),
        (|key| key.api_key = None, PoolMember::ApiKey),
        (|key| key.api_key = Some(Digest::of(b"another")), PoolMember::ApiKey),
        // The name is the same, its schema is not: the signature tells.
        (|key| key.surface = "bridge:on:ffffffff".to_owned(), PoolMember::Surface),
    ];
    for (change, member) in changes {
        let mut session = Session::begun();
        change(&mut session.pool);
        assert_eq!(session.cause(), Some(Cause::Pool(member)));
        assert_eq!(session.send(), Decision::Bootstrap { cause: Cause::Pool(member), new_agent: true });
        session.follow_up();
        assert_eq!(session.cause(), None, "the new agent goes on");
    }
    assert_eq!(pool().difference(&pool()), None);
}

#[test]
fn an_api_key_is_known_by_sixteen_digits_and_is_nowhere() {
    let key = pool();
    let shown = format!("{key:?} {}", serde_json::to_string(&key).unwrap());
    assert!(!shown.contains("hunter2"));
    // SHA-256 of "hunter2" begins with these digits.
    assert_eq!(key.api_key.unwrap().to_string(), "f52fbd32b2b3b86f");
}

#[test]
fn reasons_are_sentences_of_their_own() {
    let causes = [
        Cause::NeverSent,
        Cause::SystemPrompt,
        Cause::Tools,
        Cause::History(0),
        Cause::FewerMessages,
        Cause::BranchSummary,
        Cause::CompactionSummary,
        Cause::UnreadableFingerprint,
        Cause::IncrementalLimit,
        Cause::Resumed,
        Cause::SendError,
        Cause::Compaction,
        Cause::TreeNavigation,
        Cause::DeadTransport,
        Cause::Stale,
        Cause::Pool(PoolMember::Surface),
        Cause::Pool(PoolMember::ApiKey),
    ];
    let mut texts: Vec<String> = causes.iter().map(Cause::to_string).collect();
    assert_eq!(texts[3], "message 1 of the conversation changed");
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), causes.len());
}

proptest::proptest! {
    #[test]
    fn an_increment_is_sent_only_if_what_was_sent_is_the_beginning_of_what_is_there(
        sent in proptest::collection::vec(0_u8..4, 0..8),
        now in proptest::collection::vec(0_u8..4, 0..12),
        is_prefix in proptest::bool::weighted(0.5),
    ) {
        let conversation = |kinds: &[u8]| -> Vec<Message> {
            let kind = |kind: &u8| match kind {
                0 => Message::user("a"),
                1 => Message::user("b"),
                2 => Message::assistant("a"),
                _ => message(json!({"role": "branchSummary", "summary": "s"})),
            };
            kinds.iter().map(kind).collect()
        };
        let now = if is_prefix { [sent.clone(), now].concat() } else { now };
        let mut session = Session { messages: conversation(&sent), ..Session::new() };
        session.send();
        session.messages = conversation(&now);
        let goes_on = now.starts_with(&sent) && now.iter().skip(sent.len()).all(|kind| *kind != 3);
        proptest::prop_assert_eq!(session.cause().is_none(), goes_on, "{:?}", session.cause());
    }
}
