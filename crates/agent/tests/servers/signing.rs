//! Servers that want a login: found out, signed in to once, renewed once, and never in the way of a run.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_agent::{BeginAuth, LocalOptions, Machine, McpAuth, McpServer, McpServers, Opener, SignInState};
use toolway_testkit::oauth::{Browser, Grant, Issuer, IssuerOptions, Parameter, Registration, StaticClient};
use url::Url;

use super::support::{Bench, DEADLINE, call, generations, report, run, text, tool};

const SECRET: &str = "s3cr3t-of-the-client";

/// A person who says yes.
struct SaysYes;

impl Opener for SaysYes {
    fn show(&self, url: &Url) {
        let url = url.to_string();
        std::thread::spawn(move || Browser::open(&url));
    }
}

async fn visited(browser: Browser, url: &Url) -> Result<String> {
    let url = url.to_string();
    let visit = tokio::task::spawn_blocking(move || browser.visit(&url)).await??;
    visit.redirect.context("the browser was sent nowhere")
}

fn server(issuer: &Issuer) -> McpServer {
    McpServer::url(issuer.resource_url())
}

#[tokio::test]
async fn statement_a23_a_registered_client_asks_with_its_scopes_and_takes_no_other_answer() -> Result<()> {
    let clients = vec![StaticClient::public("our-client")];
    let issuer = Issuer::start(IssuerOptions {
        clients,
        registration: Registration::Absent,
        ..IssuerOptions::default()
    })?;
    let bench = Bench::new()?;
    let auth = json!({"CLIENT_ID": "our-client", "scopes": ["mcp", "admin"]});
    let options = bench
        .options(McpServers::new().with("w", server(&issuer).with("auth", auth)), LocalOptions::default());
    let auth = McpAuth::new(&options);
    assert_eq!(auth.status("w").await?, None);
    let elsewhere = Url::parse("http://127.0.0.1:9/callback")?;
    let begin = || BeginAuth { redirect: Some(elsewhere.clone()), ..BeginAuth::default() };
    let request = auth.begin("w", begin()).await?;
    let parameter = |name: &str| {
        request.url.query_pairs().find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
    };
    assert_eq!(parameter("client_id").as_deref(), Some("our-client"));
    assert_eq!(parameter("scope").as_deref(), Some("mcp admin"));
    assert_eq!(parameter("resource").as_deref(), Some(issuer.resource_url()));
    assert_eq!(parameter("code_challenge_method").as_deref(), Some("S256"));
    let state = parameter("state").context("no state")?;
    let other = auth.begin("w", begin()).await?;
    ensure!(state.len() >= 20 && !other.url.as_str().contains(&state), "{state}");

    let answer = visited(Browser::on_another_machine(), &other.url).await?;
    for (wrong, why) in [
        (format!("{answer}&state=x").replace("state=", "other="), "state"),
        (answer.replace("iss=", "iss=x"), "was asked"),
    ] {
        let error = auth.complete("w", &wrong).await.unwrap_err();
        assert_eq!(error.code(), "unauthenticated");
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(issuer.journal().grants(Grant::AuthorizationCode).len(), 0);
    let signed = auth.complete("w", &answer).await?;
    assert_eq!((signed.client_id.as_str(), signed.scopes.join(" ").as_str()), ("our-client", "mcp admin"));
    assert!(auth.complete("w", &answer).await.is_err(), "an answer is good once");

    let agent = generations(&options)?;
    let generation = run(&agent).await?;
    tool(&generation, "w__admin").await?;
    agent.close().await;
    assert_eq!(issuer.journal().authorizations(), 1);
    let out = auth.revoke("w").await?;
    assert_eq!((out.forgotten, out.not_told.len()), (1, 0));
    assert_eq!(auth.status("w").await?, None);
    Ok(())
}

#[tokio::test]
async fn statement_a23_an_issuer_that_answers_in_anothers_name_is_refused() -> Result<()> {
    let options = IssuerOptions { iss: Parameter::Wrong, ..IssuerOptions::default() };
    let issuer = Issuer::start(options)?;
    let bench = Bench::new()?;
    let options = bench.options(McpServers::new().with("w", server(&issuer)), LocalOptions::default());
    let auth = McpAuth::new(&options);
    let request = auth.begin("w", BeginAuth::default()).await?;
    let browser = visited(Browser::default(), &request.url);
    let (_, signed) = tokio::join!(browser, auth.wait("w"));
    let error = signed.unwrap_err();
    assert!(error.to_string().contains("was asked"), "{error}");
    assert_eq!(issuer.journal().grants(Grant::AuthorizationCode).len(), 0);
    Ok(())
}

#[tokio::test]
async fn statement_a24_a_clients_secret_goes_to_the_token_endpoint_and_nowhere_else() -> Result<()> {
    let clients = vec![StaticClient::confidential("our-client", SECRET)];
    let issuer = Issuer::start(IssuerOptions { clients, ..IssuerOptions::default() })?;
    let mut bench = Bench::new()?;
    bench.variable("OUR_SECRET", SECRET);
    let auth = json!({"CLIENT_ID": "our-client", "CLIENT_SECRET": "${env:OUR_SECRET}"});
    let file = bench
        .servers("home/.cursor/mcp.json", &[("w", json!({"url": issuer.resource_url(), "auth": auth}))])?;
    ensure!(file.exists());
    let local =
        LocalOptions { setting_sources: vec![toolway_agent::SettingSource::User], ..LocalOptions::default() };
    let options = bench.options(McpServers::new(), local);
    let auth = McpAuth::new(&options);
    let request = auth.begin("w", BeginAuth::default()).await?;
    assert!(!request.url.as_str().contains(SECRET));
    let (seen, signed) = tokio::join!(visited(Browser::default(), &request.url), auth.wait("w"));
    seen?;
    let mut told = format!("{auth:?} {:?} {options:?}", signed?);
    let agent = generations(&options)?;
    let generation = run(&agent).await?;
    tool(&generation, "w__echo").await?;
    told.extend([format!("{:?} {generation:?}", generation.reports())]);
    agent.close().await;
    let exchange = issuer.journal();
    let code = exchange.grants(Grant::AuthorizationCode);
    ensure!(
        code.len() == 1 && code[0].client_auth.is_some_and(|auth| auth.name() != "none"),
        "{}",
        exchange.told()
    );
    issuer.fault(toolway_testkit::oauth::FaultRule::always(
        toolway_testkit::oauth::Endpoint::Token,
        toolway_testkit::oauth::Fault::status(401, "invalid_client"),
    ));
    let request = auth.begin("w", BeginAuth::default()).await?;
    let (seen, refused) = tokio::join!(visited(Browser::default(), &request.url), auth.wait("w"));
    seen?;
    told.extend([format!("{:?}", refused.unwrap_err())]);
    for secret in issuer.secrets().iter().map(String::as_str).chain([SECRET]) {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
    Ok(())
}

#[tokio::test]
async fn statement_a25_without_a_person_the_run_goes_on_and_the_server_waits_for_a_login() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let bench = Bench::new()?;
    let servers = McpServers::new().with("w", server(&issuer)).with("ok", bench.scripted("")?);
    let options = bench.options(servers, LocalOptions::default());
    let agent = generations(&options)?;
    let generation = run(&agent).await?;
    tool(&generation, "ok__echo").await?;
    let waits = report(&generation, "w", "needs_auth").await?;
    let hint = waits.reason.clone().unwrap_or_default() + &format!("{waits:?}");
    assert!(hint.contains("toolway login w"), "{hint}");
    assert_eq!(
        text(&call(&generation, "ok__echo", json!({})).await?),
        text(&call(&generation, "ok__echo", json!({})).await?)
    );
    assert_eq!((issuer.journal().authorizations(), issuer.journal().refreshes().len()), (0, 0));

    // Somebody signs in, as a client that registers itself; the agent that runs gets the tools.
    let auth = McpAuth::new(&options);
    let request = auth.begin("w", BeginAuth::default()).await?;
    let (seen, signed) = tokio::join!(visited(Browser::default(), &request.url), auth.wait("w"));
    seen?;
    assert_eq!(
        (signed?.state, auth.status("w").await?.map(|one| one.client)),
        (SignInState::SignedIn, Some("registered"))
    );
    report(&generation, "w", "connected").await?;
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a25_a_person_who_is_there_is_shown_the_address_once() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let bench = Bench::new()?;
    let mut options = bench.options(McpServers::new().with("w", server(&issuer)), LocalOptions::default());
    options.machine = Machine::clone(&options.machine).with_opener(Arc::new(SaysYes));
    let agent = generations(&options)?;
    let generation = run(&agent).await?;
    tool(&generation, "w__whoami").await?;
    let (one, two) = tokio::join!(
        call(&generation, "w__whoami", json!({})),
        call(&generation, "w__echo", json!({"text": "x"})),
    );
    assert!(text(&one?).contains("AT1"));
    two?;
    agent.close().await;
    assert_eq!(issuer.journal().authorizations(), 1);
    Ok(())
}

#[tokio::test]
async fn statement_a26_two_calls_with_an_expired_token_refresh_it_once() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let bench = Bench::new()?;
    let options = bench.options(McpServers::new().with("w", server(&issuer)), LocalOptions::default());
    let auth = McpAuth::new(&options);
    let request = auth.begin("w", BeginAuth::default()).await?;
    let (seen, signed) = tokio::join!(visited(Browser::default(), &request.url), auth.wait("w"));
    seen?;
    signed?;
    let agent = generations(&options)?;
    let generation = run(&agent).await?;
    tool(&generation, "w__whoami").await?;
    issuer.expire_access_tokens();
    let (one, two) =
        tokio::join!(call(&generation, "w__whoami", json!({})), call(&generation, "w__whoami", json!({})),);
    assert!(text(&one?).contains("AT2") && text(&two?).contains("AT2"));
    assert_eq!((issuer.journal().refreshes().len(), issuer.journal().reused()), (1, 0));
    agent.close().await;

    // Another process has nothing but the files.
    let other = bench.options(McpServers::new().with("w", server(&issuer)), LocalOptions::default());
    let agent = generations(&other)?;
    let generation = run(&agent).await?;
    tool(&generation, "w__whoami").await?;
    assert!(text(&call(&generation, "w__whoami", json!({})).await?).contains("AT2"));
    agent.close().await;
    assert_eq!((issuer.journal().refreshes().len(), issuer.journal().authorizations()), (1, 1));
    #[cfg(unix)]
    for file in std::fs::read_dir(bench.home().join(".local/state/toolway/auth"))? {
        use std::os::unix::fs::PermissionsExt as _;
        let file = file?;
        assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600, "{:?}", file.path());
        let bytes = String::from_utf8_lossy(&std::fs::read(file.path())?).into_owned();
        for secret in issuer.secrets() {
            assert!(!bytes.contains(&secret), "{:?}", file.path());
        }
    }
    Ok(())
}
