//! Owns the judgement of what may be secret, by its name or by its look. Pure: it does not depend on what is in use.

use crate::redact::Redactor;

/// Parts of names that say that the value is a secret.
const PARTS: [&str; 22] = [
    "token",
    "tok",
    "key",
    "secret",
    "password",
    "passwd",
    "pass",
    "pw",
    "pwd",
    "auth",
    "credential",
    "cred",
    "creds",
    "pat",
    "pin",
    "otp",
    "jwt",
    "dsn",
    "cookie",
    "bearer",
    "webhook",
    "passphrase",
];
/// Names with such parts that are none.
const HARMLESS: [&str; 5] = ["PWD", "OLDPWD", "PATH", "KEYBOARD", "SSH_AUTH_SOCK"];

/// Whether the name of a variable, a header or a flag says that its value is a secret.
pub fn secret_name(name: &str) -> bool {
    if HARMLESS.contains(&name) {
        return false;
    }
    let mut spaced = String::new();
    let mut lower_before = false;
    for letter in name.chars() {
        if letter.is_uppercase() && lower_before {
            spaced.push('_');
        }
        lower_before = letter.is_lowercase();
        spaced.extend(letter.to_lowercase());
    }
    let words = spaced.split(|c: char| !c.is_ascii_alphanumeric());
    let is_secret = |word: &str| {
        PARTS.iter().any(|part| word == *part || (part.len() > 4 && word.contains(part)))
            || word.ends_with("key")
            || word.ends_with("auth")
            || word == "authorization"
    };
    words.filter(|word| !word.is_empty()).any(is_secret)
}

/// Whether a value looks like a secret: a known shape, or a long mix of letters and digits.
pub fn secret_value(value: &str) -> bool {
    if matches!(Redactor::shapes().redact(value), std::borrow::Cow::Owned(_)) {
        return true;
    }
    let mixed = |word: &str| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let letters = word.chars().filter(char::is_ascii_alphabetic).count();
        word.len() >= 20 && digits >= 3 && letters >= 3 && digits + letters + 3 >= word.len()
    };
    value.split(|c: char| !c.is_ascii_alphanumeric() && !"_-+=".contains(c)).any(mixed)
}

/// Whether an argument is a flag whose value is a secret: `--token`, and not `--token-file`.
pub fn secret_flag(flag: &str) -> bool {
    let name = flag.to_ascii_lowercase();
    flag.starts_with('-')
        && secret_name(flag)
        && !["file", "path", "dir"].iter().any(|end| name.ends_with(end))
}

/// The secret in an argument of a command line, where one can be told: `--token=X`, `--token X` in one argument or in
/// two, or a known shape.
pub fn secret_in_argument<'a>(before: Option<&str>, argument: &'a str) -> Option<&'a str> {
    let inside = argument.split_once('=').or_else(|| argument.split_once(' '));
    let inside = inside.filter(|(flag, _)| secret_flag(flag)).map(|(_, secret)| secret.trim());
    let behind = before.is_some_and(secret_flag) && !argument.starts_with('-');
    let shaped = || matches!(Redactor::shapes().redact(argument), std::borrow::Cow::Owned(_));
    let whole = behind || (inside.is_none() && shaped());
    inside.or(whole.then_some(argument)).filter(|secret| !secret.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_secrets() {
        for name in [
            "TOK",
            "API_KEY",
            "GITHUB_TOKEN",
            "PW",
            "apiKey",
            "X-Api-Key",
            "Authorization",
            "DB_PASSWORD",
            "APIKEY",
            "--token",
            "CREDS",
            "LOGIN_PIN",
            "SENTRY_DSN",
            "SLACK_WEBHOOK_URL",
            "SESSION_COOKIE",
            "SSH_PASSPHRASE",
        ] {
            assert!(secret_name(name), "{name}");
        }
        for name in [
            "PATH", "PWD", "HOME", "NODE_ENV", "Accept", "KEYBOARD", "MONKEYS", "COMPAT", "SHIPPING",
            "PINNED", "--yes",
        ] {
            assert!(!secret_name(name), "{name}");
        }
    }

    #[test]
    fn values_tell_secrets() {
        assert!(secret_value("AKIAIOSFODNN7EXAMPLE") && secret_value("a8f5f167f44f4964e6c998dee827110c"));
        for plain in [
            "production",
            "@modelcontextprotocol/server-filesystem",
            "/usr/lib/node_modules/x",
            "8080",
            "--max-old-space-size=4096",
        ] {
            assert!(!secret_value(plain), "{plain}");
        }
    }
}
