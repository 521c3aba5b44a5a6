//! Clients, hosts and registrations on many threads at once: the order that nobody planned.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// What a host was told, and what it did, each in one list.
#[derive(Clone, Default)]
struct Log {
    told: Arc<Mutex<Vec<(bool, CallId)>>>,
    to_do: Arc<Mutex<Vec<CallId>>>,
}

impl CallSink for Log {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        self.told.lock().unwrap().push((true, call.id.clone()));
        self.to_do.lock().unwrap().push(call.id);
        Ok(())
    }

    fn cancelled(&mut self, id: &CallId, _: &str) {
        self.told.lock().unwrap().push((false, id.clone()));
    }
}

#[derive(Default)]
struct Seen {
    waiters: Vec<Waiter>,
    refused: usize,
}

const CLIENTS: u64 = 3;
const CALLS: u64 = 400;

/// Ends what it was told to run, in one way or another. Gives the calls to which it gave an end of its own.
fn host(run: &Run, to_do: &Mutex<Vec<CallId>>, clients: &AtomicU64) -> BTreeSet<CallId> {
    let mut ended = BTreeSet::new();
    let mut turn = 0u32;
    while clients.load(Ordering::SeqCst) > 0 {
        let Some(id) = to_do.lock().unwrap().pop() else {
            std::thread::yield_now();
            continue;
        };
        turn += 1;
        let why = Rejection { kind: RejectionKind::Error, reason: "no".to_owned() };
        let (found, own) = match turn % 4 {
            0 => (run.abort(&id, "stop"), false),
            1 => (run.fail(&id, why), true),
            _ => (run.settle(&id, HostResult::text("ok")), true),
        };
        if found == Settlement::Delivered && own {
            assert!(ended.insert(id.clone()));
        }
        assert_eq!(run.settle(&id, HostResult::text("twice")), Settlement::Unknown);
    }
    ended
}

#[tokio::test]
async fn every_call_is_answered_once_whoever_is_faster() {
    for round in 0..10 {
        let rig = Rig::new(Options { deadlines: Deadlines::default(), ..Options::default() });
        let (run, log) = (&rig.run, Log::default());
        let clients = AtomicU64::new(CLIENTS);
        let (seen, ended) = std::thread::scope(|scope| {
            let clients = &clients;
            let callers: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn(move || {
                        let mut seen = Seen::default();
                        for n in 0..CALLS {
                            match run.begin(Rig::origin(client * CALLS + n), "pi__slow", None, None) {
                                Began::Waiting(waiter) => seen.waiters.push(waiter),
                                Began::Rejected(_) => seen.refused += 1,
                                Began::Answer(_) => panic!("a tool is unknown"),
                            }
                            if n % 7 == round {
                                run.cancel_request(Rig::origin(client * CALLS + n / 2));
                            }
                        }
                        clients.fetch_sub(1, Ordering::SeqCst);
                        seen
                    })
                })
                .collect();
            let registrar = log.clone();
            scope.spawn(move || {
                let mut turn = 0;
                while clients.load(Ordering::SeqCst) > 0 {
                    run.bind(Box::new(registrar.clone()));
                    turn += 1;
                    if turn % 50 == 0 {
                        run.detach();
                    }
                    std::thread::yield_now();
                }
                run.bind(Box::new(registrar));
            });
            let to_do = Arc::clone(&log.to_do);
            let hosts = scope.spawn(move || host(run, &to_do, clients));
            let seen: Vec<Seen> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
            (seen, hosts.join().unwrap())
        });
        rig.run.close("over");
        let refused: usize = seen.iter().map(|seen| seen.refused).sum();
        let mut waiters: Vec<Waiter> = seen.into_iter().flat_map(|seen| seen.waiters).collect();
        assert_eq!(u64::try_from(waiters.len() + refused).unwrap(), CLIENTS * CALLS);
        let mut results = 0;
        for waiter in &mut waiters {
            let end = now(waiter).unwrap();
            assert_eq!(now(waiter).as_ref(), Some(&end));
            results += usize::from(matches!(end, Update::Result(_)));
        }
        assert!(results <= ended.len() && rig.run.pending() == 0);
        let mut told: BTreeMap<CallId, Vec<bool>> = BTreeMap::new();
        for (start, id) in log.told.lock().unwrap().iter() {
            told.entry(id.clone()).or_default().push(*start);
        }
        for (id, told) in told {
            let expected: &[bool] = if ended.contains(&id) { &[true] } else { &[true, false] };
            assert_eq!(told, expected, "{id}");
        }
    }
}
