//! `toolway-issuer`: an OAuth issuer and an MCP server that it protects, for clients that are programs of their own. What
//! they are like is told in `toolway_testkit::oauth::IssuerOptions`.
//!
//! `toolway-issuer [OPTIONS.json] [--journal FILE] [--seed CLIENT_ID | --seed-expired CLIENT_ID] [--stay]` writes one
//! line of JSON with its addresses to stdout (and with `--seed` a pair of tokens for a client that is logged in already),
//! and serves until stdin ends, or for ever with `--stay`. The journal is a line of JSON for each request, with labels in
//! the place of secrets.
//!
//! `toolway-issuer --visit URL` is the scripted browser alone: it opens a URL, does there what a user does, and tells as a
//! line of JSON where that ended.
//!
//! A line on stdin is a command, which is answered with a line of JSON: `hold before|after next|each|N` (refreshes),
//! `held`, `release`, `open`, `expire`, `revoke`, `revoke TOKEN`, `forget CLIENT_ID`, `advance SECONDS`, and `visit URL`
//! for the scripted browser.

use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use toolway_testkit::oauth::{Browser, Held, Issuer, IssuerOptions, Stage, Visit, Which};
use toolway_testkit::{Journal, SOON};

fn main() -> Result<()> {
    let (mut options, mut journal, mut seed, mut stay) = (IssuerOptions::default(), None, None, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--journal" => {
                let path = value()?;
                let file = File::options().create(true).append(true).open(&path);
                journal = Some(file.with_context(|| format!("{path} cannot be written"))?);
            }
            "--seed" => seed = Some((value()?, false)),
            "--seed-expired" => seed = Some((value()?, true)),
            "--stay" => stay = true,
            "--visit" => return Ok(tell(&visited(&value()?)?)?),
            flag if flag.starts_with("--") => bail!("no such option: {flag}"),
            path => {
                let text = std::fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))?;
                let value = serde_json::from_str(&text).with_context(|| format!("{path} is no JSON"))?;
                options = IssuerOptions::of(&value)?;
            }
        }
    }
    let issuer = Issuer::start_with(options, Journal::new(journal, None))?;
    let seed = seed.map(|(client, expired)| issuer.seed(&client, expired).told());
    tell(&json!({
        "issuer": issuer.url(), "resource": issuer.resource_url(), "elsewhere": issuer.elsewhere_url(), "seed": seed,
    }))?;
    // The end of whoever started it is its end.
    for line in io::stdin().lock().lines() {
        let answer = obey(&issuer, &line?).unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
        tell(&answer)?;
    }
    if stay {
        loop {
            std::thread::park();
        }
    }
    Ok(())
}

fn visited(url: &str) -> Result<Value> {
    let Visit { ended_at, status, text, redirect, loaded } = Browser::open(url)?;
    Ok(
        json!({ "ended_at": ended_at, "status": status, "text": text, "redirect": redirect, "loaded": loaded }),
    )
}

fn tell(value: &Value) -> io::Result<()> {
    let mut output = io::stdout();
    output.write_all(format!("{value}\n").as_bytes())?;
    output.flush()
}

fn obey(issuer: &Issuer, line: &str) -> Result<Value> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["hold", stage, which] => {
            let stage = match *stage {
                "before" => Stage::BeforeProcessing,
                "after" => Stage::BeforeAnswer,
                other => bail!("a refresh is held before or after, not {other}"),
            };
            let which = match *which {
                "next" => Which::Next,
                "each" => Which::Each,
                number => Which::Nth(number.parse().with_context(|| format!("no number: {number}"))?),
            };
            issuer.hold(stage, which);
        }
        ["held"] => {
            let Held { number, grant, stage, presented } = issuer.held(SOON)?;
            let after = stage == Stage::BeforeAnswer;
            return Ok(
                json!({ "number": number, "grant": grant.name(), "after": after, "presented": presented }),
            );
        }
        ["release"] => issuer.release(),
        ["open"] => issuer.open_gates(),
        ["expire"] => issuer.expire_access_tokens(),
        ["revoke"] => issuer.revoke_everything(),
        ["revoke", token] => return Ok(json!({ "done": issuer.revoke_family(token) })),
        ["forget", client] => return Ok(json!({ "done": issuer.forget_client(client) })),
        ["advance", seconds] => issuer.advance(Duration::from_secs(seconds.parse()?)),
        ["visit", url] => return visited(url),
        _ => bail!("no such command: {line}"),
    }
    Ok(json!({ "done": true }))
}
