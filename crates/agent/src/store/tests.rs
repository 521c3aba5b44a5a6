//! What every store does alike.

use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;

use super::*;
use crate::event::{Event, EventKind};

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap()
}

pub(super) fn begin(agent: &AgentId, presence: Presence) -> Begin {
    Begin {
        agent: AgentRecord {
            id: agent.clone(),
            name: Some("n".into()),
            cwd: "/w".into(),
            runtime: "native".into(),
            created_at: at(100),
            updated_at: at(100),
            archived: false,
            active_run: None,
            servers: vec![InlineRecord { name: "db".into(), transport: "stdio".into(), digest: "00".into() }],
        },
        presence,
        run: RunId::random(),
        model: Some("m".into()),
        at: at(101),
        idempotency: None,
        force: None,
    }
}

/// The run that begins, and its claim.
pub(super) fn started(store: &dyn Store, begin: &Begin) -> (RunRecord, Claim) {
    match store.begin(begin).unwrap() {
        Begun::Started { run, claim } => (*run, claim),
        other => panic!("{other:?}"),
    }
}

pub(super) fn event(offset: u64) -> EventRecord {
    EventRecord { offset, json: format!(r#"{{"n":{offset},"big":123456789012345678901234567890}}"#) }
}

pub(super) fn events(offsets: std::ops::RangeInclusive<u64>) -> Writes {
    Writes { events: offsets.map(event).collect(), ..Writes::default() }
}

pub(super) fn end(status: RunStatus) -> Writes {
    let change = RunChange {
        status,
        result: Some("done".into()),
        error: None,
        usage: Some(Usage { input: 1, ..Usage::default() }),
        cost: Some(0.5),
        duration: Some(Duration::from_millis(5)),
    };
    Writes { change: Some(change), ..Writes::default() }
}

/// Every kind of store, and again what opens the same one.
type Opened = (Arc<dyn Store>, Box<dyn Fn() -> Arc<dyn Store>>);

fn each(check: impl Fn(Arc<dyn Store>, &dyn Fn() -> Arc<dyn Store>)) {
    let dir = tempfile::tempdir().unwrap();
    let opened = |choice: StoreChoice| -> Opened {
        let open = Box::new(move || choice.open(None).unwrap());
        (open(), open)
    };
    let memory = memory_store().unwrap();
    for (store, again) in [
        opened(StoreChoice::Shared(memory)),
        opened(StoreChoice::Sqlite(dir.path().join("sqlite"))),
        opened(StoreChoice::Jsonl(dir.path().join("jsonl"))),
    ] {
        check(store, &*again);
    }
}

#[test]
fn what_is_kept_is_there_for_whoever_opens_it_next() {
    each(|store, again| {
        let id = AgentId::local();
        let (run, claim) = started(&*store, &begin(&id, Presence::New));
        assert_eq!((run.turn, run.status), (1, RunStatus::Creating));
        let mut writes = events(1..=3);
        writes.checkpoint = Some(Bytes::from_static("talk \u{e9}".as_bytes()));
        assert_eq!(store.append(&run.id, &writes).unwrap(), Kept::Yes);
        assert_eq!(store.append(&run.id, &events(4..=5)).unwrap(), Kept::Yes);

        let other = again();
        assert_eq!(other.events(&run.id, 0, 100).unwrap(), (1..=5).map(event).collect::<Vec<_>>());
        assert_eq!(other.events(&run.id, 2, 2).unwrap(), vec![event(3), event(4)]);
        assert_eq!(other.events(&run.id, 5, 2).unwrap(), vec![]);
        assert_eq!(other.checkpoint(&id).unwrap().unwrap(), "talk \u{e9}".as_bytes());
        assert_eq!(other.agent(&id).unwrap().unwrap().active_run, Some(run.id.clone()));
        assert!(other.is_alive(&run.id).unwrap());

        assert_eq!(store.append(&run.id, &end(RunStatus::Finished)).unwrap(), Kept::Yes);
        drop(claim);
        assert!(!other.is_alive(&run.id).unwrap());
        let kept = other.run(&run.id).unwrap().unwrap();
        assert_eq!((kept.status, kept.result.as_deref()), (RunStatus::Finished, Some("done")));
        assert_eq!(kept.duration, Some(Duration::from_millis(5)));
        assert_eq!((kept.created_at, kept.usage.unwrap().input, kept.cost), (at(101), 1, Some(0.5)));
        let agent = other.agent(&id).unwrap().unwrap();
        assert_eq!((agent.active_run, agent.servers[0].name.as_str()), (None, "db"));
        assert_eq!(other.digest_key().unwrap(), store.digest_key().unwrap());
    });
}

#[test]
fn an_agent_has_one_run_that_is_not_over() {
    each(|store, again| {
        let id = AgentId::local();
        assert!(matches!(store.begin(&begin(&id, Presence::Known)).unwrap(), Begun::NoAgent));
        let (run, claim) = started(&*store, &begin(&id, Presence::Any));
        let other = again();
        assert!(matches!(other.begin(&begin(&id, Presence::New)).unwrap(), Begun::Exists));
        match other.begin(&begin(&id, Presence::Known)).unwrap() {
            Begun::Busy { run: busy, alive } => assert_eq!((busy, alive), (run.id.clone(), true)),
            other => panic!("{other:?}"),
        }
        // Its process dies.
        drop(claim);
        match other.begin(&begin(&id, Presence::Known)).unwrap() {
            Begun::Busy { run: busy, alive } => assert_eq!((busy, alive), (run.id.clone(), false)),
            other => panic!("{other:?}"),
        }
        store.append(&run.id, &events(1..=2)).unwrap();
        let mut force = begin(&id, Presence::Known);
        force.force = Some("given up".into());
        let (next, _claim) = started(&*other, &force);
        assert_eq!(next.turn, 2);
        let expired = store.run(&run.id).unwrap().unwrap();
        assert_eq!(expired.status, RunStatus::Expired);
        assert_eq!(expired.error, Some(("force_send".into(), "given up".into())));
        let last = store.events(&run.id, 2, 9).unwrap();
        assert_eq!(
            Event::from_json(&last[0].json).unwrap().kind,
            EventKind::Status { status: RunStatus::Expired, message: Some("given up".into()) }
        );
        // What it still writes is refused, and so is its end.
        assert_eq!(store.append(&run.id, &events(4..=4)).unwrap(), Kept::Over);
        assert_eq!(store.append(&run.id, &end(RunStatus::Finished)).unwrap(), Kept::Over);
        assert_eq!(store.run(&run.id).unwrap().unwrap().status, RunStatus::Expired);
        assert_eq!(store.agent(&id).unwrap().unwrap().active_run, Some(next.id));
    });
}

#[test]
fn the_same_key_is_the_same_run() {
    each(|store, _| {
        let id = AgentId::local();
        let mut first = begin(&id, Presence::Any);
        first.idempotency = Some("k".into());
        let (run, _claim) = started(&*store, &first);
        let mut second = begin(&id, Presence::Known);
        second.idempotency = Some("k".into());
        match store.begin(&second).unwrap() {
            Begun::Known(known) => assert_eq!(known.id, run.id),
            other => panic!("{other:?}"),
        }
        // Of another agent it is another one.
        let mut other = begin(&AgentId::local(), Presence::Any);
        other.idempotency = Some("k".into());
        started(&*store, &other);
    });
}

#[test]
fn an_archived_agent_takes_no_run_until_it_is_taken_back() {
    each(|store, again| {
        let id = AgentId::local();
        assert!(!store.change(&id, &AgentChange::Archived(true)).unwrap());
        let (run, _claim) = started(&*store, &begin(&id, Presence::Any));
        store.append(&run.id, &end(RunStatus::Finished)).unwrap();
        assert!(store.change(&id, &AgentChange::Archived(true)).unwrap());
        assert!(matches!(again().begin(&begin(&id, Presence::Known)).unwrap(), Begun::Archived));
        let shown = Page { include_archived: true, ..Page::default() };
        assert_eq!(store.agents(&Page::default()).unwrap(), vec![]);
        assert_eq!(store.agents(&shown).unwrap().len(), 1);
        store.change(&id, &AgentChange::Archived(false)).unwrap();
        started(&*again(), &begin(&id, Presence::Known));
    });
}

#[test]
fn lists_are_read_in_pages_without_loss() {
    each(|store, _| {
        let mut made = Vec::new();
        for second in 0..7 {
            let mut one = begin(&AgentId::local(), Presence::New);
            // Two of the same time.
            one.agent.created_at = at(100 + second / 2);
            started(&*store, &one);
            made.push(one.agent.id);
        }
        let (mut page, mut seen) = (Page { limit: 3, ..Page::default() }, Vec::new());
        loop {
            let part = store.agents(&page).unwrap();
            let Some(last) = part.last() else { break };
            page.after = Some(last.cursor().to_string().parse().unwrap());
            seen.extend(part.into_iter().map(|agent| agent.id));
        }
        assert_eq!(seen[0], made[6]);
        made.sort();
        seen.sort();
        assert_eq!(seen, made);

        let id = &made[0];
        for _ in 0..2 {
            let active = store.agent(id).unwrap().unwrap().active_run.unwrap();
            store.append(&active, &end(RunStatus::Finished)).unwrap();
            started(&*store, &begin(id, Presence::Known));
        }
        let turns =
            |page: &Page| -> Vec<u64> { store.runs(id, page).unwrap().iter().map(|run| run.turn).collect() };
        assert_eq!(turns(&Page::default()), [3, 2, 1]);
        let after = store.runs(id, &Page { limit: 1, ..Page::default() }).unwrap()[0].cursor();
        assert_eq!(turns(&Page { after: Some(after), ..Page::default() }), [2, 1]);
    });
}

#[test]
fn events_without_the_one_before_are_refused_as_a_whole() {
    each(|store, _| {
        let (run, _claim) = started(&*store, &begin(&AgentId::local(), Presence::New));
        store.append(&run.id, &events(1..=1)).unwrap();
        for wrong in [3, 1] {
            let error = store.append(&run.id, &events(wrong..=wrong)).unwrap_err().to_string();
            assert!(error.contains("does not follow on event 1"), "{error}");
        }
        assert_eq!(store.events(&run.id, 0, 9).unwrap(), vec![event(1)]);
        assert_eq!(store.append(&RunId::random(), &events(1..=1)).unwrap(), Kept::Over);
    });
}

#[test]
fn a_deleted_agent_leaves_nothing_and_others_stay() {
    each(|store, again| {
        let (gone, stays) = (AgentId::local(), AgentId::local());
        let (run, _claim) = started(&*store, &begin(&gone, Presence::New));
        let (kept, _held) = started(&*store, &begin(&stays, Presence::New));
        for run in [&run.id, &kept.id] {
            let mut writes = events(1..=2);
            writes.checkpoint = Some(Bytes::from(run.to_string()));
            store.append(run, &writes).unwrap();
        }
        let other = again();
        assert!(other.delete(&gone).unwrap());
        assert!(!other.delete(&gone).unwrap());
        for store in [&store, &other] {
            assert_eq!(store.agent(&gone).unwrap(), None);
            assert_eq!(store.run(&run.id).unwrap(), None);
            assert_eq!(store.events(&run.id, 0, 9).unwrap(), vec![]);
            assert_eq!(store.checkpoint(&gone).unwrap(), None);
            assert_eq!(store.events(&kept.id, 0, 9).unwrap(), vec![event(1), event(2)]);
            assert_eq!(store.checkpoint(&stays).unwrap().unwrap(), kept.id.to_string().as_bytes());
            assert_eq!(store.append(&run.id, &events(3..=3)).unwrap(), Kept::Over);
        }
        store.append(&kept.id, &events(3..=3)).unwrap();
        assert_eq!(other.events(&kept.id, 2, 9).unwrap(), vec![event(3)]);
    });
}

#[test]
fn a_cancellation_is_asked_for_across_processes() {
    each(|store, again| {
        let (run, _claim) = started(&*store, &begin(&AgentId::local(), Presence::New));
        assert!(!store.is_cancel_asked(&run.id).unwrap());
        again().ask_cancel(&run.id).unwrap();
        assert!(store.is_cancel_asked(&run.id).unwrap());
    });
}

#[test]
fn two_who_begin_at_once_get_one_run() {
    each(|_, again| {
        let id = AgentId::local();
        let (first, _claim) = started(&*again(), &begin(&id, Presence::New));
        again().append(&first.id, &end(RunStatus::Finished)).unwrap();
        let begun: Vec<Begun> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (store, id) = (again(), &id);
                    scope.spawn(move || store.begin(&begin(id, Presence::Known)).unwrap())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let started = begun.iter().filter(|begun| matches!(begun, Begun::Started { .. })).count();
        let busy = begun.iter().filter(|begun| matches!(begun, Begun::Busy { alive: true, .. })).count();
        assert_eq!((started, busy), (1, 3), "{begun:?}");
    });
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    each(|store, _| {
        let (run, _claim) = started(&*store, &begin(&AgentId::local(), Presence::New));
        let mut writes = events(1..=1);
        writes.checkpoint = Some(Bytes::from_static(b"talk"));
        store.append(&run.id, &writes).unwrap();
        store.digest_key().unwrap();
        let place = PathBuf::from(store.place());
        let mut folders = vec![if place.is_dir() { place } else { place.parent().unwrap().to_owned() }];
        let mut files = 0;
        while let Some(folder) = folders.pop().filter(|folder| folder.is_dir()) {
            assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{folder:?}");
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                files += 1;
                assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
            }
        }
        assert!(store.place() == "memory" || files >= 3, "{files}");
    });
}
