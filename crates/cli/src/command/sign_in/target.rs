//! Owns which server is meant by the words of a person, and as which client.

use std::io::Write as _;

use toolway_agent::{Machine, SignIns, server_auth};
use toolway_auth::{ServerAuth, StaticClient};
use toolway_config::{ExpandedTarget, Standing};
use tracing::level_filters::LevelFilter;
use url::Url;

use super::super::shell::{Refusal, chosen};
use super::refused;
use crate::args::SignInArgs;
use crate::compose::servers::{Servers, own_machine};
use crate::compose::{Environment, client_secret};
use crate::logs;
use crate::show::safe;

/// A server to sign in to.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) server: ServerAuth,
    pub(super) sign_ins: SignIns,
    pub(super) own: Environment,
}

/// Reads the environment, starts logging, and finds the server.
pub(super) fn target(args: &SignInArgs) -> Result<Target, Refusal> {
    let own = Environment::read();
    logs::start(match args.verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    });
    let machine = own_machine(&own)?;
    let Some(sign_ins) = machine.sign_ins().cloned() else {
        return Err(
            Refusal::usage("there is no home directory in which tokens could be kept").with_hint("set HOME")
        );
    };
    let (name, mut server) = if args.server.starts_with("http://") || args.server.starts_with("https://") {
        by_address(&args.server)?
    } else {
        (args.server.clone(), by_name(args, &own, &machine)?)
    };
    if let Some(id) = &args.client_id {
        let file = own.option(args.client_secret_file.clone(), "client-secret-file", None)?;
        let secret = client_secret(file.as_ref(), &own)?;
        server.client = Some(StaticClient { id: id.clone(), secret });
    }
    if let Some(account) = &args.account {
        server.account.clone_from(account);
    }
    Ok(Target { name, server, sign_ins, own })
}

fn by_address(text: &str) -> Result<(String, ServerAuth), Refusal> {
    let url = Url::parse(text).map_err(|error| Refusal::usage(format!("URL: {error}")))?;
    let mut shown = url.clone();
    // It may hold a secret.
    shown.set_query(None);
    let server = ServerAuth::new(url).map_err(|error| refused(shown.as_str(), &error))?;
    Ok((shown.into(), server))
}

fn by_name(args: &SignInArgs, own: &Environment, machine: &Machine) -> Result<ServerAuth, Refusal> {
    let name = &args.server;
    let servers = Servers::load(&args.sources, own)?;
    let disabled = |standing: &Standing| matches!(standing, Standing::Disabled { .. });
    let entry = servers.resolved.entry(name);
    // One that is switched off can be signed in to before it is switched on.
    if !entry.is_some_and(|entry| disabled(&entry.standing)) {
        chosen(&servers, name)?;
    }
    let Some(entry) = entry else { return Err(Refusal::usage(format!("no server is called {name:?}"))) };
    let expanded = entry.expand(machine.environment()).map_err(|problems| {
        for problem in &problems {
            writeln!(std::io::stderr().lock(), "error: {}", safe(&problem.to_string())).ok();
        }
        Refusal::usage(format!("server {name:?} cannot be used"))
    })?;
    let ExpandedTarget::Remote(remote) = &expanded.target else {
        return Err(Refusal::usage(format!(
            "server {name:?} is a program on this machine, and has no sign-in of this kind"
        ))
        .with_hint("what it needs is given by its env"));
    };
    let server = server_auth(remote).map_err(|error| refused(name, &error))?;
    server.ok_or_else(|| {
        Refusal::usage(format!("server {name:?} has an Authorization header in {}", entry.place))
            .with_hint("remove that header to sign in instead")
    })
}
