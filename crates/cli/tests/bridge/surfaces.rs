//! What is exposed and what is said about it: the report, settings, tools that come and go.

use anyhow::Result;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::host::{Host, home};

fn text_of(report: &Value) -> String {
    report["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn statement_51_the_report_prints_settings_and_surface_with_and_without_ui_and_when_the_file_is_broken()
-> Result<()> {
    for (profile, file, command) in [
        ("pi", ".pi/agent/cursor-sdk.json", "/cursor-tools"),
        ("host", ".config/toolway/bridge.json", "/tools"),
    ] {
        for (ui, show) in [(true, "notification"), (false, "stdout")] {
            for content in
                [None, Some("{\"tools\": {"), Some("[]"), Some("{\"local\":{\"settingSources\":[]}}")]
            {
                let house = home()?;
                if let Some(content) = content {
                    std::fs::write(house.path().join(file), content)?;
                }
                let mut host = Host::start_with(house, profile, json!({"ui": ui}))?;
                host.declare(&["todo", "bash"])?;
                let report = host.ask("report/read", json!({}))?;
                assert_eq!(report["show"], show);
                let text = text_of(&report);
                let lines: Vec<&str> = text.lines().collect();
                assert!(lines[0].contains(command), "{text}");
                assert_eq!(lines[1], "tools.bridge.enabled: enabled");
                assert_eq!(lines[2], "tools.manifest: enabled");
                let sources =
                    if content.is_some_and(|content| content.contains("Sources")) { "none" } else { "all" };
                assert_eq!(lines[3], format!("local.settingSources: {sources}"));
                assert!(text.contains(&format!("{profile}__todo")), "{text}");
                assert!(text.contains("\"bash\": overlaps"), "{text}");
                let warned = report["data"]["warnings"].as_array().is_some_and(|all| !all.is_empty());
                assert_eq!(warned, content.is_some_and(|content| !content.contains("Sources")), "{report}");
            }
        }
    }
    Ok(())
}

#[test]
fn settings_come_from_the_file_with_the_hosts_own_above_and_are_written_without_a_loss() -> Result<()> {
    let house = home()?;
    let file = house.path().join(".config/toolway/bridge.json");
    std::fs::write(
        &file,
        "{\"mine\": 1, \"tools\": {\"bridge\": {\"exclude\": [\"b\"], \"callTimeoutMs\": 120000}}}",
    )?;
    let mut host = Host::start_with(house, "host", json!({}))?;
    host.declare(&["a", "b", "c"])?;
    let run = host.open(json!({}))?;
    assert_eq!(run.opened["hidden"][0]["reason"], "excluded");
    assert_eq!(run.opened["deadlines"]["bridgeMs"], 120_000);
    let above = json!({"tools": {"bridge": {"exclude": ["c"]}}});
    let shown = host.ask("settings/declare", json!({"settings": above}))?;
    assert_eq!(shown["settings"]["tools"]["bridge"]["exclude"], json!(["c"]));
    assert_eq!(shown["deadlines"]["bridgeMs"], 120_000);
    let run = host.open(json!({}))?;
    assert_eq!(run.opened["hidden"][0]["tool"], "c");
    host.ask("settings/declare", json!({"settings": {}}))?;
    let changes = json!({"tools.bridge.callTimeoutMs": null, "tools.manifest": false});
    let shown = host.ask("settings/write", json!({"changes": changes}))?;
    assert_eq!(
        (&shown["deadlines"]["bridgeMs"], &shown["settings"]["tools"]["manifest"]),
        (&json!(3_600_000), &json!(false))
    );
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    assert_eq!((&written["mine"], &written["tools"]["bridge"]["exclude"]), (&json!(1), &json!(["b"])));
    std::fs::write(&file, "{ broken")?;
    assert_eq!(host.refused("settings/write", json!({"changes": {"tools.manifest": true}}))?["code"], -32003);
    assert_eq!(std::fs::read_to_string(&file)?, "{ broken");
    Ok(())
}

#[test]
fn statement_08_a_disabled_bridge_or_no_tools_opens_no_port() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&[])?;
    let opened = host.ask("run/open", json!({}))?;
    assert_eq!(
        (&opened["run"], &opened["server"], &opened["reason"]),
        (&json!(null), &json!(null), &json!("no_exposed_tools"))
    );
    host.declare(&["a"])?;
    host.ask("settings/declare", json!({"settings": {"tools": {"bridge": {"enabled": false}}}}))?;
    let opened = host.ask("run/open", json!({}))?;
    assert_eq!(
        (&opened["server"], &opened["reason"], &opened["signature"]),
        (&json!(null), &json!("disabled"), &json!("bridge:off"))
    );
    assert!(toolway_testkit::listening(host.client.pid()).is_empty());
    let report = host.ask("report/read", json!({}))?;
    assert!(text_of(&report).contains("tools.bridge.enabled: disabled"));
    Ok(())
}

#[test]
fn a_tool_that_the_host_removes_fails_at_once_and_the_next_run_lacks_it() -> Result<()> {
    let mut host = Host::start("host")?;
    let (run, agent) = host.with_agent(&["keep", "go"])?;
    let pending = agent.call_later(1, "host__go", &json!({}));
    let call = host.call()?;
    let declared = host.declare(&["keep", "new"])?;
    assert_eq!(declared["removed"], json!(["go"]));
    assert_ne!(declared["signature"], run.opened["signature"]);
    assert_eq!(host.told("call/cancelled")?["call"], call["call"]);
    let text = pending.answer()?.text()?;
    assert!(text.contains("go"), "{text}");
    let again = agent.call(2, "host__go", &json!({}))?;
    assert_eq!(again.response()?["result"]["isError"], true);
    // The run's own surface stays, the next one is another.
    assert_eq!(agent.tools()?, ["host__go", "host__keep"]);
    let next = host.open(json!({}))?;
    assert_eq!(Agent::connect(&next.url)?.tools()?, ["host__keep", "host__new"]);
    let manifest = host.ask("manifest/read", json!({"run": next.id}))?;
    assert_eq!(manifest["names"], json!(["host__keep", "host__new"]));
    Ok(())
}

#[test]
fn runs_open_while_the_host_declares_and_each_has_what_stood_before_it() -> Result<()> {
    let mut host = Host::start("host")?;
    let mut asked = Vec::new();
    for n in 0..40 {
        let tools = json!([{"name": format!("t{n}")}]);
        host.send("tools/declare", json!({"tools": tools}))?;
        asked.push((n, host.send("run/open", json!({}))?));
    }
    for (n, id) in asked {
        let opened = host.response(id)?["result"].clone();
        assert_eq!(opened["exposed"][0]["tool"], format!("t{n}"), "{opened}");
        let agent = Agent::connect(opened["server"]["url"].as_str().unwrap_or_default())?;
        let answer = agent.call_later(1, &format!("host__t{n}"), &json!({}));
        if n == 39 {
            let call = host.call()?;
            host.answer(&call, "the last one")?;
            assert_eq!(answer.answer()?.text()?, "the last one");
        } else {
            // Removed by a later declaration, also where that came before the run was open.
            assert_eq!(answer.answer()?.response()?["result"]["isError"], true);
        }
    }
    Ok(())
}

#[test]
fn statement_16_a_tool_that_comes_later_is_for_the_next_agent() -> Result<()> {
    let mut host = Host::start("pi")?;
    let (run, agent) = host.with_agent(&["first"])?;
    let ask = |run: &str| json!({"run": run, "messages": [{"role": "user", "content": "go"}]});
    let prompt = host.ask("prompt/next", ask(&run.id))?;
    host.ask("prompt/sent", json!({"ticket": prompt["ticket"]}))?;
    assert_eq!(host.ask("prompt/next", ask(&run.id))?["kind"], "incremental");
    host.declare(&["first", "second"])?;
    assert_eq!(agent.tools()?, ["pi__first"]);
    let prompt = host.ask("prompt/next", ask(&run.id))?;
    assert_eq!((&prompt["kind"], &prompt["newAgent"]), (&json!("bootstrap"), &json!(true)));
    assert_eq!(prompt["reason"], "what the bridge exposes changed");
    let next = host.open(json!({}))?;
    let prompt = host.ask("prompt/next", ask(&next.id))?;
    assert!(prompt["text"].as_str().is_some_and(|text| text.contains("pi__first, pi__second")), "{prompt}");
    host.ask("prompt/sent", json!({"ticket": prompt["ticket"]}))?;
    assert_eq!(host.ask("prompt/next", ask(&next.id))?["kind"], "incremental");
    assert_eq!(Agent::connect(&next.url)?.tools()?, ["pi__first", "pi__second"]);
    Ok(())
}
