//! What an upstream lists: pages, changes, floods, and servers that forget to say what they have.

use std::time::Duration;

use anyhow::Result;
use tokio::time::timeout;
use toolway_proxy::gateway::{ServerState, Stage, UpstreamEvent};

use super::support::{Watched, child, mark, names};

/// A server with exactly these rules for its lists.
fn script(capabilities: &str, rules: &str) -> String {
    let handshake = format!(
        r#"on initialize -> answer {{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"f","version":"1"}}}}"#
    );
    format!("set defaults off\n{handshake}\n{rules}")
}

#[tokio::test]
async fn pages_are_followed_to_their_end_and_all_lists_come() -> Result<()> {
    let mark = mark();
    let rules = r#"on tools/list 1 -> answer {"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"2"}
on tools/list 2 -> answer {"tools":[{"name":"c"}],"nextCursor":"3"}
on tools/list 3 -> answer {"tools":[{"name":"d", "x":1.0}]}
on prompts/list -> answer {"prompts":[{"name":"p"}]}
on resources/list -> answer {"resources":[{"uri":"f:///x","name":"r"}]}
on resources/templates/list -> error -32601 no such method"#;
    let mut watched =
        Watched::start(child(&script(r#"{"tools":{},"prompts":{},"resources":{}}"#, rules), &mark)?, &mark);
    let mut lists = watched.lists().await?;
    while lists.resources.is_empty() || lists.prompts.is_empty() {
        lists = watched.lists().await?;
    }
    assert_eq!(names(&lists.tools)?, ["a", "b", "c", "d"]);
    assert_eq!(lists.tools[3], r#"{"name":"d", "x":1.0}"#, "byte for byte");
    assert_eq!((lists.prompts.len(), lists.resources.len(), lists.templates.len()), (1, 1, 0));
    assert!(lists.notes.is_empty(), "{:?}", lists.notes);
    watched.stop().await
}

#[tokio::test]
async fn tools_are_found_where_the_server_forgot_to_mention_them() -> Result<()> {
    let mark = mark();
    let rules = r#"on tools/list -> answer {"tools":[{"name":"a"}]}"#;
    let mut watched = Watched::start(child(&script("{}", rules), &mark)?, &mark);
    assert_eq!(names(&watched.lists().await?.tools)?, ["a"]);
    watched.state("connected").await?;
    watched.stop().await
}

#[tokio::test]
async fn a_server_without_tools_is_connected_all_the_same() -> Result<()> {
    let mark = mark();
    let rules = r#"on tools/list -> error -32601 no such method
on prompts/list -> answer {"prompts":[{"name":"p"}]}"#;
    let mut watched = Watched::start(child(&script(r#"{"prompts":{}}"#, rules), &mark)?, &mark);
    let mut lists = watched.lists().await?;
    if lists.prompts.is_empty() {
        lists = watched.lists().await?;
    }
    assert!(lists.tools.is_empty() && lists.prompts.len() == 1 && lists.notes.is_empty(), "{lists:?}");
    watched.stop().await
}

#[tokio::test]
async fn a_cursor_that_comes_again_ends_the_paging_with_a_note() -> Result<()> {
    let mark = mark();
    let rules = r#"on tools/list 1 -> answer {"tools":[{"name":"a"}],"nextCursor":"x"}
on tools/list -> answer {"tools":[{"name":"b"}],"nextCursor":"x"}"#;
    let mut watched = Watched::start(child(&script(r#"{"tools":{}}"#, rules), &mark)?, &mark);
    let lists = watched.lists().await?;
    assert_eq!(names(&lists.tools)?[..2], ["a", "b"]);
    assert_eq!(lists.notes, ["paging of tools/list was cut at page 2: the same cursor came again"]);
    watched.stop().await
}

#[tokio::test]
async fn a_page_that_does_not_come_leaves_what_came() -> Result<()> {
    let mark = mark();
    let rules = r#"on tools/list 1 -> answer {"tools":[{"name":"a"}],"nextCursor":"x"}
on tools/list -> never"#;
    let mut config = child(&script(r#"{"tools":{}}"#, rules), &mark)?;
    config.timeouts.list = Duration::from_millis(300);
    let mut watched = Watched::start(config, &mark);
    let lists = watched.lists().await?;
    assert_eq!(names(&lists.tools)?, ["a"]);
    assert_eq!(lists.notes, ["tools/list: no answer in 0.3 s"]);
    watched.state("connected").await?;
    watched.stop().await
}

#[tokio::test]
async fn tools_that_cannot_be_listed_are_a_failure_of_that_stage() -> Result<()> {
    for (rule, said) in [
        ("never", "tools/list: no answer in 0.3 s"),
        ("error -32000 no luck", "tools/list: the server answered with an error: no luck (-32000)"),
    ] {
        let mark = mark();
        let mut config = child(&script(r#"{"tools":{}}"#, &format!("on tools/list -> {rule}")), &mark)?;
        config.timeouts.list = Duration::from_millis(300);
        let mut watched = Watched::start(config, &mark);
        let ServerState::Failed { stage, reason, .. } = watched.state("failed").await? else {
            unreachable!()
        };
        assert_eq!((stage, &*reason), (Stage::List, said));
        watched.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_change_is_followed_also_where_it_was_not_announced() -> Result<()> {
    let mark = mark();
    let rules = r#"on tools/list 1 -> answer {"tools":[{"name":"unlock"}]}
on tools/list -> answer {"tools":[{"name":"unlock"},{"name":"second"}]}
on tools/call/unlock
    send {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    text ok"#;
    let mut watched = Watched::start(child(&script(r#"{"tools":{}}"#, rules), &mark)?, &mark);
    assert_eq!(names(&watched.lists().await?.tools)?, ["unlock"]);
    watched.send(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"unlock"}}"#)?;
    assert!(watched.message().await?.contains("\"id\":5"));
    assert_eq!(names(&watched.lists().await?.tools)?, ["unlock", "second"]);
    watched.stop().await
}

#[tokio::test]
async fn a_flood_of_changes_costs_few_listings_and_no_news() -> Result<()> {
    let mark = mark();
    let flood =
        "    send {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n".repeat(500);
    let rules = format!(
        "on tools/list -> answer {{\"tools\":[{{\"name\":\"a\"}}]}}\non tools/call/flood\n{flood}    text {{count}}"
    );
    let mut watched = Watched::start(child(&script(r#"{"tools":{}}"#, &rules), &mark)?, &mark);
    watched.lists().await?;
    watched.state("connected").await?;
    for id in 1..=20 {
        watched.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"flood"}}}}"#
        ))?;
        watched.message().await?;
    }
    let more = timeout(
        Duration::from_secs(2),
        watched.until(|event| matches!(event, UpstreamEvent::Lists(_)).then_some(())),
    );
    assert!(more.await.is_err(), "the same lists are not told again");
    watched.stop().await
}

#[tokio::test]
async fn a_modern_server_is_listened_to() -> Result<()> {
    let mark = mark();
    let rules = r#"set defaults off
on initialize -> error -32601 no such method
on server/discover -> answer {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}
on tools/list 1 -> answer {"resultType":"complete","tools":[{"name":"a"}],"ttlMs":5000,"cacheScope":"private"}
on tools/list -> answer {"resultType":"complete","tools":[{"name":"b"}],"ttlMs":5000,"cacheScope":"private"}
on subscriptions/listen
    send {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"toolway-4"},"notifications":{"toolsListChanged":true}}}
    send {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"toolway-4"}}}"#;
    let mut watched = Watched::start(child(rules, &mark)?, &mark);
    let first = watched.lists().await?;
    assert_eq!(names(&first.tools)?, ["a"]);
    assert_eq!((first.ttl, first.private), (Some(Duration::from_secs(5)), true));
    assert_eq!(names(&watched.lists().await?.tools)?, ["b"]);
    watched.stop().await
}
