//! `toolway login`, `logout` and `auth`: signing in to servers, and out, for all processes of this user.

mod browser;
mod named;
mod status;
mod target;

use std::io::{IsTerminal as _, Write as _, stderr, stdout};
use std::time::Duration;

use serde_json::json;
use toolway_auth::{AuthError, Grant, Redirect, SignIn};

use super::shell::{Interrupts, Refusal, Shell, told};
use crate::args::{AuthArgs, AuthCommand, LoginArgs, LogoutArgs, TokenArgs};
use crate::exit::Exit;
use crate::render::Output;
use crate::show::{Terminal, json, safe};

use browser::Person;
use target::{Target, target};

/// The version of what `--json` prints; members are added, never changed.
const SCHEMA: u32 = 1;

/// `toolway login`.
pub(super) fn login(args: &LoginArgs) -> Exit {
    told(sign_in(args))
}

/// `toolway logout`.
pub(super) fn logout(args: &LogoutArgs) -> Exit {
    told(sign_out(args))
}

/// `toolway auth`.
pub(super) fn auth(args: &AuthArgs) -> Exit {
    told(match &args.command {
        AuthCommand::Status(args) => status::status(args),
        AuthCommand::Token(args) => token(args),
        AuthCommand::Secret(args) => named::secret(&args.command),
    })
}

fn sign_in(args: &LoginArgs) -> Result<Exit, Refusal> {
    let Target { name, mut server, sign_ins, own } = target(&args.target)?;
    if let Some(redirect) = &args.redirect_uri {
        server.redirect = Redirect::parse(redirect).map_err(|error| refused(&name, &error))?;
    }
    if args.client_credentials {
        server.grant = Grant::ClientCredentials;
    }
    if server.grant == Grant::ClientCredentials
        && server.client.as_ref().is_none_or(|client| client.secret.is_none())
    {
        return Err(Refusal::usage("--client-credentials: there is no client with a secret").with_hint(
            "give --client-id and --client-secret-file, or auth.CLIENT_ID and auth.CLIENT_SECRET in the file",
        ));
    }
    let elsewhere = matches!(server.redirect, Redirect::Elsewhere(_));
    let session = sign_ins.session(server);
    let interrupts = Interrupts::watch()?;
    let person = Person::at_terminal(&name, &own, args.no_browser || elsewhere)?;
    let signed = Shell::block_on(async {
        tokio::select! {
            biased;
            signal = interrupts.next() => Err(Refusal::signal(signal)),
            signed = session.login(&args.scope, true, &person) => signed.map_err(|error| refused(&name, &error)),
        }
    })?;
    let terminal = Terminal::now(|name| Some(own.get(name)?.to_str()?.to_owned()));
    if args.json {
        let told = json!({ "schema": SCHEMA, "server": name, "signIn": status::described(&signed) });
        stdout().lock().write_all(json(&told, terminal.out).as_bytes())?;
        return Ok(Exit::Done);
    }
    let line = format!("Signed in to {name}{}.\n", summary(&signed));
    Output::new().write_all(safe(&line).as_bytes())?;
    Ok(Exit::Done)
}

/// At whom, for what and how long.
pub(super) fn summary(signed: &SignIn) -> String {
    let scopes =
        if signed.scopes.is_empty() { String::new() } else { format!(", for {}", signed.scopes.join(" ")) };
    let account = if signed.account.is_empty() { String::new() } else { format!(" as {}", signed.account) };
    let life = signed.expires_in.map(|left| format!(", {}", status::left(left))).unwrap_or_default();
    format!("{account} at {}{scopes}{life}", signed.issuer)
}

fn sign_out(args: &LogoutArgs) -> Result<Exit, Refusal> {
    let Target { name, server, sign_ins, .. } = target(&args.target)?;
    let session = sign_ins.session(server);
    let out = Shell::block_on(async { session.revoke().await.map_err(|error| refused(&name, &error)) })?;
    let mut err = stderr().lock();
    for reason in &out.not_told {
        let line = format!("warning: {reason}: its token may be good until it ends by itself\n");
        err.write_all(safe(&line).as_bytes()).ok();
    }
    let line = match out.forgotten {
        0 => format!("Nobody was signed in to {name}.\n"),
        _ => format!("Signed out of {name}.\n"),
    };
    Output::new().write_all(safe(&line).as_bytes())?;
    Ok(Exit::Done)
}

fn token(args: &TokenArgs) -> Result<Exit, Refusal> {
    if stdout().is_terminal() && !args.show {
        return Err(Refusal::usage("the token would stand on the terminal, for everybody to see")
            .with_hint("hand it to a program by a pipe, or give --show"));
    }
    let Target { name, server, sign_ins, .. } = target(&args.target)?;
    let session = sign_ins.session(server);
    let token = Shell::block_on(async { session.token().await.map_err(|error| refused(&name, &error)) })?;
    let mut out = Output::new();
    out.write_all(token.expose().as_bytes())?;
    out.write_all(b"\n")?;
    Ok(Exit::Done)
}

/// Why not, and what to do.
pub(super) fn refused(name: &str, error: &AuthError) -> Refusal {
    let login = || Some(format!("toolway login {}", crate::render::quoted(name, cfg!(windows))));
    let (exit, hint) = match error {
        AuthError::NeedsLogin { .. } => (Exit::NotSignedIn, login()),
        AuthError::Refused { .. } | AuthError::Answer { .. } | AuthError::Late { .. } => {
            (Exit::NotSignedIn, None)
        }
        AuthError::Unreachable { .. } | AuthError::Metadata { .. } => (Exit::NotStarted, None),
        AuthError::Client { .. }
        | AuthError::Redirect { .. }
        | AuthError::Store { .. }
        | AuthError::Newer { .. }
        | AuthError::Setting { .. } => (Exit::Usage, None),
    };
    Refusal { reason: format!("{name}: {error}"), hint, exit }
}

/// How long is left, as people say it.
pub(super) fn roughly(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}
