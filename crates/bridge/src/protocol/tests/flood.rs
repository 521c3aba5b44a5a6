//! What is left out where a host does not read.

use super::*;

#[tokio::test]
async fn a_host_that_does_not_read_is_not_told_of_every_skill_that_an_agent_activates() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("SKILL.md"), "---\nname: s\n---\n").unwrap();
    let mut desk = Desk::new(&["a"]).await;
    let skill = json!({"name": "s", "description": "d", "filePath": folder.path().join("SKILL.md")});
    desk.ask("skills/declare", json!({ "skills": [skill] })).await;
    let run = desk.open(json!({})).await;
    for (n, full) in [(1, false), (2, true)] {
        if full {
            desk.connection.outbox.push(vec![b' '; 9 << 20].into());
        }
        let name = if full { "s".to_owned() } else { "n".repeat(1000) };
        let arguments = RawJson::of(&json!({ "name": name }));
        let origin = Origin { session: 1, request: Id::from_number(n) };
        let Began::Waiting(mut waiter) = run.begin(origin, "host__activate_skill", Some(arguments), None)
        else {
            panic!("it waits for the skill");
        };
        desk.connection.on_arrivals(Instant::now());
        let done = desk.connection.work.join_next().await.unwrap().unwrap();
        desk.connection.on_done(done);
        assert!(matches!(waiter.next().await, Update::Result(_)), "the agent has its answer");
        if !full {
            let told = desk.lines();
            assert_eq!(told[0]["params"]["skill"].as_str().map(str::len), Some(256), "{told:?}");
        }
    }
    assert!(desk.connection.next_line().is_some());
    assert!(desk.connection.next_line().is_none(), "nothing was put behind it");
}
