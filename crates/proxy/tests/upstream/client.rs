//! The sequential client of shell and doctor, in both generations.

use std::time::Duration;

use anyhow::{Result, bail};
use toolway_proxy::gateway::{
    Alone, ChildTarget, Client, ClientError, Companion, Connection, Happening, Target,
};
use toolway_transport::{ChildConfig, Failure, Inbound, Payload, Transport, memory};

use super::support::{child, config, mark, names, outbound, shared};

/// Writes down what it hears, and says yes.
#[derive(Debug, Default)]
struct Notes(Vec<String>);

impl Companion for Notes {
    fn answer(&mut self, method: &str, params: &[u8]) -> Result<Vec<u8>, Failure> {
        self.0.push(format!("asked {method} {}", String::from_utf8_lossy(params)));
        Ok(br#"{"action":"accept","content":{"ok":true}}"#.to_vec())
    }

    fn happened(&mut self, happening: Happening<'_>) {
        self.0.push(match happening {
            Happening::Progress { progress, total, message } => {
                format!("progress {progress} {total:?} {message:?}")
            }
            Happening::Log(params) => format!("log {}", String::from_utf8_lossy(params)),
            Happening::Notification { method, .. } => method.to_owned(),
        });
    }
}

fn text(payload: Payload) -> Result<String> {
    match payload {
        Payload::Bytes(bytes) => Ok(String::from_utf8(bytes.to_vec())?),
        Payload::File { .. } => bail!("a file"),
    }
}

#[tokio::test]
async fn it_lists_calls_reads_prompts_and_pings() -> Result<()> {
    let script = r#"set capabilities {"tools":{},"prompts":{},"resources":{}}
tool {"name":"t","inputSchema":{"type":"object"}}
on prompts/list -> answer {"prompts":[{"name":"p"}]}
on prompts/get -> answer {"messages":[]}
on resources/read -> answer {"contents":[{"uri":"f:///a","text":"A"}]}
on tools/call/t -> answer {"content":[],"isError":true}"#;
    let mut client = Client::open(&child(script, &mark())?, &shared()).await?;
    let lists = client.lists().await?;
    assert!(names(&lists.tools)?.contains(&"t".to_owned()) && lists.prompts.len() == 1);
    assert_eq!(text(client.call("t", "{}", &mut Alone).await?)?, r#"{"content":[],"isError":true}"#);
    assert_eq!(
        text(client.read("f:///a", &mut Alone).await?)?,
        r#"{"contents":[{"uri":"f:///a","text":"A"}]}"#
    );
    assert_eq!(text(client.prompt("p", "{}", &mut Alone).await?)?, r#"{"messages":[]}"#);
    assert!(client.ping().await? < Duration::from_secs(10));
    assert!(matches!(client.call("t", "{not json", &mut Alone).await, Err(ClientError::Refused(_))));
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn it_hears_progress_and_answers_questions_while_a_call_runs() -> Result<()> {
    let script = r#"on tools/call/t
    send {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"toolway-2","progress":1,"total":2,"message":"half"}}
    send {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}
    send {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
    wait response:"q"
    text done"#;
    let mut client = Client::open(&child(script, &mark())?, &shared()).await?;
    let mut notes = Notes::default();
    assert!(text(client.call("t", "{}", &mut notes).await?)?.contains("done"));
    let expected = [
        "progress 1 Some(2.0) Some(\"half\")",
        r#"log {"level":"info","data":"x"}"#,
        r#"asked elicitation/create {"message":"sure?"}"#,
    ];
    assert_eq!(notes.0, expected);
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn silence_ends_a_call_with_a_cancellation_and_progress_does_not() -> Result<()> {
    let progress = r#"    delay 250ms
    send {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"toolway-2","progress":1}}
"#;
    let script = format!(
        "on tools/call/busy\n{}    text done\non tools/call/mute -> never\non notifications/cancelled -> arm gone\non tools/call/gone -> wait gone\n    text told",
        progress.repeat(4)
    );
    let mut config = child(&script, &mark())?;
    config.timeouts.call_idle = Duration::from_millis(600);
    let mut client = Client::open(&config, &shared()).await?;
    assert!(text(client.call("busy", "{}", &mut Alone).await?)?.contains("done"));
    let error = client.call("mute", "{}", &mut Alone).await.expect_err("answered");
    assert!(matches!(&error, ClientError::Silent { method, .. } if method == "tools/call"), "{error}");
    assert!(text(client.call("gone", "{}", &mut Alone).await?)?.contains("told"), "it was cancelled");
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn errors_and_ends_are_told_apart() -> Result<()> {
    let script = "on tools/call/bad -> error -32602 no such thing\non tools/call/die -> exit 9";
    let mut client = Client::open(&child(script, &mark())?, &shared()).await?;
    let error = client.call("bad", "{}", &mut Alone).await.expect_err("a result");
    assert!(matches!(&error, ClientError::Failed(failure) if failure.code == -32602), "{error}");
    let error = client.call("die", "{}", &mut Alone).await.expect_err("a result");
    assert_eq!(error.to_string(), "the server exited with code 9");
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn rounds_of_input_are_run_with_the_state_of_the_server() -> Result<()> {
    let script = r#"set defaults off
on initialize -> error -32601 no
on server/discover -> answer {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}
on tools/call/t 1 -> answer {"resultType":"input_required","inputRequests":{"k\u0065y":{"method":"elicitation/create","params":{"message":"sure?"}}},"requestState":"s\u0074ate"}
on tools/call/t 2 -> answer {"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
    let mark = mark();
    let directory = tempfile::tempdir()?;
    let log = directory.path().join("log");
    let mut config = child(script, &mark)?;
    if let Target::Child(target) = &mut config.target {
        target.child.args.extend(["--log".into(), log.clone().into()]);
    }
    let mut client = Client::open(&config, &shared()).await?;
    let mut notes = Notes::default();
    assert!(text(client.call("t", r#"{"a":1}"#, &mut notes).await?)?.contains("done"));
    assert_eq!(notes.0, [r#"asked elicitation/create {"message":"sure?"}"#]);
    client.close().await;
    let log = std::fs::read_to_string(log)?;
    assert!(log.contains(r#"\"requestState\":\"s\\u0074ate\""#), "byte for byte: {log}");
    assert!(log.contains(r#"\"inputResponses\":{\"key\":{\"action\":\"accept\""#), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_connection_can_be_made_in_memory() -> Result<()> {
    let (ours, mut theirs) = memory::pair();
    let server = async {
        let mut asked = Vec::new();
        let mut message = Vec::new();
        while let Some(inbound) = theirs.receive().await {
            match inbound {
                Inbound::Data { bytes, .. } => message.extend_from_slice(&bytes),
                Inbound::End { .. } => {
                    let text = String::from_utf8(std::mem::take(&mut message))?;
                    let parsed: serde_json::Value = serde_json::from_str(&text)?;
                    let method = parsed["method"].as_str().unwrap_or_default().to_owned();
                    let result = match method.as_str() {
                        "initialize" => r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}"#,
                        "tools/list" => r#"{"tools":[{"name":"a"}]}"#,
                        _ => "{}",
                    };
                    if !parsed["id"].is_null() {
                        let answer =
                            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, parsed["id"]);
                        theirs.send(outbound(&answer)?)?;
                    }
                    asked.push(method);
                }
                _ => {}
            }
        }
        Ok::<_, anyhow::Error>(asked)
    };
    let client = async {
        let config =
            config(Target::Child(ChildTarget { command: String::new(), child: ChildConfig::default() }));
        let connection = Connection::over(ours, &config, &shared()).await?;
        assert_eq!(connection.negotiated().version, "2024-11-05");
        let mut client = Client::over(connection, config.timeouts);
        assert_eq!(names(&client.lists().await?.tools)?, ["a"]);
        client.ping().await?;
        client.close().await;
        Ok::<_, anyhow::Error>(())
    };
    let (asked, done) = tokio::join!(server, client);
    done?;
    assert_eq!(asked?, ["initialize", "notifications/initialized", "tools/list", "ping"]);
    Ok(())
}
