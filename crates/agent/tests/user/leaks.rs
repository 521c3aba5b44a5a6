//! Agents that come and go leave nothing in the process that had them. Alone: it counts what the whole process has.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_agent::{Agent, LocalOptions, McpServer, McpServers, RunStatus, SendOptions};
use toolway_testkit::ModelServer;

use super::bench::{Bench, DEADLINE, ended, script, soon};

const ALONE: &str = "TOOLWAY_TEST_ALONE";

fn threads() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// What the system knows of sockets among open files.
fn sockets(open: &[String]) -> Result<String> {
    let mut told = String::new();
    for table in ["tcp", "tcp6", "unix", "udp"] {
        let lines = std::fs::read_to_string(format!("/proc/self/net/{table}"))?;
        let ours = |line: &&str| {
            let number =
                |file: &String| Some(file.strip_prefix("socket:[")?.trim_end_matches(']').to_owned());
            open.iter().filter_map(number).any(|number| line.split_whitespace().any(|word| word == number))
        };
        for line in lines.lines().filter(ours) {
            told = format!("{told}{table} {line}\n");
        }
    }
    Ok(told)
}

fn memory() -> Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    Ok(text.split(' ').nth(1).context("no pages")?.parse::<usize>()? * 4096)
}

/// Gives the handles of agents that were disposed of: holding one holds nothing open.
async fn agents(bench: &Bench, model: &ModelServer, count: usize) -> Result<Vec<Agent>> {
    let script_of_server =
        "tool {\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/echo -> text it ran";
    let program = toolway_testkit::fakemcp()?.to_string_lossy().into_owned();
    let (mut all, mut disposed) = (Vec::new(), Vec::new());
    for number in 0..count {
        let mut servers = McpServers::new();
        for name in ["a", "b", "c"] {
            servers.insert(
                name,
                McpServer::command(&program)
                    .args(["--script", script_of_server, "--mark", &bench.mark])
                    .required(),
            );
        }
        let agent = Agent::create(bench.options(model, servers, LocalOptions::default()))?;
        let run = agent.send("go", SendOptions::default()).await?;
        all.push((number, agent, run));
        if all.len() == 10 {
            for (number, agent, run) in all.drain(..) {
                ensure!(ended(&run).await?.state.status == RunStatus::Finished);
                // Some are only dropped.
                if number % 5 == 4 {
                    continue;
                }
                soon(agent.dispose()).await?;
                disposed.push(agent);
            }
        }
    }
    bench.leaks().check(DEADLINE)?;
    Ok(disposed)
}

#[test]
fn fifty_agents_with_three_servers_leave_nothing() -> Result<()> {
    if std::env::var_os(ALONE).is_none() {
        // Other tests of this binary have threads and files of their own.
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "leaks::fifty_agents_with_three_servers_leave_nothing", "--nocapture"]);
        let output = command.env(ALONE, "1").stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(std::time::Duration::from_millis(100))
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let bench = Bench::new()?;
        let model = script(&json!({"rules": [
            {"when": {"user": "go"}, "reply": {"calls": [{"name": "a__echo", "arguments": {}}, {"name": "c__echo", "arguments": {}}]}},
        ], "otherwise": {"text": "done"}}))?;
        drop(agents(&bench, &model, 10).await?);
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        let own = std::process::id();
        let before = (threads()?, toolway_testkit::open_files(own), memory()?);
        let disposed = agents(&bench, &model, 50).await?;
        let mut left = Vec::new();
        for _ in 0..100 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            left = toolway_testkit::open_files(own);
            if left.len() <= before.1.len() && threads()? <= before.0 {
                break;
            }
        }
        ensure!(
            left.len() <= before.1.len(),
            "open before: {:?}\nopen now: {left:?}\n{}",
            before.1,
            sockets(&left)?
        );
        ensure!(threads()? <= before.0, "{} threads before, {} now", before.0, threads()?);
        let grown = memory()?.saturating_sub(before.2);
        ensure!(grown < 24 << 20, "{grown} bytes more");
        ensure!(disposed.len() == 40, "{} handles", disposed.len());
        Ok(())
    })
}
