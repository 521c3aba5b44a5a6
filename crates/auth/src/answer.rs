//! Owns the answer of an authorization server by way of the person's browser (RFC 6749, 4.1.2; RFC 9207). Pure.

use subtle::ConstantTimeEq;
use toolway_secret::Secret;
use url::Url;

use crate::error::{AuthError, told};

/// What an answer must be.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) state: Secret,
    pub(crate) issuer: String,
    /// The server promised to name itself (RFC 9207, 3).
    pub(crate) names_itself: bool,
}

/// What the answer says.
#[derive(Debug)]
pub(crate) struct Answered {
    code: Option<Secret>,
    state: Option<Secret>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl Answered {
    /// Of the query of a redirect.
    pub(crate) fn of(url: &Url) -> Self {
        let mut this = Self { code: None, state: None, issuer: None, error: None, description: None };
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "code" => this.code = Some(Secret::in_use(value)),
                "state" => this.state = Some(Secret::new(value)),
                "iss" => this.issuer = Some(value.into_owned()),
                "error" => this.error = Some(told(&value)),
                "error_description" => this.description = Some(told(&value)),
                _ => {}
            }
        }
        this
    }

    /// Of what a person pasted: the whole address, or its query.
    pub(crate) fn pasted(text: &str) -> Result<Self, AuthError> {
        let text = text.trim();
        let url = Url::parse(text).or_else(|_| {
            let query = text.trim_start_matches(['?', '&']);
            Url::parse(&format!("http://localhost/?{query}"))
        });
        let answered = url.map(|url| Self::of(&url)).ok();
        answered.filter(|one| one.code.is_some() || one.error.is_some()).ok_or_else(|| {
            AuthError::answer("it holds no code: paste the whole address that the browser was sent to")
        })
    }

    /// It is of the login that was begun here: nobody else knows its state.
    pub(crate) fn is_of(&self, expected: &Expected) -> bool {
        let state = self.state.as_ref().map_or("", Secret::expose);
        bool::from(state.as_bytes().ct_eq(expected.state.expose().as_bytes()))
    }

    /// The person, or the server, said no.
    pub(crate) fn is_refusal(&self) -> bool {
        self.error.is_some()
    }

    /// Its code.
    pub(crate) fn code(self, expected: &Expected) -> Result<Secret, AuthError> {
        if !self.is_of(expected) {
            return Err(AuthError::answer("its state is not that of this login"));
        }
        match &self.issuer {
            // To the letter (RFC 9207, 2.4).
            Some(issuer) if *issuer != expected.issuer => {
                let text = format!("it is of {}, and {} was asked", told(issuer), expected.issuer);
                return Err(AuthError::answer(text));
            }
            None if expected.names_itself => {
                let text = format!("it does not name its issuer, as {} promises to", expected.issuer);
                return Err(AuthError::answer(text));
            }
            _ => {}
        }
        if let Some(code) = self.error {
            let endpoint = expected.issuer.clone();
            return Err(AuthError::Refused { endpoint, code, description: self.description });
        }
        self.code
            .filter(|code| !code.expose().is_empty())
            .ok_or_else(|| AuthError::answer("it holds no code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(query: &str, names_itself: bool) -> Result<String, String> {
        let expected = Expected { state: Secret::new("st"), issuer: "https://as".to_owned(), names_itself };
        let answered = Answered::pasted(query).map_err(|error| error.to_string())?;
        answered.code(&expected).map(|code| code.expose().to_owned()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_answer_is_of_this_login_and_of_this_server() {
        assert_eq!(
            code("http://127.0.0.1:1/callback?code=c%2B1&state=st&iss=https%3A%2F%2Fas", true).unwrap(),
            "c+1"
        );
        assert_eq!(code("?state=st&code=c", false).unwrap(), "c");
        assert_eq!(code(" code=c&state=st&iss=https://as \n", true).unwrap(), "c");
        for (query, names_itself, why) in [
            ("code=c&state=other", false, "state"),
            ("code=c", false, "state"),
            ("code=c&state=st&iss=https://evil", false, "https://evil"),
            ("code=c&state=st&iss=https://as/", false, "https://as/"),
            ("code=c&state=st", true, "does not name its issuer"),
            ("code=&state=st", false, "no code"),
            ("error=access_denied&error_description=no%0Away&state=st", false, "access_denied (no way)"),
            ("error=access_denied&state=other", false, "state"),
            ("error=access_denied&state=st&iss=https://evil", false, "https://evil"),
            ("just words", false, "no code"),
            ("", false, "no code"),
        ] {
            let error = code(query, names_itself).unwrap_err();
            assert!(error.contains(why), "{query}: {error}");
        }
    }
}
