//! How runs end, and the exit code of each end.

use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolway_testkit::SOON;

use crate::{House, Told};

#[test]
fn each_way_to_fail_has_its_exit_code_and_says_what_to_do() -> Result<()> {
    let reply = |reply: Value| House::new(&json!({"replies": [reply]}));
    let house = reply(json!({"status": 401, "error": "bad key"}))?;
    house
        .run(&["x"])?
        .ended(5)?
        .says(&["error: [unauthenticated]", "hint: keys are taken from the environment"])?;
    house.leave()?;
    let house = reply(json!({"status": 400, "error": "no such model"}))?;
    house.run(&["x"])?.ended(1)?.says(&["error: [", "no such model"])?;
    house.leave()?;
    let calls = json!([{"name": "ls", "arguments": {}}]);
    let house = reply(json!({"text": "On and on.", "calls": calls}))?;
    house.run(&["--limit-turns", "2", "x"])?.ended(1)?.says(&["[limit_reached]", "--limit-turns"])?;
    house.leave()?;
    let house = reply(json!({"text": "x"}))?;
    house
        .agent(&["run", "x"])?
        .ended(2)?
        .says(&["error: [validation_error]", "hint: name a model: --model ID"])?;
    house.agent(&["run", "--cwd", "nowhere", "x"])?.ended(2)?.says(&["--cwd: nowhere"])?;
    house.leave()
}

fn start(house: &House, words: &[&str]) -> Result<Child> {
    let mut command = house.rig.command(house.run_words(words));
    Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    Ok(kill_process(Pid::from_raw(i32::try_from(child.id())?).context("no pid")?, signal)?)
}

#[test]
fn a_signal_cancels_the_run_in_order() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "It takes", "stall": "middle"}]}))?;
    for (kind, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let before = house.model.requests().len();
        let child = start(&house, &["wait"])?;
        house.model.wait_for_requests(before + 1, SOON)?;
        signal(&child, kind)?;
        let told = Told::of(child.wait_with_output()?)?.ended(code)?;
        told.says(&["cancelling; once more to end at once", ": cancelled"])?;
    }
    let id = house.ids()?.remove(0);
    let shown = house.agent(&["show", &id, "--json"])?.ended(0)?.json()?;
    assert_eq!(shown["runs"][0]["status"], "CANCELLED");
    assert_eq!(shown["agent"]["active_run"], Value::Null);
    house.leave()
}

#[test]
fn a_run_is_cancelled_from_another_process() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "It takes", "stall": "middle"}]}))?;
    let child = start(&house, &["wait"])?;
    house.model.wait_for_requests(1, SOON)?;
    let id = house.ids()?.remove(0);
    house
        .agent(&["run", "--agent", &id, "--model", "x", "more"])?
        .ended(1)?
        .says(&["[agent_busy]", "--force"])?;
    house.agent(&["cancel", &id])?.ended(0)?.says(&["is cancelled"])?;
    Told::of(child.wait_with_output()?)?.ended(130)?;
    house.agent(&["cancel", &id])?.ended(0)?.says(&["does nothing that could be cancelled"])?;
    house.leave()
}

#[test]
fn a_reader_that_is_gone_ends_it() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": ["more "], "endless": true, "pause": 20}]}))?;
    let mut child = start(&house, &["talk"])?;
    drop(child.stdout.take());
    let status = child.wait()?;
    ensure!(status.code() == Some(130), "{status:?}");
    house.leave()
}
