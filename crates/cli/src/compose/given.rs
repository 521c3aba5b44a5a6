//! Owns options that hold a name and a value which may be a secret, and what is said where one stands on the command
//! line: every process of the machine can read that.

use toolway_secret::{Secret, secret_in_argument, secret_name, secret_value};

use toolway_transport::HttpConfig;

use super::{Environment, UsageError, expand};
use crate::border::say;

/// Headers that say nothing secret, whatever their value.
const PLAIN: [&str; 5] = ["accept", "accept-language", "content-type", "user-agent", "mcp-protocol-version"];

/// `NAME=VALUE` or `NAME: VALUE` of a header, expanded. No header's name holds either sign.
pub(crate) fn header(pair: &str, own: &Environment) -> Result<(String, Secret), UsageError> {
    let wrong = |reason: &str| {
        UsageError::new("--header", reason).with_hint("--header 'Authorization=Bearer ${TOKEN}'")
    };
    let (name, value) = pair.split_once(['=', ':']).ok_or_else(|| wrong("one of them is not NAME=VALUE"))?;
    let name = name.trim();
    if name.is_empty() {
        return Err(wrong("one of them has no name before ="));
    }
    let what = format!("--header {name}");
    let value = expand(value.trim(), own, &what)?;
    if PLAIN.iter().any(|plain| plain.eq_ignore_ascii_case(name)) {
        return Ok((name.to_owned(), Secret::new(value.text)));
    }
    if !value.from_elsewhere && (secret_name(name) || secret_value(&value.text)) {
        seen(&what, &format!("--header '{name}=${{NAME}}'"));
    }
    Ok((name.to_owned(), Secret::in_use(value.text)))
}

/// `NAME=VALUE` of a variable, expanded.
pub(crate) fn variable(pair: &str, own: &Environment) -> Result<(String, Secret), UsageError> {
    let wrong = |reason: &str| {
        UsageError::new("--env", format!("{:?} {reason}", pair.split('=').next().unwrap_or_default()))
    };
    let (name, value) = pair.split_once('=').ok_or_else(|| wrong("is not NAME=VALUE"))?;
    if name.is_empty() {
        return Err(wrong("has no name before ="));
    }
    if pair.contains('\0') {
        return Err(wrong("holds a NUL"));
    }
    let what = format!("--env {name}");
    let value = expand(value, own, &what)?;
    let looks_secret = secret_name(name) || secret_value(&value.text);
    if looks_secret && !value.from_elsewhere {
        seen(&what, &format!("--env '{name}=${{{name}}}'"));
    }
    let secret = looks_secret || value.from_elsewhere;
    Ok((name.to_owned(), if secret { Secret::in_use(value.text) } else { Secret::new(value.text) }))
}

/// The secrets among the arguments of a command that is given on ours.
pub(crate) fn arguments<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Vec<Secret> {
    let mut known = Vec::new();
    let mut before = None;
    for argument in arguments {
        if let Some(secret) = secret_in_argument(before, argument) {
            known.push(Secret::in_use(secret));
        }
        before = Some(argument);
    }
    if !known.is_empty() {
        seen("COMMAND", "--env 'NAME=${NAME}', if the server takes it from there");
    }
    known
}

/// Says so of an address whose query holds a secret.
pub(crate) fn address_seen(config: &HttpConfig, better: &str) {
    let mut query = config.url.query_pairs();
    if query.any(|(name, value)| secret_name(&name) || secret_value(&value)) {
        seen("--url", better);
    }
}

/// Says so of a pair that is written to a file as it is.
pub(crate) fn pair_seen(flag: &str, name: &str, value: &str) {
    if !value.contains("${") && (secret_name(name) || secret_value(value)) {
        seen(&format!("{flag} {name}"), &format!("{flag} '{name}=${{NAME}}', which is kept as it is"));
    }
}

/// Says that a secret can be seen, and how it would not be. Never the secret.
pub(crate) fn seen(what: &str, better: &str) {
    say(format_args!(
        "warning: {what}: a secret on a command line can be seen by every process of this machine\n\
         hint: {better}; ${{NAME}} is a variable of yours, ${{file:PATH}} a file, ${{keyring:NAME}} your keyring"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_two_spellings_and_variables_one() {
        let own = Environment::of(&[("TOKEN", "s3cr3t")]);
        let shown = |(name, value): (String, Secret)| format!("{name}|{}", value.expose());
        for (pair, expected) in [
            ("Authorization: Bearer ${TOKEN}", "Authorization|Bearer s3cr3t"),
            ("X-A=b:c=d", "X-A|b:c=d"),
            ("Accept = text/plain", "Accept|text/plain"),
        ] {
            assert_eq!(header(pair, &own).map(shown).unwrap(), expected);
        }
        assert_eq!(variable("A=b=${TOKEN}", &own).map(shown).unwrap(), "A|b=s3cr3t");
        for wrong in ["s3cr3t", "=s3cr3t", ""] {
            let told = [header(wrong, &own).unwrap_err(), variable(wrong, &own).unwrap_err()];
            assert!(told.iter().any(|told| !told.to_string().is_empty()), "{told:?}");
        }
        assert!(variable("A=\0", &own).is_err());
        assert!(!header("s3cr3t", &own).unwrap_err().to_string().contains("s3cr3t"));
    }

    #[test]
    fn secrets_among_arguments_are_known() {
        let found = arguments(["--token", "hunter-1", "--api-key=hunter-2", "--key-file", "/plain", "plain"]);
        assert_eq!(found.iter().map(Secret::expose).collect::<Vec<_>>(), ["hunter-1", "hunter-2"]);
    }
}
