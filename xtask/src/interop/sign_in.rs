//! Signing in to a real authorization server, oidc-provider, where there is no network but the loopback: a user with a
//! scripted browser, who is asked once for more and signs out again, and whose processes refresh a token that is good
//! once; a machine with credentials of its own; a client whose id is the address of its metadata. The tools are those of a small server that asks the authorization server
//! about each token.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::interop::{DEADLINE, Stage, alone};
use crate::peers::Peers;
use crate::process::Step;

/// Processes that find the token expired at the same time.
const TOGETHER: usize = 5;
const PROVIDER: &str = "oidc-provider/lib/index.js";

/// Whether the authorization server and a node that runs it are there.
pub(super) fn is_there(peers: &Peers) -> bool {
    peers.node24.is_some() && peers.oidc.as_ref().is_some_and(|oidc| oidc.file(PROVIDER).is_file())
}

pub(super) fn run(stage: &Stage, name: &str) -> Result<()> {
    let folder = stage.folder(name)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let kit = ["build", "--quiet", "--package", "toolway-testkit", "--bins"];
    Step::new(cargo).args(&kit).dir(&stage.root).output(DEADLINE * 8)?;
    let node = stage.peers.node24.as_ref().context("no Node.js 24")?.node.clone();
    let file = prepare(stage, &folder, &node)?;
    let driver = alone::step(node)?.arg(stage.interop("clients/sign_in.mjs")).arg(file).dir(&folder);
    let came: Value = serde_json::from_str(&driver.output(DEADLINE)?).context("no JSON came of the user")?;
    let problems = [steps(&came), journal(&came), secrets(&came, &folder)?].concat();
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}\n{}", problems.join("\n"), came["journal"])
}

/// What the user does, as a file for the driver.
fn prepare(stage: &Stage, folder: &Path, node: &Path) -> Result<std::path::PathBuf> {
    let (home, work) = (folder.join("home"), folder.join("work"));
    for folder in [&home.join(".cursor"), &work] {
        fs::create_dir_all(folder)?;
    }
    let provider = stage.peers.oidc.as_ref().context("oidc-provider is not installed")?.file(PROVIDER);
    let journal = folder.join("journal.jsonl");
    let call = |name: &str, server: &str, tool: &str| json!({ "name": name, "run": ["call", server, tool] });
    let play = json!({
        "server": [node, stage.interop("servers/protected_tools.mjs"), provider, journal],
        "browser": [stage.program("toolway-issuer"), "--visit"],
        "toolway": stage.front,
        "config": home.join(".cursor/mcp.json"),
        "journal": journal,
        "work": work,
        "env": { "HOME": home, "PATH": std::env::var("PATH").unwrap_or_default() },
        "steps": [
            call("stranger", "person", "whoami"),
            { "name": "login", "login": ["login", "person", "--no-browser"] },
            call("known", "person", "whoami"),
            { "name": "expired", "expire": true },
            { "name": "refreshed", "together": TOGETHER, "run": ["call", "person", "whoami"] },
            call("too narrow", "person", "admin"),
            { "name": "step up", "login": ["login", "person", "--no-browser"] },
            call("wide", "person", "admin"),
            { "name": "status", "run": ["auth", "status"] },
            { "name": "token", "run": ["auth", "token", "person"] },
            { "name": "good", "show": "token" },
            { "name": "logout", "run": ["logout", "person"] },
            { "name": "revoked", "show": "token" },
            call("gone", "person", "whoami"),
            call("machine", "machine", "whoami"),
            { "name": "document login", "login": ["login", "document", "--no-browser"] },
            call("document", "document", "whoami"),
        ],
    });
    let file = folder.join("play.json");
    fs::write(&file, play.to_string())?;
    Ok(file)
}

fn text<'a>(came: &'a Value, step: &str, member: &str) -> &'a str {
    came["steps"][step][member].as_str().unwrap_or_default()
}

/// What the user saw.
fn steps(came: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (step, says) in [
        ("known", "alice: mcp"),
        ("wide", "you are an administrator"),
        ("machine", "machine: mcp"),
        ("document", "alice: mcp"),
        ("login", ""),
        ("step up", ""),
        ("logout", ""),
        ("document login", ""),
        ("status", "person"),
    ] {
        let step_came = &came["steps"][step];
        if step_came["code"] != 0 || !text(came, step, "stdout").contains(says) {
            problems.push(format!("{step}: {step_came}"));
        }
    }
    let together = came["steps"]["refreshed"].as_array().map(Vec::as_slice).unwrap_or_default();
    let good = |one: &&Value| {
        one["code"] == 0 && one["stdout"].as_str().is_some_and(|said| said.contains("alice: mcp"))
    };
    if together.iter().filter(good).count() != TOGETHER {
        problems.push(format!("not all that came together were refreshed: {}", came["steps"]["refreshed"]));
    }
    for step in ["stranger", "too narrow", "gone"] {
        let step_came = &came["steps"][step];
        if step_came["code"] == 0 || !text(came, step, "stderr").contains("toolway login person") {
            problems.push(format!("{step} does not say what to do: {step_came}"));
        }
    }
    for (step, status) in [("good", 200), ("revoked", 401)] {
        if came["steps"][step]["status"] != status {
            problems.push(format!("{step}: {}", came["steps"][step]));
        }
    }
    problems
}

/// What the authorization server did: nothing was refused, and nothing done twice.
fn journal(came: &Value) -> Vec<String> {
    let events = || came["journal"].as_array().into_iter().flatten();
    let all = |name: &'static str| events().filter(move |event| event["event"] == name);
    let mut problems = Vec::new();
    let refused =
        events().filter(|event| event["event"].as_str().is_some_and(|name| name.ends_with("refused")));
    problems.extend(refused.map(|event| format!("the authorization server refused: {event}")));
    let asked: Vec<&str> = all("authorization").filter_map(|event| event["scope"].as_str()).collect();
    let grants: Vec<&str> = all("grant").filter_map(|event| event["grant"].as_str()).collect();
    let (code, again) = ("authorization_code", "refresh_token");
    for (what, found, wanted) in [
        ("registrations", json!(all("registration").count()), json!(1)),
        ("scopes", json!(asked), json!(["mcp offline_access", "mcp offline_access admin", "mcp"])),
        ("grants", json!(grants), json!([code, again, code, "client_credentials", code])),
        ("revocations", json!(all("grant revoked").count()), json!(1)),
        ("fetched documents", json!(all("fetch").count()), json!(1)),
    ] {
        if found != wanted {
            problems.push(format!("{what}: {found}, and not {wanted}"));
        }
    }
    let elsewhere = all("grant").filter(|event| event["resource"] != came["resource"]);
    problems.extend(elsewhere.map(|event| format!("a token for no resource: {event}")));
    problems
}

/// Token and secret stand in no output but that of the one command that prints a token, and in no file of the user's.
fn secrets(came: &Value, folder: &Path) -> Result<Vec<String>> {
    let token = text(came, "token", "stdout").trim();
    let secret = came["secret"].as_str().unwrap_or_default();
    let mut problems = Vec::new();
    if token.len() < 20 {
        problems.push(format!("no token was printed: {}", came["steps"]["token"]));
    }
    for (name, step) in came["steps"].as_object().into_iter().flatten() {
        let told = step.to_string();
        if (name != "token" && told.contains(token)) || told.contains(secret) {
            problems.push(format!("{name} tells a secret"));
        }
    }
    let mut folders = vec![folder.join("home"), folder.join("work")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let kept = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
            if kept.contains(token) || kept.contains(secret) {
                problems.push(format!("a secret stands in {}", path.display()));
            }
        }
    }
    Ok(problems)
}
