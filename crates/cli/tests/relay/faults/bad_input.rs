//! Odd and hostile messages from either side.

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, SOON};

use crate::answer::{Answer, same};
use crate::{call, goes_on, ready};

const STDIO: FakeTransport = FakeTransport::Stdio;

#[test]
fn json_nested_a_hundred_thousand_deep_hurts_nobody() -> Result<()> {
    for transport in [FakeTransport::Stdio, FakeTransport::Http, FakeTransport::Sse] {
        let script = r#"on tools/call/arrays -> answer {"content":[],"structuredContent":{"v":{[*100000}{]*100000}}}
on tools/call/objects -> answer {"content":[],"structuredContent":{({"a":)*100000}1{(})*100000}}
on tools/call/open -> answer {"content":[],"structuredContent":{[*100000}
on x/small -> answer {"v":{[*4000}{]*4000}}"#;
        let mut session = ready(transport, script)?;
        for (id, tool) in [("1", "arrays"), ("2", "objects")] {
            let answer = call(&mut session, id, tool).with_context(|| format!("{transport:?} {tool}"));
            let answer = answer?;
            ensure!(answer.result().is_ok() || answer.error().is_ok(), "{:.200}", answer.line);
        }
        let deep = format!(r#"{{"text":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        session.client.call("3", "echo", &deep)?;
        session.client.answer("3")?;
        session.client.send(r#"{"jsonrpc":"2.0","id":4,"method":"x/small"}"#)?;
        let sent = format!(
            r#"{{"jsonrpc":"2.0","id":4,"result":{{"v":{}{}}}}}"#,
            "[".repeat(4_000),
            "]".repeat(4_000)
        );
        same(&session.client.answer("4")?, &sent)?;
        goes_on(&mut session)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn lines_of_one_byte_a_write_are_whole_lines() -> Result<()> {
    let mut session = ready(
        STDIO,
        "on tools/call/slow\n    pieces 1\n    text é漢😀{x*3000}\non tools/call/long\n    pieces 7\n    text {y*30000}",
    )?;
    let answer = call(&mut session, "1", "slow")?;
    ensure!(answer.text()? == format!("é漢😀{}", "x".repeat(3_000)), "{}", answer.line);
    call(&mut session, "2", "long")?.saved()?;
    let request = r#"{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"name":"echo","arguments":{"text":"漢"}}}"#;
    session.client.capture.sent(request.as_bytes());
    for byte in format!("{request}\n").into_bytes() {
        session.client.send_uncaptured(&[byte])?;
    }
    ensure!(Answer::of(&session.client.answer("\"é\"")?)?.text()? == "漢", "not answered");
    session.finish().map(drop)
}

#[test]
fn ids_of_every_type_are_kept_apart() -> Result<()> {
    let ids = [
        "1",
        "\"1\"",
        "0",
        "\"0\"",
        "-0",
        "1.5",
        "\"\"",
        "\"null\"",
        "9007199254740993",
        "9007199254740992",
        "\"\\ud83d\\ude00\"",
        "\"{\\\"id\\\":5}\"",
    ];
    for transport in [FakeTransport::Stdio, FakeTransport::Http] {
        // In flight together, answered in the opposite order.
        let mut session =
            ready(transport, "on tools/call/held\n    wait go\n    answer {\"content\":[],\"was\":{id}}")?;
        let ids = &ids[..if transport == FakeTransport::Http { 6 } else { ids.len() }];
        for id in ids.iter().filter(|id| **id != "0") {
            session.client.call(id, "held", "{}")?;
            session.upstream()?.wait_for(&format!("\"id\":{id},"), SOON)?;
        }
        session.upstream()?.act("arm go")?;
        for id in ids.iter().filter(|id| **id != "0") {
            let sent = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"was":{id}}}}}"#);
            same(&session.client.answer(id)?, &sent)?;
        }
        session.finish()?;
    }
    Ok(())
}

#[test]
fn ids_that_are_none_are_refused_and_the_relay_goes_on() -> Result<()> {
    for transport in [FakeTransport::Stdio, FakeTransport::Http] {
        let mut session = ready(transport, "")?;
        for id in ["true", "{}", "[1]", "{\"id\":1}"] {
            session.client.call(id, "echo", r#"{"text":"x"}"#)?;
            let refused = session
                .client
                .line_that(SOON, "-32600", |l| l.windows(6).any(|w| w == b"-32600"))
                .context(id)?;
            ensure!(String::from_utf8_lossy(&refused).contains("\"id\":null"), "{id}");
        }
        goes_on(&mut session)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn an_id_of_null_is_refused_or_passed() -> Result<()> {
    let mut session = ready(STDIO, "")?;
    session.client.call("null", "echo", r#"{"text":"x"}"#)?;
    session.client.answer("null")?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn an_id_of_over_500_characters_is_refused() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/big -> text {x*30000}")?;
    let long = format!("\"{}\"", "i".repeat(501));
    session.client.call(&long, "big", "{}")?;
    session.client.line_that(SOON, "-32600", |l| l.windows(6).any(|w| w == b"-32600"))?;
    let fits = format!("\"{}\"", "i".repeat(490));
    call(&mut session, &fits, "big")?.saved()?;
    session.client.capture.allow("an answer to nothing");
    let open: Vec<String> = session.client.capture.unanswered().into_iter().map(str::to_owned).collect();
    ensure!(open.is_empty() || open == [long], "{open:?}");
    session.client.close_stdin();
    session.client.wait_exit(SOON)?;
    session.check_end()
}

#[test]
fn lines_of_the_client_that_are_no_messages_are_answered_one_by_one() -> Result<()> {
    let kinds = [
        ("{this is not json}", "-32700"),
        ("[1,2", "-32700"),
        ("nonsense", "-32700"),
        ("{\"a\":1}}", "-32700"),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,}", "-32700"),
        ("{}", "-32600"),
        ("[]", "-32600"),
        ("42", "-32600"),
        ("null", "-32600"),
        ("\"text\"", "-32600"),
        ("[1]", "-32600"),
        (r#"{"jsonrpc":"2.0"}"#, "-32600"),
        (r#"{"foo":"bar"}"#, "-32600"),
    ];
    for transport in [FakeTransport::Stdio, FakeTransport::Http] {
        let mut session = ready(transport, "")?;
        for (line, code) in kinds {
            session.client.send(line)?;
            let answer = session.client.next_line(SOON).context(line)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&answer).into_owned();
            ensure!(text.contains(code) && text.contains("\"id\":null"), "{transport:?} {line}: {text}");
        }
        session.client.send_bytes(b"\xff\xfe\n")?;
        let answer = session.client.next_line(SOON)?.unwrap_or_default();
        ensure!(String::from_utf8_lossy(&answer).contains("-32700"), "bad UTF-8");
        session.client.send_bytes(b"\n  \n\r\n")?;
        goes_on(&mut session)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn framing_of_the_client_is_taken_off() -> Result<()> {
    let mut session = ready(STDIO, "")?;
    session.client.capture.sent(br#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    session.client.send_uncaptured(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\r\n")?;
    session.client.answer("5")?;
    let received = session.upstream()?.received();
    ensure!(
        received.ends_with(b"}\n") && !received.contains(&b'\r') && !received.contains(&0xef),
        "{received:?}"
    );
    session.client.capture.sent(br#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#);
    session.client.send_uncaptured(br#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#)?;
    session.client.close_stdin();
    session.client.answer("6").context("a last line without its ending")?;
    session.finish().map(drop)
}

#[test]
fn an_answer_before_the_question_is_not_passed() -> Result<()> {
    let early = r#"{"jsonrpc":"2.0","id":"early","result":{"content":[{"type":"text","text":"too early"}]}}"#;
    let script = format!("on start -> send {early}\non tools/call/now\n    send {early}\n    text in time");
    let mut session = ready(STDIO, &script)?;
    call(&mut session, "1", "now")?;
    let answer = call(&mut session, "\"early\"", "echo")?;
    ensure!(!answer.line.contains("too early"), "{}", answer.line);
    ensure!(session.finish()?.is_empty(), "an answer to nothing reached the client");
    Ok(())
}

#[test]
fn a_second_answer_is_dropped() -> Result<()> {
    for transport in [FakeTransport::Stdio, FakeTransport::Sse] {
        let mut session = ready(
            transport,
            "on tools/call/twice\n    text first\n    text second\n    error -1 third\non tools/call/big\n    text {x*20000}\n    text {y*20000}",
        )?;
        ensure!(call(&mut session, "1", "twice")?.text()? == "first", "{transport:?}");
        call(&mut session, "2", "big")?.saved()?;
        goes_on(&mut session)?;
        ensure!(session.finish()?.is_empty(), "{transport:?}: a second answer reached the client");
    }
    Ok(())
}

#[test]
fn an_answer_after_cancellation_is_passed_once_or_dropped() -> Result<()> {
    let mut session = ready(
        STDIO,
        "on tools/call/late\n    wait cancelled:1\n    text late\n    text later\n    arm over",
    )?;
    session.client.call("1", "late", "{}")?;
    session.upstream()?.wait_for("\"late\"", SOON)?;
    session
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)?;
    session.upstream()?.act("wait over")?;
    goes_on(&mut session)?;
    ensure!(session.finish()?.len() <= 1, "passed more than once");
    Ok(())
}

#[test]
fn a_response_with_neither_or_both_is_an_error() -> Result<()> {
    let script = r#"on tools/call/neither -> send {"jsonrpc":"2.0","id":{id}}
on tools/call/both -> send {"jsonrpc":"2.0","id":{id},"result":{},"error":{"code":-1,"message":"x"}}
on tools/call/null -> send {"jsonrpc":"2.0","id":{id},"result":null}
on tools/call/version -> send {"jsonrpc":"1.0","id":{id},"result":{}}"#;
    for transport in [FakeTransport::Stdio, FakeTransport::Http, FakeTransport::Sse] {
        let mut session = ready(transport, script)?;
        for (id, tool) in [("1", "neither"), ("2", "both"), ("3", "version")] {
            call(&mut session, id, tool)?.error().with_context(|| format!("{transport:?} {tool}"))?;
        }
        session.client.call("4", "null", "{}")?;
        same(&session.client.answer("4")?, r#"{"jsonrpc":"2.0","id":4,"result":null}"#)?;
        goes_on(&mut session)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn calls_go_on_while_the_client_closes() -> Result<()> {
    for transport in [FakeTransport::Stdio, FakeTransport::Http, FakeTransport::Sse] {
        let mut session = ready(transport, "set eof drain")?;
        for n in 1..=200 {
            session.client.call(&n.to_string(), "echo", r#"{"text":"x"}"#)?;
        }
        session.client.close_stdin();
        for n in 1..=200 {
            session.client.answer(&n.to_string()).with_context(|| format!("{transport:?}"))?;
        }
        session.finish()?;
    }
    Ok(())
}

#[test]
fn everything_the_client_spells_arrives_as_it_was_spelled() -> Result<()> {
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"\u00e9\/","n":12345678901234567890,"f":1.0,"e":1E+2,"z":null,"k":1,"k":2}}}"#,
        r#"{ "x-top" : {"z":-0.0} , "method":"x/y", "jsonrpc":"2.0","id":"\u0061" }"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":[1,2.50]}"#,
        r#"{"jsonrpc":"2.0","id":"never-asked","result":{"a":1.0}}"#,
        r#"[{"jsonrpc":"2.0","id":"b","method":"ping"} , {"jsonrpc":"2.0","method":"n"}]"#,
    ];
    let mut session = ready(STDIO, "")?;
    for line in lines {
        session.client.send(line)?;
    }
    for id in ["1", "\"\\u0061\"", "\"b\""] {
        session.client.answer(id)?;
    }
    let received = String::from_utf8_lossy(&session.upstream()?.received()).into_owned();
    for line in lines {
        ensure!(received.lines().any(|l| l == line), "changed: {line} in {received}");
    }
    session.finish().map(drop)
}
