//! What the issuer refuses, and how it sends a browser back.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use serde_json::json;
use toolway_testkit::oauth::{
    Approval, Ask, Browser, Challenge, ClientAuth, Endpoint, Issuer, IssuerOptions, Parameter, Registration,
    Site, StaticClient,
};

use crate::support::{Login, refresh, rpc, tool};

fn with_client(options: IssuerOptions) -> Result<Issuer> {
    Issuer::start(IssuerOptions { clients: vec![StaticClient::public("client")], ..options })
}

#[test]
fn a_request_for_a_code_is_refused_for_each_thing_that_is_wrong_with_it() -> Result<()> {
    let issuer = with_client(IssuerOptions::default())?;
    let cases = [
        ("client_id", "nobody", "unauthorized_client"),
        ("redirect_uri", "http://127.0.0.1:1/elsewhere", "invalid_redirect_uri"),
        ("redirect_uri", "http://127.0.0.2:1/callback", "invalid_redirect_uri"),
        ("redirect_uri", "https://127.0.0.1:1/callback", "invalid_redirect_uri"),
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("state", "", "invalid_request"),
        ("resource", "", "invalid_target"),
        ("resource", "http://127.0.0.1:1/mcp", "invalid_target"),
        ("scope", "mcp everything", "invalid_scope"),
    ];
    for (name, value, code) in cases {
        let login = Login::new(&issuer, "client")?.with(name, value);
        let visit = login.visit(&Browser::on_another_machine())?;
        let journal = issuer.journal();
        let last = journal.exchanges.last().context("nothing came")?;
        ensure!(last.error() == Some(code), "{name}={value}: {:?}", last.outcome);
        // With a client or redirect that is wrong, the browser is not sent anywhere.
        let is_page = code == "unauthorized_client" || code == "invalid_redirect_uri";
        ensure!(visit.redirect.is_none() == is_page, "{name}={value}: {visit:?}");
        ensure!(visit.redirect.is_none_or(|to| to.contains(&format!("error={code}"))));
    }
    let issuer = with_client(IssuerOptions { exact_ports: true, ..IssuerOptions::default() })?;
    Login::new(&issuer, "client")?.visit(&Browser::default())?;
    ensure!(issuer.journal().refused("invalid_redirect_uri").len() == 1);
    Ok(())
}

#[test]
fn a_code_is_good_once_for_its_client_redirect_verifier_and_resource() -> Result<()> {
    let issuer = with_client(IssuerOptions::default())?;
    issuer.seed("other", true);
    let cases = [
        ("code_verifier", "another-verifier-that-is-long-enough-for-all", "invalid_grant"),
        ("client_id", "other", "invalid_grant"),
        ("redirect_uri", "http://127.0.0.1:1/callback", "invalid_grant"),
        ("resource", "", "invalid_target"),
        ("code", "nonsense", "invalid_grant"),
        ("grant_type", "password", "unsupported_grant_type"),
    ];
    for (name, value, code) in cases {
        let login = Login::new(&issuer, "client")?;
        login.visit(&Browser::default())?;
        let mut parameters = login.redemption()?;
        for (known, kept) in &mut parameters {
            if known == name {
                value.clone_into(kept);
            }
        }
        let pairs: Vec<_> = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let reply = Ask::form(&issuer.endpoint("token"), &pairs).send()?;
        ensure!(reply.status == 400 && reply.json()?["error"] == code, "{name}={value}: {}", reply.text());
    }
    let login = Login::new(&issuer, "client")?;
    login.visit(&Browser::default())?;
    let pair = login.redeem()?;
    let token = pair["access_token"].as_str().context("no token")?;
    ensure!(tool(&issuer, token, "echo")?.status == 200);
    ensure!(login.redeem().is_err() && tool(&issuer, token, "echo")?.status == 401, "a code was stolen");
    Ok(())
}

#[test]
fn the_redirect_says_what_the_options_want() -> Result<()> {
    let wrong = IssuerOptions { iss: Parameter::Wrong, state: Parameter::Wrong, ..IssuerOptions::default() };
    let issuer = with_client(wrong)?;
    let login = Login::new(&issuer, "client")?;
    login.visit(&Browser::default())?;
    ensure!(login.received("iss")? == issuer.elsewhere_url() && login.received("state")? == "a statex");
    issuer.change(|options| {
        options.iss = Parameter::Absent;
        options.state = Parameter::Absent;
    });
    let login = Login::new(&issuer, "client")?;
    login.visit(&Browser::default())?;
    ensure!(
        login.received("code").is_ok() && login.received("iss").is_err() && login.received("state").is_err()
    );
    issuer.change(|options| {
        options.state = Parameter::Right;
        options.approval = Approval::Deny("access_denied".to_owned());
    });
    let login = Login::new(&issuer, "client")?;
    login.visit(&Browser::default())?;
    ensure!(login.received("error")? == "access_denied" && login.received("state")? == "a state");
    issuer.change(|options| options.approval = Approval::Elsewhere("${elsewhere}/trap".to_owned()));
    let visit = Login::new(&issuer, "client")?.visit(&Browser::default())?;
    ensure!(visit.redirect.is_none() && visit.ended_at.starts_with(issuer.elsewhere_url()), "{visit:?}");
    let journal = issuer.journal();
    let trap = journal.at(Endpoint::Elsewhere)[0];
    ensure!(trap.site == Site::Elsewhere && trap.parameter("code").is_some_and(|code| code.starts_with('C')));
    Ok(())
}

#[test]
fn a_form_is_filled_posted_with_its_cookie_and_leads_to_the_client() -> Result<()> {
    let issuer = with_client(IssuerOptions { approval: Approval::Form, ..IssuerOptions::default() })?;
    let login = Login::new(&issuer, "client")?;
    let page = login.visit(&Browser::that_only_looks())?;
    ensure!(page.status == 200 && page.text.contains("<form") && page.redirect.is_none(), "{page:?}");
    let copied = login.visit(&Browser::on_another_machine())?;
    ensure!(copied.redirect.is_some_and(|url| url.starts_with(&login.redirect)) && !login.was_redirected());
    let login = Login::new(&issuer, "client")?;
    let visit = login.visit(&Browser::default())?;
    ensure!(visit.text == "Thanks" && visit.loaded.len() == 3, "{visit:?}");
    ensure!(login.redeem()?["scope"] == "mcp");
    let form =
        Ask::form(&issuer.endpoint("consent"), &[("step", "sign & in"), ("login", "x"), ("password", "y")]);
    ensure!(form.send()?.status == 400, "the cookie is missing");
    Ok(())
}

#[test]
fn confidential_clients_authenticate_themselves_in_the_way_that_is_theirs() -> Result<()> {
    let (id, secret) = ("a client", "s:%+/&= é");
    let mut posts = StaticClient::confidential("posts", secret);
    posts.auth = Some(ClientAuth::Post);
    let clients = vec![StaticClient::confidential(id, secret), posts, StaticClient::public("public")];
    let issuer = Issuer::start(IssuerOptions { clients, ..IssuerOptions::default() })?;
    let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = |id: &str, secret: &str| {
        let pair = format!("{}:{}", encoded(id), encoded(secret));
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
    };
    let resource = issuer.resource_url();
    let form = |more: &[(&str, &str)]| {
        let all = [&[("grant_type", "client_credentials"), ("resource", resource)], more].concat();
        Ask::form(&issuer.endpoint("token"), &all)
    };
    let good = form(&[("scope", "mcp admin")]).header("Authorization", &basic(id, secret)).send()?;
    ensure!(good.status == 200 && good.json()?.get("refresh_token").is_none(), "{}", good.text());
    let token = good.json()?["access_token"].as_str().context("no token")?.to_owned();
    ensure!(tool(&issuer, &token, "admin")?.status == 200);
    ensure!(form(&[("client_id", "posts"), ("client_secret", secret)]).send()?.status == 200);
    let refused = [
        form(&[]).header("Authorization", &basic(id, "wrong")),
        form(&[]).header("Authorization", &basic("posts", secret)),
        form(&[("client_id", id)]),
        form(&[]),
    ];
    for ask in refused {
        let reply = ask.send()?;
        ensure!(reply.status == 401 && reply.json()?["error"] == "invalid_client", "{}", reply.text());
    }
    let twice = form(&[("client_secret", secret)]).header("Authorization", &basic(id, secret)).send()?;
    ensure!(twice.json()?["error"] == "invalid_request");
    ensure!(form(&[("client_id", "public")]).send()?.json()?["error"] == "unauthorized_client");
    let journal = issuer.journal();
    let ways: Vec<_> = journal.at(Endpoint::Token).iter().map(|exchange| exchange.client_auth).collect();
    ensure!(
        ways[..2] == [Some(ClientAuth::Basic), Some(ClientAuth::Post)]
            && ways.last() == Some(&Some(ClientAuth::None))
    );
    ensure!(!format!("{journal:?}").contains(secret));
    Ok(())
}

#[test]
fn registration_gives_refuses_or_is_not_there() -> Result<()> {
    let wanted = |auth: &str, redirect: &str| json!({ "client_name": "x", "redirect_uris": [redirect], "token_endpoint_auth_method": auth });
    let at = |registration: Registration, body: &serde_json::Value| -> Result<(u16, serde_json::Value)> {
        let issuer = Issuer::start(IssuerOptions { registration, ..IssuerOptions::default() })?;
        let reply = Ask::json(&issuer.endpoint("register"), body).send()?;
        Ok((reply.status, reply.json().unwrap_or_default()))
    };
    let good = wanted("none", "http://127.0.0.1/cb");
    let (status, public) = at(Registration::Public, &good)?;
    ensure!(
        status == 201 && public.get("client_secret").is_none() && public["client_name"] == "x",
        "{public}"
    );
    let (_, secret) = at(Registration::Public, &wanted("client_secret_post", "https://x.example/cb"))?;
    ensure!(secret["client_secret"].is_string() && secret["client_secret_expires_at"] == 0, "{secret}");
    let (_, forced) = at(Registration::Confidential, &good)?;
    ensure!(
        forced["client_secret"].is_string() && forced["token_endpoint_auth_method"] == "client_secret_basic"
    );
    for redirect in ["http://x.example/cb", "app:cb", "https://x.example/#f", "no url"] {
        let (status, refused) = at(Registration::Public, &wanted("none", redirect))?;
        ensure!(status == 400 && refused["error"] == "invalid_redirect_uri", "{redirect}: {refused}");
    }
    let (status, refused) = at(Registration::Refuses("access_denied".to_owned()), &good)?;
    ensure!(status == 400 && refused["error"] == "access_denied");
    ensure!(at(Registration::Absent, &good)?.0 == 404);
    Ok(())
}

#[test]
fn a_client_id_that_is_a_url_is_fetched_and_must_say_the_same() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions { client_documents: true, ..IssuerOptions::default() })?;
    let id = issuer.host_client_document(&["http://127.0.0.1/callback"]);
    let login = Login::new(&issuer, &id)?;
    login.visit(&Browser::default())?;
    ensure!(login.redeem()?["access_token"].is_string());
    let fetched = issuer.journal();
    ensure!(fetched.at(Endpoint::Elsewhere).len() == 1, "{}", fetched.told());
    let lie = issuer.host_document(
        "/lie.json",
        json!({ "client_id": id, "client_name": "x", "redirect_uris": ["http://127.0.0.1/callback"] }),
    );
    Login::new(&issuer, &lie)?.visit(&Browser::default())?;
    ensure!(issuer.journal().refused("unauthorized_client").len() == 1);
    issuer.change(|options| options.client_documents = false);
    let other = issuer.host_client_document(&["http://127.0.0.1/callback"]);
    Login::new(&issuer, &other)?.visit(&Browser::default())?;
    ensure!(issuer.journal().refused("unauthorized_client").len() == 2);
    Ok(())
}

#[test]
fn tokens_are_given_up_each_alone_or_with_their_family() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let seed = issuer.seed("client", false);
    issuer.seed("other", false);
    let give_up = |client: &str, token: &str| {
        Ask::form(&issuer.endpoint("revoke"), &[("token", token), ("client_id", client)]).send()
    };
    ensure!(
        give_up("other", &seed.refresh_token)?.status == 200 && give_up("client", "nonsense")?.status == 200
    );
    ensure!(tool(&issuer, &seed.access_token, "echo")?.status == 200);
    ensure!(give_up("client", &seed.access_token)?.status == 200);
    ensure!(tool(&issuer, &seed.access_token, "echo")?.status == 401);
    let pair = refresh(&issuer, "client", &seed.refresh_token)?.json()?;
    let (access, newest) = (&pair["access_token"], &pair["refresh_token"]);
    ensure!(give_up("client", newest.as_str().context("no token")?)?.status == 200);
    ensure!(tool(&issuer, access.as_str().context("no token")?, "echo")?.status == 401);
    ensure!(give_up("nobody", "x")?.status == 401 && issuer.forget_client("client"));
    ensure!(refresh(&issuer, "client", &seed.refresh_token)?.json()?["error"] == "invalid_client");
    Ok(())
}

#[test]
fn the_resource_says_why_it_refuses_and_forgets_sessions() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let url = issuer.resource_url().to_owned();
    let seed = issuer.seed("client", false);
    let challenge = |token: Option<&str>| -> Result<String> {
        let reply = rpc(&url, token, "ping", &json!({}))?;
        ensure!(reply.status == 401, "{reply:?}");
        Ok(reply.header("www-authenticate").unwrap_or_default().to_owned())
    };
    ensure!(
        !challenge(None)?.contains("error=") && challenge(Some("x"))?.contains("error=\"invalid_token\"")
    );
    for (kind, has) in [(Challenge::NoScope, "resource_metadata="), (Challenge::NoMetadata, "scope=\"mcp\"")]
    {
        issuer.change(|options| options.challenge = kind);
        let told = challenge(None)?;
        ensure!(told.starts_with("Bearer ") && told.contains(has) && !told.contains(','), "{told}");
    }
    issuer.change(|options| options.challenge = Challenge::Raw("Basic realm=\"${elsewhere}\"".to_owned()));
    ensure!(challenge(None)? == format!("Basic realm=\"{}\"", issuer.elsewhere_url()));
    issuer.change(|options| options.challenge = Challenge::Absent);
    ensure!(challenge(None)?.is_empty());

    let bearer = format!("Bearer {}", seed.access_token);
    let started =
        rpc(&url, Some(&seed.access_token), "initialize", &json!({ "protocolVersion": "2025-06-18" }))?;
    let session = started.header("mcp-session-id").context("no session")?;
    ensure!(started.json()?["result"]["protocolVersion"] == "2025-06-18");
    let plain = |method: &str| Ask::get(&url).method(method).header("Authorization", &bearer);
    ensure!(plain("GET").send()?.status == 405);
    let ping = Ask::json(&url, &json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }));
    let ping = ping.header("Authorization", &bearer).header("Mcp-Session-Id", session);
    ensure!(ping.send()?.json()? == json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    ensure!(
        plain("DELETE").header("Mcp-Session-Id", session).send()?.status == 200 && ping.send()?.status == 404
    );
    let told = Ask::json(&url, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    ensure!(told.header("Authorization", &bearer).send()?.status == 202);
    issuer.expire_access_tokens();
    issuer.change(|options| options.challenge = Challenge::Full);
    ensure!(challenge(Some(&seed.access_token))?.contains("expired"));
    Ok(())
}
