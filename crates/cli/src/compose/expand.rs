//! Owns `${...}` in the values of options: our own variables, files and the keyring.

use std::io::Read as _;

use toolway_secret::Secret;

use super::servers::machine;
use super::{Environment, UsageError};
use crate::border::keep;

/// A value in a file is not longer than this.
const LONGEST: u64 = 64 << 10;

/// A text with its placeholders replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// Something in it came from elsewhere, so that it does not stand on the command line.
    pub(crate) from_elsewhere: bool,
}

/// The text with every placeholder replaced: `${NAME}` and `${env:NAME}` by that variable of ours, `${file:PATH}` by what
/// the file holds without the line breaks at its end, `${keyring:NAME}` by that secret; `$${` stands for `${`. What does
/// not exist is an error that names it; `what` says where the text stands.
pub(crate) fn expand(text: &str, environment: &Environment, what: &str) -> Result<Expanded, UsageError> {
    let mut out = String::with_capacity(text.len());
    let mut from_elsewhere = false;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            return Err(UsageError::new(what, "a ${ without its }").with_hint("write $${ for a literal ${"));
        };
        out.push_str(&value(name, environment, what)?);
        from_elsewhere = true;
        rest = after;
    }
    out.push_str(rest);
    Ok(Expanded { text: out, from_elsewhere })
}

fn value(inner: &str, environment: &Environment, what: &str) -> Result<String, UsageError> {
    let found = match inner.split_once(':') {
        Some(("file", path)) => {
            file(path.trim()).map_err(|reason| format!("cannot read {}: {reason}", path.trim()))
        }
        Some(("keyring", name)) => keyring(name.trim(), &machine(environment)?)
            .map_err(|reason| format!("${{{inner}}} cannot be read: {reason}")),
        Some(("env", name)) => return variable(name, environment, what),
        _ => return variable(inner, environment, what),
    };
    let value = found.map_err(|reason| UsageError::new(what, reason))?;
    // Whatever becomes of it. Of variables, those whose name says it are known from the start.
    keep(Secret::in_use(value.as_str()));
    Ok(value)
}

fn variable(name: &str, environment: &Environment, what: &str) -> Result<String, UsageError> {
    let value = environment.get(name).ok_or_else(|| {
        UsageError::new(what, format!("the environment variable {name} is not set"))
            .with_hint("set it, or write $${ for a literal ${")
    })?;
    let value = value.to_str();
    let value = value.ok_or_else(|| UsageError::new(what, format!("the value of {name} is not UTF-8")))?;
    Ok(value.to_owned())
}

fn keyring(name: &str, machine: &toolway_config::Environment) -> Result<String, String> {
    let keyring = machine.keyring.as_ref().ok_or("no keyring is at hand here")?;
    keyring(name).map(|secret| secret.expose().to_owned())
}

/// Also of a pipe, as a shell makes one for the output of a command.
fn file(path: &str) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LONGEST {
        return Err(format!("it holds more than {} KiB", LONGEST >> 10));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(text: &str, environment: &Environment) -> String {
        expand(text, environment, "--header").unwrap().text
    }

    #[test]
    fn variables_are_put_in_place() {
        let environment = Environment::of(&[("TOK", "s=3cr}t"), ("EMPTY", "")]);
        let good = |text: &str| good(text, &environment);
        assert_eq!(good("Bearer ${TOK}"), "Bearer s=3cr}t");
        assert_eq!(good("Bearer ${env:TOK}"), "Bearer s=3cr}t");
        assert_eq!(good("${TOK}${EMPTY}!"), "s=3cr}t!");
        assert_eq!(good("$${TOK} $TOK $$ {TOK}"), "${TOK} $TOK $$ {TOK}");
        let missing = expand("${UNSET}", &environment, "--header X").unwrap_err();
        assert_eq!(missing.to_string(), "--header X: the environment variable UNSET is not set");
        assert!(expand("${TOK", &environment, "--env A").is_err());
        assert!(expand("${}", &environment, "--env A").is_err());
        assert!(!expand("plain", &environment, "--env A").unwrap().from_elsewhere);
        assert!(expand("${TOK}", &environment, "--env A").unwrap().from_elsewhere);
    }

    #[test]
    fn files_and_the_keyring_give_values() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let path = path.to_str().unwrap();
        std::fs::write(path, "of a file \r\n\n").unwrap();
        let state = directory.path().to_str().unwrap();
        let environment = Environment::of(&[("HOME", state), ("XDG_STATE_HOME", state)]);
        let named = crate::compose::servers::own_machine(&environment).unwrap();
        named.sign_ins().unwrap().named().set("gh", &Secret::new("of the keyring")).unwrap();
        assert_eq!(good(&format!("<${{file:{path}}}>"), &environment), "<of a file >");
        assert_eq!(good("<${keyring:gh}>", &environment), "<of the keyring>");
        let told = |text: &str, environment: &Environment| {
            expand(text, environment, "--header X").unwrap_err().to_string()
        };
        assert_eq!(
            told("${keyring:no}", &environment),
            "--header X: ${keyring:no} cannot be read: there is no secret of this name: toolway auth secret set no < FILE"
        );
        assert_eq!(
            told("${keyring:gh}", &Environment::default()),
            "--header X: ${keyring:gh} cannot be read: there is no home directory in which it could be kept"
        );
        assert!(told("${file:/none/x}", &environment).starts_with("--header X: cannot read /none/x: "));
        std::fs::write(path, "x".repeat(65 << 10)).unwrap();
        assert!(told(&format!("${{file:{path}}}"), &environment).ends_with("more than 64 KiB"));
    }
}
