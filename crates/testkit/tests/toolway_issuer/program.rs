//! The issuer as a program of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_testkit::oauth::Ask;

use crate::support::rpc;

struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(arguments: &[&str]) -> Result<(Self, Value)> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolway-issuer"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut program = Self { child, output };
        let told = program.line()?;
        Ok((program, told))
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))
    }

    fn obey(&mut self, command: &str) -> Result<Value> {
        let input = self.child.stdin.as_mut().context("no stdin")?;
        input.write_all(format!("{command}\n").as_bytes())?;
        self.line()
    }

    fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        ensure!(self.child.wait()?.success());
        Ok(())
    }
}

#[test]
fn it_tells_its_addresses_keeps_a_journal_obeys_and_ends_with_its_starter() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (options, journal) = (folder.path().join("options.json"), folder.path().join("journal"));
    let told = json!({
        "path": "/tenant", "access_token_life": 0.5, "registration": { "refuses": "invalid_client_metadata" },
        "metadata": { "openid_appended": true }, "clients": [{ "id": "c", "secret": "s", "auth": "client_secret_post" }],
        "faults": [
            { "at": "token", "fault": { "status": { "status": 429, "retry_after": "7" } }, "times": 1 },
            { "at": "openid-metadata", "fault": { "edit": { "issuer": "${elsewhere}/x" } } },
            { "at": "revocation", "skip": 1, "fault": "mute" },
        ],
    });
    std::fs::write(&options, told.to_string())?;
    let arguments =
        [options.to_str(), Some("--journal"), journal.to_str(), Some("--seed-expired"), Some("me")];
    let arguments: Option<Vec<&str>> = arguments.into_iter().collect();
    let (mut program, addresses) = Program::start(&arguments.context("a path is no text")?)?;
    let place = |name: &str| addresses[name].as_str().unwrap_or_default().to_owned();
    let found = Ask::get(&format!("{}/.well-known/openid-configuration", place("issuer"))).send()?.json()?;
    ensure!(found["issuer"] == format!("{}/x", place("elsewhere")), "{found}");
    let token = addresses["seed"]["access_token"].as_str().context("no seed")?;
    ensure!(rpc(&place("resource"), Some(token), "ping", &json!({}))?.status == 401);

    let refresh = addresses["seed"]["refresh_token"].as_str().context("no seed")?;
    let parameters = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh),
        ("client_id", "me"),
        ("resource", &*place("resource")),
    ];
    let ask = Ask::form(&format!("{}/token", place("issuer")), &parameters);
    let refused = ask.send()?;
    ensure!(refused.status == 429 && refused.header("retry-after") == Some("7"));
    ensure!(program.obey("hold before next")?["done"] == true);
    let held = ask.begin()?;
    ensure!(
        program.obey("held")?
            == json!({ "number": 2, "grant": "refresh_token", "after": false, "presented": "RT1" })
    );
    ensure!(program.obey("release")?["done"] == true);
    ensure!(toolway_testkit::oauth::Reply::read(&held)?.status == 200);
    ensure!(program.obey("revoke RT2")?["done"] == true && program.obey("revoke RT9")?["done"] == false);
    ensure!(program.obey("fly away")?["error"].is_string());
    ensure!(program.obey(&format!("visit {}/nothing", place("elsewhere")))?["status"] == 404);

    let kept = std::fs::read_to_string(&journal)?;
    let lines: Vec<Value> = kept.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let last = lines.iter().rfind(|line| line["grant"] == "refresh_token").context("no refresh")?;
    ensure!(
        last["presented"] == "RT1" && last["issued"] == json!(["AT2", "RT2"]) && last["status"] == 200,
        "{last}"
    );
    ensure!(!kept.contains(token) && !kept.contains(refresh), "{kept}");
    program.end()
}

#[test]
fn options_that_are_none_are_told() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = folder.path().join("options.json");
    std::fs::write(&options, r#"{ "registrations": "absent" }"#)?;
    let output =
        Command::new(env!("CARGO_BIN_EXE_toolway-issuer")).arg(&options).stdin(Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && told.contains("registrations"), "{told}");
    Ok(())
}
