//! Owns `${NAME}` in header and environment values.

use super::{Environment, UsageError};

/// The text with every `${NAME}` replaced by that variable of ours; `$${` stands for `${`. A variable that does not
/// exist is an error that names it; `what` says where the text stands.
pub(crate) fn expand(text: &str, environment: &Environment, what: &str) -> Result<String, UsageError> {
    let mut out = String::with_capacity(text.len());
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
        let value = environment.get(name).ok_or_else(|| {
            UsageError::new(what, format!("the environment variable {name} is not set"))
                .with_hint("set it, or write $${ for a literal ${")
        })?;
        out.push_str(
            value
                .to_str()
                .ok_or_else(|| UsageError::new(what, format!("the value of {name} is not UTF-8")))?,
        );
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_place() {
        let environment = Environment::of(&[("TOK", "s=3cr}t"), ("EMPTY", "")]);
        let good = |text: &str| expand(text, &environment, "--header").unwrap();
        assert_eq!(good("Bearer ${TOK}"), "Bearer s=3cr}t");
        assert_eq!(good("${TOK}${EMPTY}!"), "s=3cr}t!");
        assert_eq!(good("$${TOK} $TOK $$ {TOK}"), "${TOK} $TOK $$ {TOK}");
        let missing = expand("${UNSET}", &environment, "--header X").unwrap_err();
        assert_eq!(missing.to_string(), "--header X: the environment variable UNSET is not set");
        assert!(expand("${TOK", &environment, "--env A").is_err());
        assert!(expand("${}", &environment, "--env A").is_err());
    }
}
