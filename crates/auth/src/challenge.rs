//! Owns the reading of `WWW-Authenticate` (RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1). Pure.

use url::Url;

use crate::settings::scopes_of;

/// What a server's refusal says about how to be let in: its first `Bearer` challenge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BearerChallenge {
    /// `error`, as `invalid_token` or `insufficient_scope`.
    pub error: Option<String>,
    /// `scope`: what would suffice.
    pub scopes: Vec<String>,
    /// `resource_metadata`: where the server's metadata is.
    pub resource_metadata: Option<Url>,
}

impl BearerChallenge {
    /// Of all `WWW-Authenticate` values of an answer. Values that make no sense are as none.
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for value in values {
            for (scheme, parameters) in challenges(value) {
                if !scheme.eq_ignore_ascii_case("bearer") {
                    continue;
                }
                let one = Self::of(parameters);
                // A later one may say more, as where a proxy adds its own.
                if found.as_ref().is_none_or(|known| *known == Self::default()) {
                    found = Some(one);
                }
            }
        }
        found
    }

    fn of(parameters: Vec<(String, String)>) -> Self {
        let mut this = Self::default();
        for (name, value) in parameters {
            match name.to_ascii_lowercase().as_str() {
                "error" => this.error = Some(value),
                "scope" => this.scopes = scopes_of(&value),
                "resource_metadata" => this.resource_metadata = Url::parse(&value).ok(),
                _ => {}
            }
        }
        this
    }

    /// The token was good and does not reach far enough (RFC 6750, 3.1).
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

type Challenge = (String, Vec<(String, String)>);

/// The challenges of one value, with their parameters. What cannot be read ends it.
fn challenges(value: &str) -> Vec<Challenge> {
    let mut all: Vec<Challenge> = Vec::new();
    let mut rest = value.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let (name, after) = token(rest);
        if name.is_empty() {
            break;
        }
        let spaced = after.trim_start_matches([' ', '\t']);
        if let Some(parameter) = spaced.strip_prefix('=').filter(|_| !all.is_empty()) {
            let (text, after) = parameter_value(parameter.trim_start_matches([' ', '\t']));
            if let Some((_, parameters)) = all.last_mut() {
                parameters.push((name.to_owned(), text));
            }
            rest = after;
        } else {
            all.push((name.to_owned(), Vec::new()));
            // A token68 (`Basic abc==`) says nothing to us.
            let (word, after_word) = token68(spaced);
            let ends = after_word.trim_start_matches([' ', '\t']);
            rest = if !word.is_empty() && (ends.is_empty() || ends.starts_with(',')) && !word.eq("Bearer") {
                ends
            } else {
                spaced
            };
        }
        rest = rest.trim_start_matches([' ', '\t', ',']);
    }
    all
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

fn token(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

fn token68(text: &str) -> (&str, &str) {
    let body = text.find(|c: char| !(is_token(c) || c == '/')).unwrap_or(text.len());
    let (word, rest) = text.split_at(body);
    let padding = rest.len() - rest.trim_start_matches('=').len();
    if word.is_empty() { ("", text) } else { text.split_at(body + padding) }
}

/// A token or a quoted string, and what comes after it.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        // Many servers forget the quotation marks of addresses.
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, c)| c)),
            _ => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(values: &[&str]) -> Option<(Option<String>, Vec<String>, Option<String>)> {
        let challenge = BearerChallenge::parse(values.iter().copied())?;
        Some((challenge.error, challenge.scopes, challenge.resource_metadata.map(String::from)))
    }

    #[test]
    fn challenges_are_read_in_all_their_forms() {
        let full = r#"Bearer realm="a, b", error="insufficient_scope", scope="x  y x", resource_metadata="https://h/m?a=b,c""#;
        let text = |text: &str| Some(text.to_owned());
        let scopes = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let whole = (text("insufficient_scope"), scopes(&["x", "y"]), text("https://h/m?a=b,c"));
        assert_eq!(parsed(&[full]), Some(whole.clone()));
        assert_eq!(parsed(&[&format!("Basic realm=\"x\", {full}")]), Some(whole.clone()));
        assert_eq!(
            parsed(&["Negotiate", &format!("Negotiate abc==, DPoP algs=\"ES256\", {full}")]),
            Some(whole)
        );
        assert_eq!(parsed(&["bearer ERROR=invalid_token"]), Some((text("invalid_token"), scopes(&[]), None)));
        assert_eq!(
            parsed(&["Bearer resource_metadata=https://h/m"]),
            Some((None, scopes(&[]), text("https://h/m")))
        );
        assert_eq!(parsed(&["Bearer"]), Some((None, scopes(&[]), None)));
        assert_eq!(parsed(&["Bearer, Bearer scope=\"a\""]), Some((None, scopes(&["a"]), None)));
        assert_eq!(
            parsed(&[r#"Bearer error="a \"b\" \\c""#]),
            Some((text(r#"a "b" \c"#), scopes(&[]), None))
        );
        assert_eq!(parsed(&["Bearer resource_metadata=\"not an address\""]), Some((None, scopes(&[]), None)));
        for none in ["", "Basic realm=\"Bearer\"", "=,,=", "\"", "Basic Bearer=="] {
            assert_eq!(parsed(&[none]), None, "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_server_sends_is_read_to_an_end(text in "[ -~\t]{0,80}", tail in "(Bearer|error=|\"|\\\\|,|=| ){0,20}") {
            BearerChallenge::parse([text.as_str(), tail.as_str()]);
        }
    }
}
