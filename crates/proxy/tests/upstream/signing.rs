//! Servers that want a login: what is said, that nothing is asked again and again, and that they come by themselves when
//! somebody has signed in.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use http::HeaderValue;
use tokio::sync::watch;
use toolway_proxy::gateway::{
    Alone, Client, ClientError, Connection, RemoteKind, ServerConfig, ServerState, Stage, Target,
    UpstreamEvent,
};
use toolway_testkit::HttpRequest;
use toolway_transport::{Authorizer, BoxFuture, Challenge, Failure, Retry, SignInError, Signer};

use super::support::{Watched, Web, mark, remote, shared};

const HINT: &str = "run: toolway login fake";

/// Signs with a token that somebody else gives.
#[derive(Debug)]
struct Tokens {
    current: watch::Sender<Option<&'static str>>,
    failing: Mutex<Option<SignInError>>,
    /// A refused token is not replaced: so says the authorizer, and so says the server.
    silent: bool,
}

impl Tokens {
    fn new(first: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self { current: watch::Sender::new(first), failing: Mutex::default(), silent: false })
    }

    fn fail(&self, error: SignInError) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn failure(&self) -> Option<SignInError> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Authorizer for Tokens {
    fn ready(&self) -> Option<HeaderValue> {
        let token = (*self.current.borrow())?;
        HeaderValue::try_from(format!("Bearer {token}")).ok()
    }

    fn authorize(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, SignInError>> {
        Box::pin(async move {
            if self.silent {
                std::future::pending::<()>().await;
            }
            self.failure().map_or_else(|| Ok(self.ready()), Err)
        })
    }

    fn challenged(&self, challenge: Challenge) -> BoxFuture<'_, Result<Retry, SignInError>> {
        Box::pin(async move {
            if self.ready() != challenge.refused {
                return Ok(Retry::Again);
            }
            let message = "nobody has signed in".to_owned();
            Err(self.failure().unwrap_or(SignInError { message, hint: None, needs_login: true }))
        })
    }

    fn changed(&self, refused: Option<HeaderValue>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut current = self.current.subscribe();
            while self.ready().is_none() || self.ready() == refused {
                if current.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    fn hint(&self) -> String {
        HINT.to_owned()
    }
}

fn signed(web: &Web, tokens: &Arc<Tokens>) -> Result<ServerConfig> {
    let mut config = web.config("/mcp", RemoteKind::Auto)?;
    let Target::Remote(target) = &mut config.target else { anyhow::bail!("no address") };
    target.http.headers.clear();
    target.http.authorizer = Some(Signer::new(Arc::<Tokens>::clone(tokens)));
    Ok(config)
}

fn call(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","arguments":{{}}}}}}"#)
}

async fn failed(watched: &mut Watched) -> Result<Failure> {
    watched
        .until(|event| if let UpstreamEvent::Failed { failure, .. } = event { Some(failure) } else { None })
        .await
}

fn posts(requests: &[HttpRequest]) -> Vec<(Option<String>, Option<String>)> {
    let posts = requests.iter().filter(|request| request.verb == "POST");
    posts.map(|request| (request.method(), request.header("authorization").map(str::to_owned))).collect()
}

#[tokio::test]
async fn a_server_waits_for_a_login_without_asking_and_comes_when_somebody_has_signed_in() -> Result<()> {
    let mut web = Web::start("on POST 1 -> status 401\non tools/call/x -> text fine", "http")?;
    let tokens = Tokens::new(None);
    let mark = mark();
    let mut watched = Watched::start(signed(&web, &tokens)?, &mark);
    assert_eq!(watched.state("needs_auth").await?, ServerState::NeedsAuth { hint: HINT.to_owned() });
    // As long as it takes to try another server twice more.
    let mut clock = Watched::start(remote("http://127.0.0.1:9/mcp", RemoteKind::StreamableHttp)?, &mark);
    for _ in 0..3 {
        clock.state("failed").await?;
    }
    clock.stop().await?;
    assert_eq!(posts(&web.peer.requests()), [(Some("initialize".to_owned()), None)]);
    watched.send(&call(1))?;
    let failure = failed(&mut watched).await?;
    ensure!(
        failure.message.contains("the server fake is not available: needs_auth: run: toolway login fake")
    );
    tokens.current.send_replace(Some("t1"));
    watched.lists().await?;
    watched.state("connected").await?;
    watched.send(&call(2))?;
    assert!(watched.message().await?.contains("fine"));
    let signed = web.peer.requests().into_iter().skip(1);
    assert!(
        posts(&signed.collect::<Vec<_>>()).iter().all(|(_, token)| token.as_deref() == Some("Bearer t1"))
    );
    watched.stop().await
}

#[tokio::test]
async fn a_server_that_lets_everybody_in_and_lists_nothing_wants_a_login_too() -> Result<()> {
    let web = Web::start("on tools/list 1 -> status 401", "http")?;
    let tokens = Tokens::new(None);
    let mark = mark();
    let mut watched = Watched::start(signed(&web, &tokens)?, &mark);
    assert_eq!(watched.state("needs_auth").await?, ServerState::NeedsAuth { hint: HINT.to_owned() });
    tokens.current.send_replace(Some("t1"));
    watched.lists().await?;
    watched.state("connected").await?;
    watched.stop().await?;

    let web = Web::start("on tools/list 1 -> status 401", "http")?;
    let mut client = Client::open(&signed(&web, &Tokens::new(None))?, &shared()).await?;
    let error = client.lists().await.expect_err("listed");
    let ClientError::Unanswered(failure) = &error else { anyhow::bail!("{error:?}") };
    assert_eq!((failure.needs_auth(), failure.hint().as_deref()), (true, Some(HINT)));
    assert!(
        error.to_string().ends_with(": nobody has signed in. To sign in, run: toolway login fake"),
        "{error}"
    );
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_lost_in_mid_life_costs_the_calls_that_it_should_have_signed() -> Result<()> {
    let web = Web::start("on tools/call/x 1 -> status 401\non tools/call/x -> text fine", "http")?;
    let tokens = Tokens::new(Some("t1"));
    let mark = mark();
    let mut watched = Watched::start(signed(&web, &tokens)?, &mark);
    watched.state("connected").await?;
    watched.send(&call(1))?;
    let failure = failed(&mut watched).await?;
    let text = &failure.message;
    assert!(text.contains("HTTP 401") && text.ends_with(". To sign in, run: toolway login fake"), "{text}");
    assert!(failure.needs_auth());
    watched.send(&call(2))?;
    assert!(watched.message().await?.contains("fine"), "nothing else broke");
    watched.stop().await
}

#[tokio::test]
async fn a_missing_scope_is_named_with_the_command_that_gets_it() -> Result<()> {
    let script = "on tools/call/x -> status 403\n    header WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"a b\"";
    let web = Web::start(script, "http")?;
    let tokens = Tokens::new(Some("t1"));
    let mut client = Client::open(&signed(&web, &tokens)?, &shared()).await?;
    let hint = "run: toolway login fake --scope \"a b\"";
    let message = "the person has to agree".to_owned();
    tokens.fail(SignInError { message, hint: Some(hint.to_owned()), needs_login: true });
    let error = client.call("x", "{}", &mut Alone).await.expect_err("called").to_string();
    assert!(error.contains("scope=\"a b\"") && error.ends_with(&format!(". To sign in, {hint}")), "{error}");
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn what_may_work_again_by_itself_is_no_lack_of_a_login() -> Result<()> {
    let web = Web::start("on POST -> status 401", "http")?;
    let tokens = Tokens::new(None);
    let message = "https://issuer.example cannot be reached".to_owned();
    tokens.fail(SignInError { message, hint: None, needs_login: false });
    let mark = mark();
    let mut watched = Watched::start(signed(&web, &tokens)?, &mark);
    let ServerState::Failed { stage: Stage::Connect, reason, hint: None } = watched.state("failed").await?
    else {
        anyhow::bail!("another state")
    };
    assert!(
        reason.starts_with("cannot sign in to http://127.0.0.1:")
            && reason.ends_with(": https://issuer.example cannot be reached"),
        "{reason}"
    );
    // It is tried again as any server that cannot be reached.
    watched.state("failed").await?;
    watched.stop().await
}

#[tokio::test]
async fn a_start_that_waits_for_a_token_says_so() -> Result<()> {
    let web = Web::start("", "http")?;
    let silent = Tokens { silent: true, ..Arc::into_inner(Tokens::new(None)).expect("one owner") };
    let mut config = signed(&web, &Arc::new(silent))?;
    config.timeouts.startup = Duration::from_millis(300);
    let error = Connection::open(&config, &shared()).await.expect_err("connected");
    assert_eq!(error.reason, "waited 0.3 s for a token, which another process may be getting");
    assert_eq!((error.hint.as_deref(), error.detail.needs_auth), (Some(HINT), false));
    Ok(())
}

#[tokio::test]
async fn an_account_that_may_do_nothing_is_told_from_none() -> Result<()> {
    let web = Web::start("on POST -> status 403", "http")?;
    let error =
        Connection::open(&signed(&web, &Tokens::new(Some("t1")))?, &shared()).await.expect_err("connected");
    assert!(error.detail.needs_auth);
    let hint = "the server refuses whoever asks so (HTTP 403); to sign in with an account that may, run: toolway login fake";
    assert_eq!(error.hint.as_deref(), Some(hint));
    Ok(())
}
