//! Signing in: tokens, codes and secrets of clients are in the store alone.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_testkit::oauth::{Browser, Issuer, IssuerOptions, StaticClient};

use super::finder::Sentinel;
use super::place::Place;

#[test]
fn tokens_codes_and_clients_are_in_the_store_alone() -> Result<()> {
    let mut place = Place::new("oauth")?;
    let secret = place.secret(Sentinel::plain("a client's secret"));
    let mut options = IssuerOptions::default();
    options.clients.push(StaticClient::confidential("beforehand", &secret));
    let issuer = Issuer::start(options)?;
    let file = json!({"mcpServers": {
        "dynamic": {"url": issuer.resource_url()},
        "fixed": {
            "url": issuer.resource_url(),
            "auth": {"CLIENT_ID": "beforehand", "CLIENT_SECRET": secret, "account": "other"},
        },
    }});
    place.input("home/.config/toolway/mcp.json", &file.to_string())?;
    for name in ["dynamic", "fixed"] {
        let mut login = place
            .command(["login", name, "--no-browser", "-vv"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stderr = BufReader::new(login.stderr.take().context("no stderr")?);
        let (mut said, mut visited) = (String::new(), false);
        loop {
            let mut line = String::new();
            if stderr.read_line(&mut line)? == 0 {
                break;
            }
            let text = line.trim();
            if !visited && text.starts_with("http") && text.contains("code_challenge") {
                // The address is for a person's browser: what is in it is theirs.
                Browser::open(text)?;
                visited = true;
                continue;
            }
            said.push_str(&line);
        }
        let mut out = String::new();
        login.stdout.take().context("no stdout")?.read_to_string(&mut out)?;
        ensure!(login.wait()?.success(), "{out}{said}");
        place.note(format!("what login {name} said"), out + &said);
    }
    for round in 0..2 {
        for words in [
            &["list", "-vv"][..],
            &["call", "-vv", "fixed", "echo", "text=x"],
            &["call", "-vv", "dynamic", "echo", "text=x"],
            &["doctor", "-vv", "--json"],
            &["auth", "status", "--json"],
            &["config", "show", "--json"],
        ] {
            place.run(words, "")?;
        }
        if round == 0 {
            issuer.expire_access_tokens();
        }
    }
    place.run(&["logout", "dynamic", "-vv"], "")?;
    issuer.revoke_everything();
    for words in [&["list", "-vv"][..], &["call", "-vv", "fixed", "echo", "text=x"], &["doctor"]] {
        place.run(words, "")?;
    }
    let secrets = issuer.secrets();
    ensure!(secrets.len() >= 6, "only {} secrets were given", secrets.len());
    place.learn("what the issuer gave", &secrets);
    place.search(15)
}
