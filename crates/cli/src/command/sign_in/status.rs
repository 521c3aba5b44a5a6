//! `toolway auth status`: who is signed in to what. No token is in it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toolway_agent::server_auth;
use toolway_auth::{AuthError, SignIn, SignInState};
use toolway_config::{ExpandedTarget, Standing};

use super::super::shell::{Refusal, Shell};
use super::{SCHEMA, roughly};
use crate::args::StatusArgs;
use crate::compose::Environment;
use crate::compose::servers::{Servers, own_machine};
use crate::exit::Exit;
use crate::show::{Terminal, json as printed, safe, whole_line};
use crate::table::{Align, columns};

type Found = Vec<(PathBuf, Result<SignIn, AuthError>)>;

pub(super) fn status(args: &StatusArgs) -> Result<Exit, Refusal> {
    let own = Environment::read();
    let machine = own_machine(&own)?;
    let terminal = Terminal::now(|name| Some(own.get(name)?.to_str()?.to_owned()));
    let found: Found = match machine.sign_ins() {
        None => Vec::new(),
        Some(sign_ins) => Shell::block_on(async {
            sign_ins.auth().all().await.map_err(|error| Refusal::usage(error.to_string()))
        })?,
    };
    let names = names(args, &own)?;
    let exit = if found.iter().any(|(_, one)| one.is_err()) { Exit::Ended } else { Exit::Done };
    let text = if args.json {
        let (mut sign_ins, mut unreadable) = (Vec::new(), Vec::new());
        for (path, one) in &found {
            match one {
                Ok(one) => {
                    let mut told = described(one);
                    if let Some(told) = told.as_object_mut() {
                        told.insert("servers".to_owned(), json!(names.get(&one.resource)));
                    }
                    sign_ins.push(told);
                }
                Err(error) => unreadable.push(json!({ "path": path, "reason": error.to_string() })),
            }
        }
        printed(&json!({ "schema": SCHEMA, "signIns": sign_ins, "unreadable": unreadable }), terminal.out)
    } else {
        table(&found, &names)
    };
    let text = if terminal.out && !args.json { safe(&text).into_owned() } else { text };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(exit)
}

/// Which configured servers have an address.
fn names(args: &StatusArgs, own: &Environment) -> Result<BTreeMap<String, Vec<String>>, Refusal> {
    let machine = own_machine(own)?;
    let servers = Servers::load(&args.sources, own)?;
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in &servers.resolved.entries {
        if !matches!(entry.standing, Standing::Ready | Standing::Disabled { .. }) {
            continue;
        }
        let Ok(expanded) = entry.expand(machine.environment()) else { continue };
        if let ExpandedTarget::Remote(remote) = &expanded.target
            && let Ok(Some(server)) = server_auth(remote)
        {
            names.entry(server.resource.into()).or_default().push(entry.name.clone());
        }
    }
    Ok(names)
}

fn table(found: &Found, names: &BTreeMap<String, Vec<String>>) -> String {
    if found.is_empty() {
        return "Nobody is signed in to any server. To sign in: toolway login SERVER\n".to_owned();
    }
    let mut rows = vec![["SERVER", "STATE", "ISSUER", "SCOPES", ""].map(str::to_owned).to_vec()];
    let mut notes = String::new();
    for (path, one) in found {
        let one = match one {
            Ok(one) => one,
            Err(error) => {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                rows.push(vec![name, "unreadable".to_owned()]);
                notes.extend([whole_line(&error.to_string()), "\n".to_owned()]);
                continue;
            }
        };
        let server = names.get(&one.resource).map_or_else(|| shown(&one.resource), |names| names.join(", "));
        let server = if one.account.is_empty() { server } else { format!("{server} ({})", one.account) };
        let life = match (one.state, one.expires_in) {
            (SignInState::SignedIn, Some(life)) => left(life),
            _ => one.ended.clone().unwrap_or_default(),
        };
        rows.push(vec![
            whole_line(&server),
            one.state.name().replace('_', " "),
            whole_line(&one.issuer),
            whole_line(&one.scopes.join(" ")),
            whole_line(&life),
        ]);
        if !one.wanted.is_empty() {
            notes.extend([format!(
                "{server} wants more than was granted: {}. To allow it: toolway login {server}\n",
                one.wanted.join(" ")
            )]);
        }
    }
    let table = columns(&[Align::Left; 5], &rows);
    if notes.is_empty() { table } else { format!("{table}\n{notes}") }
}

/// An address without its query, which may hold secrets.
fn shown(address: &str) -> String {
    address.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// For how long.
pub(super) fn left(life: Duration) -> String {
    format!("good for {}", roughly(life))
}

/// A sign-in as JSON.
pub(super) fn described(one: &SignIn) -> Value {
    json!({
        "resource": shown(&one.resource),
        "issuer": one.issuer,
        "clientId": one.client_id,
        "client": one.client,
        "account": one.account,
        "state": one.state.name(),
        "scopes": one.scopes,
        "wanted": one.wanted,
        "expiresInSeconds": one.expires_in.map(|life| life.as_secs()),
        "ended": one.ended,
        "changedAt": one.changed_at,
    })
}
