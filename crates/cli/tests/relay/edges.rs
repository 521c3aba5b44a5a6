//! Messages at the edges of what the protocol allows: order of members, spelling of keys, batches, ids that meet, and
//! results that leave little room for a preview.

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, Rig, SOON, peak_memory};

use crate::answer::{Answer, same};
use crate::{TOOLWAY, call, goes_on, ready, together};

const STDIO: FakeTransport = FakeTransport::Stdio;

#[test]
fn members_may_come_in_any_order_and_spelling() -> Result<()> {
    let spellings = [
        r#"{"result":{"isError":true,"content":[{"text":"BEGIN {x*30000}","type":"text"}]},"id":{id},"jsonrpc":"2.0"}"#,
        r#"{"result":{"content":[{"type":"text","text":"BEGIN {x*30000}"}],"isError":true},"jsonrpc":"2.0","id":{id}}"#,
        r#"{"jsonrpc":"2.0","\u0069d":{id},"r\u0065sult":{"c\u006fntent":[{"type":"text","text":"BEGIN {x*30000}"}],"is\u0045rror":true}}"#,
        r#" { "jsonrpc" : "2.0" , "id" : {id} , "result" : { "content" : [ { "type" : "text" , "text" : "BEGIN {x*30000}" } ] , "isError" : true } } "#,
        r#"{"jsonrpc":"2.0","id":{id},"x":{"id":"not this","result":{"isError":false}},"result":{"y":{"isError":false},"content":[{"type":"text","text":"BEGIN {x*30000}"}],"isError":true}}"#,
    ];
    let script: Vec<_> =
        spellings.iter().enumerate().map(|(n, s)| format!("on tools/call/t{n} -> send {s}\n")).collect();
    let mut session = ready(STDIO, &script.concat())?;
    for n in 0..spellings.len() {
        let answer = call(&mut session, &format!("\"{n}\""), &format!("t{n}"))?;
        ensure!(answer.result()?["isError"] == true && answer.chars() <= 10_000, "{n}: {:.300}", answer.line);
        answer.saved().with_context(|| n.to_string())?;
        ensure!(answer.text()?.contains("BEGIN"), "{n}: {}", answer.text()?);
    }
    session.finish().map(drop)
}

#[test]
fn the_answer_is_never_over_the_limit_whatever_it_holds() -> Result<()> {
    let links =
        r#"{({"type":"resource_link","uri":"file:///a/rather/long/path/to/something","name":"link"},)*400}"#;
    let results = [
        ("quotes", r#"{"content":[{"type":"text","text":"{(\"\\\n\t)*9000}"}]}"#.to_owned()),
        ("controls", r#"{"content":[{"type":"text","text":"{(\u0001\u001f)*9000}"}]}"#.to_owned()),
        ("emoji", r#"{"content":[{"type":"text","text":"{(👩‍👩‍👧‍👦é漢)*4000}"}]}"#.to_owned()),
        ("surrogates", r#"{"content":[{"type":"text","text":"{(\ud800)*4000}"}]}"#.to_owned()),
        ("meta", r#"{"content":[{"type":"text","text":"hi"}],"_meta":{"v/k":"{m*30000}"}}"#.to_owned()),
        ("links", format!(r#"{{"content":[{links}{{"type":"text","text":"{{x*20000}}"}}]}}"#)),
        (
            "blocks",
            r#"{"content":[{({"type":"text","text":"a"},)*3000}{"type":"text","text":"z"}]}"#.to_owned(),
        ),
        ("structured", r#"{"content":[],"structuredContent":{"k":[{(1.0,)*9000}2]}}"#.to_owned()),
        ("uri", r#"{"content":[{"type":"resource_link","uri":"file:///{u*20000}","name":"x"}]}"#.to_owned()),
        (
            "embedded",
            r#"{"content":[{"type":"resource","resource":{"uri":"x://a","text":"{x*20000}"}}]}"#.to_owned(),
        ),
        ("unknown", r#"{"content":[{"type":"hologram","data":"{x*20000}"}]}"#.to_owned()),
        ("no-content", r#"{"other":"{x*20000}"}"#.to_owned()),
        ("not-an-array", r#"{"content":"{x*20000}"}"#.to_owned()),
        ("array", r#"["{x*20000}"]"#.to_owned()),
        ("string", r#""{x*20000}""#.to_owned()),
    ];
    let script: Vec<_> =
        results.iter().map(|(name, result)| format!("on tools/call/{name} -> answer {result}\n")).collect();
    let script = script.concat();
    together(&[1_000, 1_500, 5_000], |limit| {
        let rig =
            Rig::new(TOOLWAY)?.without("--preview-chars").instead("--max-response-chars", limit.to_string());
        let mut session = rig.script(&script).start(STDIO)?;
        session.client.handshake()?;
        for (name, _) in &results {
            let id = format!("\"{name}-{}\"", "i".repeat(100));
            let answer = call(&mut session, &id, name).context(*name)?;
            ensure!(answer.chars() <= *limit, "{name}: {} characters of {limit}", answer.chars());
            answer.saved().context(*name)?;
        }
        session.finish().map(drop)
    })
}

#[test]
fn a_large_member_of_a_batch_is_replaced_alone() -> Result<()> {
    let script =
        "on tools/call/big -> text {x*20000}\non tools/call/small -> answer {\"content\":[],\"n\":1.0}";
    for transport in [FakeTransport::Stdio, FakeTransport::Http] {
        let mut session = ready(transport, script)?;
        session.client.send(r#"[{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"small"}},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"big"}}]"#)?;
        let line = session.client.line_that(SOON, "b", |l| l.windows(8).any(|w| w == b"\"id\":\"b\""))?;
        let text = String::from_utf8(line)?;
        let batch: serde_json::Value = serde_json::from_str(&text)?;
        if let Some(members) = batch.as_array() {
            ensure!(
                members.len() == 2
                    && text.contains(r#"{"jsonrpc":"2.0","id":"s","result":{"content":[],"n":1.0}}"#),
                "{text:.300}"
            );
            let large = Answer::of(members[1].to_string().as_bytes())?;
            large.saved()?;
        } else {
            Answer::of(text.as_bytes())?.saved()?;
        }
        ensure!(text.len() < 12_000, "{} bytes", text.len());
        goes_on(&mut session)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn ids_of_both_sides_may_meet() -> Result<()> {
    let script = r#"on tools/call/ask
    send {"jsonrpc":"2.0","id":{id},"method":"roots/list"}
    wait response:1
    text asked"#;
    for transport in [FakeTransport::Stdio, FakeTransport::Sse] {
        let mut session = ready(transport, script)?;
        session.client.answer_to("roots/list", r#"{"roots":[],"n":1.0}"#);
        ensure!(call(&mut session, "1", "ask")?.text()? == "asked", "not answered");
        session.upstream()?.wait_for(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[],"n":1.0}}"#, SOON)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn an_id_may_be_used_again_and_twice_at_once() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/held\n    wait go\n    text held")?;
    for _ in 0..3 {
        call(&mut session, "7", "echo")?;
    }
    session.client.call("8", "held", "{}")?;
    session.client.call("8", "held", "{}")?;
    session.upstream()?.wait_for("\"held\"", SOON)?;
    session.upstream()?.act("arm go")?;
    session.client.answer("8")?;
    // The second of the two is answered as well: by the upstream, or with a refusal.
    session.client.answer("8")?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn cancelling_another_type_of_id_cancels_nothing() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/held\n    wait go\n    text held")?;
    session.client.call("1", "held", "{}")?;
    session
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}"#)?;
    session
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#)?;
    session.client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#)?;
    session.upstream()?.wait_for("99", SOON)?;
    session.upstream()?.act("arm go")?;
    ensure!(Answer::of(&session.client.answer("1")?)?.text()? == "held", "not answered");
    session.finish().map(drop)
}

#[test]
fn large_requests_arrive_whole_without_being_held() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/take -> text taken")?;
    let text = "0123456789".repeat(3_000_000);
    session.client.call("1", "take", &format!(r#"{{"t":"{text}","n":1.0}}"#))?;
    ensure!(Answer::of(&session.client.answer_within("1", SOON * 6)?)?.text()? == "taken", "not answered");
    let peak = peak_memory(session.client.pid()).unwrap_or(0);
    ensure!(peak < 64 << 20, "{} MiB", peak >> 20);
    let received = session.upstream()?.received();
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"take","arguments":{{"t":"{text}","n":1.0}}}}}}"#
    );
    ensure!(received.ends_with(format!("{expected}\n").as_bytes()), "changed");
    session.finish().map(drop)
}

#[test]
fn giant_names_are_not_held() -> Result<()> {
    let script = r#"on tools/call/key -> send {"jsonrpc":"2.0","{k*50000000}":1,"id":{id},"result":{"content":[]}}
on tools/call/type -> answer {"content":[{"type":"{t*50000000}"}]}
on tools/call/token
    send {"jsonrpc":"2.0","method":"{m*20000000}"}
    text after
on tools/call/number -> answer {"content":[],"n":{1*50000000}}"#;
    let mut session = ready(STDIO, script)?;
    session.client.capture.allow("number out of range");
    for (id, tool) in [("1", "key"), ("2", "type"), ("3", "token"), ("4", "number")] {
        session.client.call(id, tool, "{}")?;
        session.client.answer_within(id, SOON * 6).context(tool)?;
        let peak = peak_memory(session.client.pid()).unwrap_or(0);
        ensure!(peak < 64 << 20, "{tool}: {} MiB", peak >> 20);
    }
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn bytes_that_are_no_utf8_do_not_reach_stdout_as_such() -> Result<()> {
    let script = "on tools/call/latin\n    raw {\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"caf\\xe9 {x*10}\"}]}}\\n\non tools/call/large\n    raw {\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"caf\\xe9 {x*30000}\"}]}}\\n";
    let mut session = ready(STDIO, script)?;
    session.client.call("1", "latin", "{}")?;
    let first = session.client.line_that(SOON, "answer to 1", |l| l.windows(6).any(|w| w == b"\"id\":1"))?;
    ensure!(String::from_utf8(first.clone()).is_ok(), "not UTF-8: {}", String::from_utf8_lossy(&first));
    call(&mut session, "2", "large")?.saved()?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn a_repeated_member_leaves_nobody_waiting() -> Result<()> {
    // Which of the two counts is not said anywhere; the client takes the last, as JSON parsers do.
    let script =
        r#"on tools/call/twice -> send {"jsonrpc":"2.0","id":"other","result":{"content":[]},"id":{id}}"#;
    let mut session = ready(STDIO, script)?;
    session.client.call("1", "twice", "{}")?;
    session.client.answer("1")?;
    same(&session.client.next_line(std::time::Duration::ZERO).unwrap_or_default().unwrap_or_default(), "")?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn members_of_a_servers_batch_that_are_no_messages_are_cut_out_and_counted() -> Result<()> {
    let script = r#"on tools/call/between -> send [{"foo":1},5,{"jsonrpc":"2.0","id":{id},"result":{"n":1.0}} , "x"]
on tools/call/first -> send [5,{"jsonrpc":"2.0","id":{id},"result":{"n":1.0}}]"#;
    for transport in [STDIO, FakeTransport::Http] {
        let rig = Rig::new(TOOLWAY)?.instead("--log", "info").script(script);
        let mut session = rig.start(transport)?;
        session.client.handshake()?;
        for (id, tool) in [("1", "between"), ("2", "first")] {
            session.client.call(id, tool, "{}")?;
            let line = String::from_utf8(session.client.answer(id).context(tool)?)?;
            let member = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":1.0}}}}"#);
            ensure!(line.trim_end() == format!("[{member}]") || line.trim_end() == member, "{tool}: {line}");
        }
        goes_on(&mut session)?;
        session.client.close_stdin();
        session.client.wait_exit(SOON)?;
        let stderr = session.client.stderr();
        // One for each line.
        ensure!(stderr.contains("ignored_lines=2"), "{stderr}");
        let (_, rest) = session.ended()?;
        ensure!(rest.is_empty(), "more lines: {rest:?}");
    }
    Ok(())
}

#[test]
fn members_of_a_clients_batch_that_are_no_messages_are_refused_one_by_one() -> Result<()> {
    for transport in [STDIO, FakeTransport::Http] {
        let mut session = ready(transport, "")?;
        let members =
            [r#""stranger""#, r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#, r#"{"foo":"stranger"}"#];
        for member in members {
            session.client.capture.sent(member.as_bytes());
        }
        session.client.send_uncaptured(format!("[{}]\n", members.join(",")).as_bytes())?;
        for _ in 0..2 {
            let line = session.client.line_that(SOON, "-32600", |l| l.windows(6).any(|w| w == b"-32600"))?;
            ensure!(String::from_utf8_lossy(&line).contains("\"id\":null"), "{line:?}");
        }
        session.client.answer("9")?;
        goes_on(&mut session)?;
        let upstream = session.upstream()?;
        let mut received = upstream.received();
        received.extend(upstream.requests().into_iter().flat_map(|request| request.body));
        let received = String::from_utf8_lossy(&received);
        ensure!(!received.contains("stranger"), "{received}");
        ensure!(received.contains(r#"[{"jsonrpc":"2.0","id":9,"method":"ping"}]"#), "{received}");
        session.finish()?;
    }
    Ok(())
}
