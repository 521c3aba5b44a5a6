//! The same on the native engine: a scripted model, scripted servers in processes of their own.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use toolway_agent::{
    Agent, AgentOptions, EventKind, Machine, McpServer, McpServers, ModelChoice, RunStatus, SendOptions,
    ServerChange, StoreChoice, SystemInit, ToolCallStatus,
};
use toolway_secret::Secret;
use toolway_testkit::{Hub, Leaks, ModelReply, ModelServer, fakemcp};

use super::engine::{Bench, DEADLINE, soon, streamed};

const ECHO: &str = "tool {\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}\n";

/// Servers that report to the test, and a mark by which their processes are found.
struct Servers {
    hub: Hub,
    mark: String,
}

impl Servers {
    fn new(name: &str) -> Result<Self> {
        Ok(Self { hub: Hub::new()?, mark: format!("runs-{}-{name}", std::process::id()) })
    }

    fn server(&self) -> Result<McpServer> {
        Ok(self.scripted(ECHO)?.required())
    }

    fn scripted(&self, script: &str) -> Result<McpServer> {
        let (program, test) = (fakemcp()?, self.hub.address().to_string());
        let args = ["--script", script, "--mark", &self.mark, "--test", &test];
        Ok(McpServer::command(program.to_str().context("an odd path")?).args(args))
    }

    fn leaks(&self) -> Leaks {
        Leaks::new(&self.mark)
    }

    async fn fewer_than(&self, most: usize) -> Result<()> {
        let fewer = async {
            while self.leaks().processes().len() >= most {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon(fewer).await
    }

    /// Nothing is left of them.
    async fn gone(&self) -> Result<()> {
        self.fewer_than(1).await?;
        self.leaks().check(DEADLINE)
    }
}

fn options(bench: &Bench, model: &ModelServer, servers: McpServers) -> AgentOptions {
    let mut options = bench.options_in(StoreChoice::Default);
    let variables = vec![
        ("HOME".into(), bench.path().as_os_str().to_owned()),
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("OPENAI_BASE_URL".into(), model.base_url().into()),
    ];
    options.machine = Machine::new(variables, bench.path().join("work"));
    options.api_key = Some(Secret::new("key-of-model"));
    options.model = Some(ModelChoice { id: "gpt-4o".into(), params: Vec::new() });
    options.mcp_servers = servers;
    options
}

async fn ran(agent: &Agent, prompt: &str, send: SendOptions) -> Result<(SystemInit, Vec<EventKind>)> {
    let run = agent.send(prompt, send).await?;
    let events: Vec<EventKind> = streamed(&run).await?.into_iter().map(|event| event.kind).collect();
    let state = soon(run.wait()).await??;
    assert_eq!(state.status, RunStatus::Finished, "{state:?}");
    let EventKind::System(init) = &events[0] else { anyhow::bail!("{:?}", events[0]) };
    Ok(((**init).clone(), events))
}

/// The names and statuses of a run's calls.
fn calls(events: &[EventKind]) -> Vec<(String, ToolCallStatus)> {
    let call = |kind: &EventKind| match kind {
        EventKind::ToolCall(call) => {
            let args = call.args.as_ref().map(toolway_bridge::RawJson::tree).unwrap_or_default();
            Some((format!("{} {}/{}", call.name, args["providerIdentifier"], args["toolName"]), call.status))
        }
        _ => None,
    };
    events.iter().filter_map(call).collect()
}

#[tokio::test]
async fn statement_a39_the_same_servers_bring_their_tools_back_with_the_conversation() -> Result<()> {
    let (bench, servers) = (Bench::new()?, Servers::new("a39")?);
    let model = ModelServer::replies([
        ModelReply::call("db__echo", &json!({"n": 1})),
        ModelReply::text("first answer"),
        ModelReply::call("db__echo", &json!({"n": 2})),
        ModelReply::text("second answer"),
    ])?;
    let given = || -> Result<AgentOptions> {
        Ok(options(&bench, &model, McpServers::new().with("db", servers.server()?.env("PW", "s3cr3t"))))
    };
    let agent = Agent::create(given()?)?;
    let (init, events) = ran(&agent, "my first words", SendOptions::default()).await?;
    assert_eq!(init.mcp_servers[0].state, "connected", "{init:?}");
    let both = [
        ("mcp \"db\"/\"echo\"".to_owned(), ToolCallStatus::Running),
        ("mcp \"db\"/\"echo\"".to_owned(), ToolCallStatus::Completed),
    ];
    assert_eq!(calls(&events), both);
    let id = agent.id().clone();
    soon(agent.dispose()).await?;
    servers.gone().await?;

    let agent = Agent::resume(&id, given()?).await?;
    let (init, events) = ran(&agent, "my second words", SendOptions::default()).await?;
    assert_eq!((init.mcp_servers[0].state.as_str(), init.mcp_tools.len()), ("connected", 1));
    assert_eq!(calls(&events), both);
    let last = model.requests().last().context("a request")?.text.clone();
    for words in ["my first words", "first answer", "my second words"] {
        assert!(last.contains(words), "{words}: {last}");
    }
    assert!(agent.usage(None).await?.runs.len() == 2);
    soon(agent.dispose()).await?;
    for file in bench.files()? {
        let text = String::from_utf8_lossy(&std::fs::read(&file)?).into_owned();
        assert!(!text.contains("s3cr3t") && !text.contains("key-of-model"), "{}", file.display());
    }
    servers.gone().await
}

#[tokio::test]
async fn statement_a37_servers_of_one_prompt_end_with_its_run() -> Result<()> {
    let (bench, servers) = (Bench::new()?, Servers::new("a37")?);
    let model = ModelServer::replies(["one", "two", "three", "four"].map(ModelReply::text))?;
    let own = McpServers::new().with("own", servers.server()?);
    let agent = Agent::create(options(&bench, &model, own))?;
    let tools = |init: &SystemInit| -> Vec<String> {
        init.mcp_tools.iter().map(|pair| format!("{}/{}", pair.server, pair.tool)).collect()
    };
    let (init, _) = ran(&agent, "a", SendOptions::default()).await?;
    assert_eq!(tools(&init), ["own/echo"]);
    let before = servers.leaks().processes().len();
    let other = McpServers::new().with("other", servers.server()?);
    let replace = SendOptions { mcp_servers: ServerChange::Replace(other), ..SendOptions::default() };
    let (init, _) = ran(&agent, "b", replace).await?;
    assert_eq!(tools(&init), ["other/echo"]);
    servers.fewer_than(before + 1).await?;
    let none = SendOptions { mcp_servers: ServerChange::None, ..SendOptions::default() };
    let (init, _) = ran(&agent, "c", none).await?;
    assert!(tools(&init).is_empty());
    let (init, _) = ran(&agent, "d", SendOptions::default()).await?;
    assert_eq!(tools(&init), ["own/echo"]);
    assert_eq!(servers.leaks().processes().len(), before);
    soon(agent.dispose()).await?;
    servers.gone().await
}

#[tokio::test]
async fn statement_a17_handles_that_come_and_go_leave_no_process() -> Result<()> {
    let (bench, servers) = (Bench::new()?, Servers::new("a17")?);
    let model = ModelServer::replies((0..4).map(|_| ModelReply::text("ok")))?;
    for round in 0..4 {
        let own = McpServers::new().with("own", servers.server()?);
        let agent = Agent::create(options(&bench, &model, own))?;
        ran(&agent, "a", SendOptions::default()).await?;
        // One that is only dropped ends in the background.
        if round % 2 == 0 {
            soon(agent.dispose()).await?;
        }
    }
    servers.gone().await
}

#[tokio::test]
async fn tokens_are_told_once_and_a_fault_has_its_code_beside_its_message() -> Result<()> {
    let bench = Bench::new()?;
    let model = ModelServer::replies([
        ModelReply::text("all is said"),
        ModelReply::status(401, "this key is not known"),
    ])?;
    let agent = Agent::create(options(&bench, &model, McpServers::new()))?;
    let (_, events) = ran(&agent, "good day", SendOptions::default()).await?;
    let told: Vec<_> = events.iter().filter(|event| matches!(event, EventKind::Usage(_))).collect();
    assert_eq!(told.len(), 1, "{told:?}");

    let run = agent.send("and on", SendOptions::default()).await?;
    let state = soon(run.wait()).await??;
    let fault = state.error.context("a fault")?;
    assert_eq!((state.status, fault.code.as_str()), (RunStatus::Error, "unauthenticated"));
    assert!(!fault.message.contains("unauthenticated"), "{fault:?}");
    assert_eq!(fault.to_string().matches("[unauthenticated]").count(), 1, "{fault}");
    soon(agent.dispose()).await
}

#[tokio::test]
async fn trial_16_calls_of_servers_that_are_late_absent_mute_or_broken_are_answered() -> Result<()> {
    let (bench, mut servers) = (Bench::new()?, Servers::new("t16")?);
    let names = ["late__echo", "gone__x", "mute__x", "crash__x", "nobody__x"];
    let calls = names.iter().fold(ModelReply::text("I try"), |reply, name| reply.and_call(name, "{}"));
    let model = ModelServer::replies([calls, ModelReply::text("done")])?;
    let given = McpServers::new()
        .with("ok", servers.server()?)
        .with(
            "late",
            servers
                .scripted(&format!("{ECHO}on start\n    wait open\n"))?
                .with("startupTimeoutSec", json!(300)),
        )
        .with("gone", McpServer::command("no-such-binary-xyz"))
        .with("mute", servers.scripted("set defaults off")?.with("startupTimeoutSec", json!(1)))
        .with("crash", servers.scripted("on start\n    stderr the last words\\n\n    exit 7\n")?);
    let agent = Agent::create(options(&bench, &model, given))?;
    let run = agent.send("call them all", SendOptions::default()).await?;
    // Whoever is late does not hold up the one that is required.
    let first = soon(tokio::task::spawn_blocking(move || {
        let asked = model.wait_for_requests(1, DEADLINE);
        asked.map(|asked| (model, asked[0].tools()))
    }));
    let (model, offered) = first.await???;
    assert!(
        offered.contains(&"ok__echo".to_owned()) && !offered.contains(&"late__echo".to_owned()),
        "{offered:?}"
    );
    let mut peers = Vec::new();
    for _ in 0..4 {
        let mut peer = servers.hub.arrival("server", DEADLINE)?;
        // The one that crashed hears nothing.
        peer.tell("arm open").ok();
        peers.push(peer);
    }
    let state = soon(run.wait()).await??;
    assert_eq!((state.status, state.result.as_deref()), (RunStatus::Finished, Some("done")), "{state:?}");
    let last = model.requests().pop().context("a request")?;
    assert!(last.tools().contains(&"late__echo".to_owned()), "{:?}", last.tools());
    let results = last.results();
    let says = |index: usize, words: &[&str]| {
        let text = &results[index];
        assert!(words.iter().all(|word| text.contains(word)), "{}: {text}", names[index]);
    };
    assert_eq!(results.len(), names.len(), "{results:?}");
    assert!(!results[0].contains("late"), "{}", results[0]);
    says(1, &["gone", "not found", "no-such-binary-xyz"]);
    says(2, &["mute", "initialize"]);
    says(3, &["crash", "7", "the last words"]);
    says(4, &["nobody__x", "ok__echo"]);
    soon(agent.dispose()).await?;
    servers.gone().await
}
