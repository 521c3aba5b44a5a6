//! How calls are handed to a host, and what a host that misbehaves costs.

use super::*;

#[tokio::test(start_paused = true)]
async fn calls_wait_for_the_host_and_are_handed_over_in_order() {
    let mut rig = Rig::new(Options::default());
    let mut first = rig.call("slow");
    rig.call("fast");
    assert_eq!(rig.run.pending(), 2);
    rig.run.bind(Sink::boxed(&rig.told, |_| Ok(())));
    rig.call("ask");
    assert_eq!(rig.told.take(), ["start slow {\"n\":1}", "start fast {\"n\":2}", "start ask {\"n\":3}"]);
    assert_eq!(rig.run.settle(&rig.id(1), HostResult::text("one")), Settlement::Delivered);
    assert_eq!(text(now(&mut first)), "one");
    assert_eq!(rig.run.facts(), Facts { exposed: 4, connected: 0, listed: 0, called: 3 });
}

#[tokio::test(start_paused = true)]
async fn arguments_keep_their_bytes_and_what_is_no_object_becomes_an_empty_one() {
    let rig = Rig::bound(Options::default());
    let odd = [r#"{"n":9007199254740993,  "e":1E5}"#, "[1]", "null", "\"{}\"", "3"];
    for (at, arguments) in odd.iter().enumerate() {
        let arguments = RawJson::new(arguments.as_bytes().to_vec()).unwrap();
        waiting(rig.run.begin(Rig::origin(at as u64), "pi__slow", Some(arguments), None));
    }
    waiting(rig.run.begin(Rig::origin(99), "pi__slow", None, None));
    let told = rig.told.take();
    assert_eq!(told[0], format!("start slow {}", odd[0]));
    assert_eq!(told[1..], ["start slow {}"; 5]);
}

#[tokio::test(start_paused = true)]
async fn lesson_14_a_handler_that_fails_or_breaks_off_ends_its_own_call_only() {
    let mut rig = Rig::new(Options::default());
    rig.run.bind(Sink::boxed(&rig.told, |call| match call.tool.as_str() {
        "slow" => panic!("the handler broke"),
        "ask" => Err("no user there".to_owned()),
        _ => Ok(()),
    }));
    let (mut slow, mut ask, mut fast) = (rig.call("slow"), rig.call("ask"), rig.call("fast"));
    let of = |reason: &str| Rejection { kind: RejectionKind::Error, reason: reason.to_owned() };
    assert_eq!(rejection(now(&mut slow)), of("the host could not take the call: its handler broke off"));
    assert_eq!(rejection(now(&mut ask)), of("the host could not take the call: no user there"));
    assert_eq!((now(&mut fast), rig.run.pending()), (None, 1));
    assert_eq!(rig.told.take().len(), 3, "no call is cancelled that never ran");
    rig.run.settle(&rig.id(3), HostResult::text("ok"));
    assert_eq!(text(now(&mut fast)), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_answer_cancel_and_detach_while_it_is_told() {
    let mut rig = Rig::new(Options::default());
    let run = rig.run.clone();
    rig.run.bind(Sink::boxed(&rig.told, move |call| {
        match call.tool.as_str() {
            "fast" => drop(run.settle(&call.id, HostResult::text("at once"))),
            "ask" => drop(run.abort(&call.id, "no")),
            "slow" => run.detach(),
            _ => {}
        }
        Ok(())
    }));
    let (mut fast, mut prog, mut ask) = (rig.call("fast"), rig.call("prog"), rig.call("ask"));
    assert_eq!(text(now(&mut fast)), "at once");
    assert_eq!(rejection(now(&mut ask)).reason, "no");
    let mut slow = rig.call("slow");
    for waiter in [&mut slow, &mut prog] {
        assert!(rejection(now(waiter)).reason.contains("no active live run"));
    }
    let told = rig.told.take();
    assert_eq!(told.iter().filter(|line| line.starts_with("cancel")).count(), 3, "{told:?}");
    assert!(refused(rig.begin("fast")).reason.contains("no active live run"));
}

#[tokio::test(start_paused = true)]
async fn lesson_18_a_superseded_registration_is_inert() {
    let mut rig = Rig::new(Options::default());
    let (old_told, new_told) = (Told::default(), Told::default());
    let old = rig.run.bind(Sink::boxed(&old_told, |_| Ok(())));
    let mut first = rig.call("slow");
    let new = rig.run.bind(Sink::boxed(&new_told, |_| Ok(())));
    assert!(!old.is_current() && new.is_current());
    old.detach();
    let mut second = rig.call("ask");
    assert_eq!((now(&mut first), now(&mut second)), (None, None), "the old one ended nothing");
    let stale = CallId::new("cursor-pi-bridge-run-00000000000000000000000000000000-t1");
    assert_eq!((old.admit(&stale), new.admit(&stale).is_err()), (Ok(()), true));
    assert_eq!(new.admit(&rig.id(2)), Ok(()));
    rig.run.abort(&rig.id(1), "stop");
    assert_eq!(old_told.take(), ["start slow {\"n\":1}"]);
    assert_eq!(new_told.take(), ["start ask {\"n\":2}", "cancel 1: stop"]);
    new.detach();
    assert!(rejection(now(&mut second)).reason.contains("no active live run"));
}

#[tokio::test(start_paused = true)]
async fn statement_27_a_call_that_expired_before_the_host_ran_it_is_blocked() {
    let mut rig = Rig::bound(Options::default());
    let mut call = rig.call("slow");
    let id = rig.id(1);
    assert_eq!(rig.run.admit(&id), Ok(()));
    assert_eq!(rejection(Some(call.next().await)).kind, RejectionKind::Error);
    assert!(rig.run.admit(&id).unwrap_err().contains("no longer pending"));
    assert_eq!(rig.run.admit(&CallId::new("toolu_01")), Ok(()), "the host's own calls are not the bridge's");
    let other = "cursor-pi-bridge-run-3f2504e0-4f89-41d3-9a0c-0305e82c3301-tool-1";
    assert!(rig.run.admit(&CallId::new(other)).is_err(), "of another run, in an older form");
    assert!(rig.run.admit(&CallId::new("cursor-pi-bridge-run-")).is_err());
}

#[tokio::test(start_paused = true)]
async fn statement_20_an_unknown_name_is_a_failed_result_with_the_name_that_was_meant() {
    let rig = Rig::bound(Options::default());
    for (name, near) in [("pi__x9", None), ("slow", Some("pi__slow")), ("pi__fsat", Some("pi__fast"))] {
        let began = rig.run.begin(Rig::origin(1), name, None, None);
        let Began::Answer(answer) = began else { panic!("{began:?}") };
        let answer = result_of(Some(Update::Result(answer)));
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert_eq!(answer["isError"], true);
        assert!(text.contains(name) && near.is_none_or(|near| text.contains(near)), "{text}");
    }
    assert_eq!((rig.told.take().len(), rig.run.pending(), rig.run.facts().called), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn trial_22_a_tool_that_the_host_removed_says_so_at_once() {
    let mut rig = Rig::bound(Options::default());
    let (mut slow, mut ask) = (rig.call("slow"), rig.call("ask"));
    rig.run.withdraw("slow");
    rig.run.withdraw("never there");
    let answer = result_of(now(&mut slow));
    assert_eq!(answer["isError"], true);
    assert!(answer["content"][0]["text"].as_str().unwrap().contains("removed its tool \"slow\""));
    assert_eq!(rig.told.take().last().unwrap(), "cancel 1: the host removed the tool");
    let Began::Answer(again) = rig.begin("slow") else { panic!("it waits") };
    assert_eq!(result_of(Some(Update::Result(again))), answer);
    assert_eq!((now(&mut ask), rig.run.pending()), (None, 1));
    rig.run.restore("slow");
    rig.call("slow");
    assert_eq!(rig.told.take(), ["start slow {\"n\":4}"]);
}
