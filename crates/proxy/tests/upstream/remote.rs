//! Connections to addresses: which transport, after which refusal, and what is said when there is none.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolway_proxy::gateway::{
    Alone, Carrier, Client, Connection, Eras, Known, Protocol, RemoteKind, Stage, Target,
};
use toolway_testkit::HttpRequest;
use toolway_wire::era::Era;

use super::support::{Web, remote, shared, shared_with};

/// What comes of a first POST that is answered so, at a server that has legacy SSE beside it.
async fn first_post(rule: &str) -> Result<Result<Carrier, toolway_proxy::gateway::OpenError>> {
    let web = Web::start(&format!("on POST 1 -> {rule}"), "sse")?;
    let config = web.config("/sse", RemoteKind::StreamableHttp)?;
    let opened = match Connection::open(&config, &shared()).await {
        Ok(connection) => {
            let carrier = connection.negotiated().carrier;
            connection.close().await;
            Ok(carrier)
        }
        Err(error) => Err(error),
    };
    Ok(opened)
}

#[tokio::test]
async fn a_definite_refusal_leads_to_sse_and_nothing_else_does() -> Result<()> {
    for status in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed"] {
        assert_eq!(first_post(&format!("status {status}")).await?, Ok(Carrier::Sse), "{status}");
    }
    let asks = "status 422 Unprocessable\n    body missing session id";
    assert_eq!(first_post(asks).await?, Ok(Carrier::Sse), "a body that asks for a session");
    for (status, needs_auth) in [
        ("401 Unauthorized", true),
        ("403 Forbidden", true),
        ("406 Not Acceptable", false),
        ("429 Too Many Requests", false),
        ("500 Internal Server Error", false),
        ("502 Bad Gateway", false),
        ("503 Service Unavailable", false),
    ] {
        let error = first_post(&format!("status {status}")).await?.expect_err(status);
        assert_eq!((error.stage, error.detail.needs_auth), (Stage::Connect, needs_auth), "{status}");
        assert!(error.reason.contains(&format!("HTTP {status}")), "{}", error.reason);
        assert_eq!(error.detail.exchanges.len(), 1, "nothing else was tried after {status}");
        assert_eq!(error.state().name(), if needs_auth { "needs_auth" } else { "failed" });
    }
    Ok(())
}

#[tokio::test]
async fn sse_is_tried_first_where_the_path_says_so_or_it_worked_before() -> Result<()> {
    let mut web = Web::start("", "sse")?;
    let config = web.config("/sse", RemoteKind::Auto)?;
    let shared = shared();
    Connection::open(&config, &shared).await?.close().await;
    let config = web.config("/sse", RemoteKind::Sse)?;
    Connection::open(&config, &shared).await?.close().await;
    let remembered = Eras::new(None);
    let config = web.config("/sse", RemoteKind::StreamableHttp)?;
    remembered.set(&config.digest, Known { era: Era::Legacy, carrier: Carrier::Sse });
    Connection::open(&config, &shared_with(remembered)).await?.close().await;
    let refused = web
        .peer
        .requests()
        .iter()
        .filter(|request| request.verb == "POST" && !request.path.contains("sessionId"))
        .count();
    assert_eq!(refused, 0, "nothing was posted to the stream's address");
    Ok(())
}

#[tokio::test]
async fn a_path_that_only_looks_like_sse_falls_back_the_other_way() -> Result<()> {
    let web = Web::start("set path /sse", "http")?;
    let config = web.config("/sse", RemoteKind::Auto)?;
    let connection = Connection::open(&config, &shared()).await?;
    assert_eq!(connection.negotiated().carrier, Carrier::StreamableHttp);
    connection.close().await;
    Ok(())
}

#[tokio::test]
async fn an_explicit_sse_is_not_replaced() -> Result<()> {
    let web = Web::start("", "http")?;
    let config = web.config("/mcp", RemoteKind::Sse)?;
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert!(error.detail.exchanges.iter().all(|exchange| exchange.carrier == Carrier::Sse));
    Ok(())
}

#[tokio::test]
async fn both_transports_are_named_when_neither_works() -> Result<()> {
    let web = Web::start("on POST -> status 404\non GET -> status 404", "http")?;
    let config = web.config("/wrong?key=hunter2-token", RemoteKind::Auto)?;
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert!(
        error.reason.starts_with("HTTP 404") && error.reason.contains("; sse: HTTP 404"),
        "{}",
        error.reason
    );
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    let tried: Vec<_> = error.detail.exchanges.iter().map(|e| (e.carrier, &*e.method, e.status)).collect();
    assert_eq!(tried, [(Carrier::StreamableHttp, "POST", 404), (Carrier::Sse, "GET", 404)]);
    Ok(())
}

#[tokio::test]
async fn a_web_page_and_a_redirect_are_named() -> Result<()> {
    let page = "on POST -> header Content-Type: text/html\n    body <!DOCTYPE html><title>Log in</title>";
    let web = Web::start(page, "http")?;
    let config = web.config("/mcp?key=hunter2-token", RemoteKind::Auto)?;
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert!(
        error.reason.starts_with("answered HTML, not MCP (HTTP 200 OK from http://127.0.0.1:"),
        "{}",
        error.reason
    );
    assert_eq!(error.detail.exchanges[0].content_type.as_deref(), Some("text/html"));
    assert!(error.hint.is_some_and(|hint| hint.contains("login page")));

    let web = Web::start("on POST -> status 302\n    header Location: /login", "http")?;
    let error =
        Connection::open(&web.config("/mcp", RemoteKind::Auto)?, &shared()).await.expect_err("connected");
    assert!(error.reason.starts_with("HTTP 302: ") && error.reason.contains("/login"), "{}", error.reason);
    Ok(())
}

#[tokio::test]
async fn a_login_is_asked_for_with_what_the_server_says() -> Result<()> {
    let rule = r#"on POST -> status 403
    header Content-Type: application/json
    body {"error":"insufficient_scope","error_description":"need repo"}"#;
    let web = Web::start(rule, "http")?;
    let error =
        Connection::open(&web.config("/mcp", RemoteKind::Auto)?, &shared()).await.expect_err("connected");
    assert!(error.reason.contains("HTTP 403") && error.reason.contains("insufficient_scope: need repo"));
    assert!(!error.reason.contains("--header"), "no option of a command line: {}", error.reason);
    assert!(error.hint.is_some_and(|hint| hint.contains("does not accept the configured Authorization")));
    Ok(())
}

#[tokio::test]
async fn nobody_there_and_nobody_who_answers_are_no_reason_for_sse() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    let mut config = remote(&format!("http://127.0.0.1:{port}/mcp"), RemoteKind::Auto)?;
    config.timeouts.startup = Duration::from_millis(300);
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert_eq!((error.stage, &*error.reason), (Stage::Connect, "no answer within 0.3 s"));
    drop(listener);
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert!(error.reason.starts_with("cannot connect to http://127.0.0.1:"), "{}", error.reason);
    assert!(error.detail.exchanges.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_modern_server_over_http_is_found_and_spoken_to_as_such() -> Result<()> {
    let script = r#"set defaults off
set session off
on initialize -> status 400
    header Content-Type: application/json
    body {"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}
on server/discover -> answer {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":1000,"cacheScope":"public"}"#;
    for protocol in [Protocol::Auto, Protocol::Modern] {
        let mut web = Web::start(script, "http")?;
        let mut config = web.config("/mcp", RemoteKind::Auto)?;
        config.protocol = protocol;
        let connection = Connection::open(&config, &shared()).await?;
        assert_eq!(
            (connection.negotiated().era, connection.negotiated().carrier),
            (Era::Modern, Carrier::StreamableHttp)
        );
        connection.close().await;
        let requests = web.peer.requests();
        let discover = requests.iter().find(|request| request.method().as_deref() == Some("server/discover"));
        let header = |name| discover.and_then(|request| request.header(name));
        assert_eq!(header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(header("mcp-method"), Some("server/discover"));
    }
    Ok(())
}

#[tokio::test]
async fn headers_go_with_everything_up_to_the_end_of_the_session() -> Result<()> {
    let mut web = Web::start("set session on", "http")?;
    let connection = Connection::open(&web.config("/mcp", RemoteKind::Auto)?, &shared()).await?;
    let mut requests = Vec::new();
    while !requests.iter().any(|request: &HttpRequest| request.verb == "GET") {
        tokio::time::sleep(Duration::from_millis(5)).await;
        requests = web.peer.requests();
    }
    connection.close().await;
    requests = web.peer.requests();
    let verbs: Vec<_> = requests.iter().map(|request| request.verb.as_str()).collect();
    assert!(["POST", "GET", "DELETE"].iter().all(|verb| verbs.contains(verb)), "{verbs:?}");
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer hunter2-token")));
    Ok(())
}

#[tokio::test]
async fn a_session_that_was_forgotten_is_begun_anew_and_a_missing_stream_is_no_fault() -> Result<()> {
    let script = "set session on\non GET -> status 406\non tools/call/lose\n    forget\n    text lost\non tools/call/x -> text fine";
    let mut web = Web::start(script, "http")?;
    let mut client = Client::open(&web.config("/mcp", RemoteKind::Auto)?, &shared()).await?;
    for tool in ["x", "lose", "x", "x"] {
        client.call(tool, "{}", &mut Alone).await?;
    }
    let seen: Vec<_> = client.detail().exchanges.iter().map(|e| (e.method.clone(), e.status)).collect();
    assert!(seen.contains(&("GET".to_owned(), 406)) && seen.contains(&("POST".to_owned(), 404)), "{seen:?}");
    client.close().await;
    let methods: Vec<_> = web.peer.requests().iter().filter_map(HttpRequest::method).collect();
    assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 2, "{methods:?}");
    Ok(())
}

#[tokio::test]
async fn header_names_are_sent_in_title_case_where_that_is_asked_for() -> Result<()> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let mut config = remote(&format!("http://{}/mcp", listener.local_addr()?), RemoteKind::Auto)?;
    if let Target::Remote(target) = &mut config.target {
        target.http.title_case = true;
    }
    let server = async {
        let (mut connection, _) = listener.accept().await?;
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
            connection.read_buf(&mut bytes).await?;
        }
        connection.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n").await?;
        Ok::<_, anyhow::Error>(String::from_utf8(bytes)?)
    };
    let shared = shared();
    let (head, opened) = tokio::join!(server, Connection::open(&config, &shared));
    assert!(opened.is_err());
    let head = head?;
    let lines: Vec<&str> = head.lines().filter(|line| line.contains("Bearer")).collect();
    assert_eq!(lines, ["Authorization: Bearer hunter2-token"]);
    Ok(())
}
