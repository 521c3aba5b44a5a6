//! `toolway auth secret`: secrets under names, which come from stdin and from no command line.

use std::io::{IsTerminal as _, Read as _, Write as _, stdin};

use toolway_secret::Secret;

use super::super::shell::Refusal;
use crate::args::SecretCommand;
use crate::compose::Environment;
use crate::compose::servers::own_machine;
use crate::exit::Exit;
use crate::render::Output;
use crate::show::safe;

/// No secret is longer.
const LONGEST: u64 = 64 << 10;

pub(super) fn secret(command: &SecretCommand) -> Result<Exit, Refusal> {
    let machine = own_machine(&Environment::read())?;
    let Some(sign_ins) = machine.sign_ins() else {
        return Err(Refusal::usage("there is no home directory in which secrets could be kept"));
    };
    let named = sign_ins.named();
    let failed = |error: toolway_auth::AuthError| Refusal::usage(error.to_string());
    match command {
        SecretCommand::Set { name } => {
            named.set(name, &read(name)?).map_err(failed)?;
            Output::new()
                .write_all(safe(&format!("Kept. In a file it is ${{keyring:{name}}}.\n")).as_bytes())?;
            Ok(Exit::Done)
        }
        SecretCommand::Remove { name } => {
            let removed = named.remove(name).map_err(failed)?;
            let line =
                if removed { "Removed.\n".to_owned() } else { format!("There is no secret {name:?}.\n") };
            Output::new().write_all(safe(&line).as_bytes())?;
            Ok(if removed { Exit::Done } else { Exit::Ended })
        }
    }
}

fn read(name: &str) -> Result<Secret, Refusal> {
    if stdin().is_terminal() {
        let hint = format!("a password manager's output, or a file: toolway auth secret set {name} < FILE");
        return Err(Refusal::usage(
            "the secret comes from stdin, which is a terminal here, where it would be seen",
        )
        .with_hint(hint));
    }
    let mut text = String::new();
    stdin().lock().take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(Refusal::usage("the secret is longer than 64 KiB"));
    }
    let secret = Secret::in_use(text.trim_end_matches(['\r', '\n']));
    if secret.expose().is_empty() {
        return Err(Refusal::usage("stdin was empty: there is no secret to keep"));
    }
    Ok(secret)
}
