//! Owns what is taken out of every text that is shown or logged: endpoints, tokens, values of key-like names.
//! Knows texts only, not who shows them.

mod patterns;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::Write;
use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;
use toolway_secret::{REDACTED, Redactor, Secret};

use crate::profile::Profile;

/// A shorter text is no secret: replacing it would tear every text apart.
const SHORTEST: usize = 4;
/// Secrets that one scrubber knows by their text; the oldest goes first.
const KNOWN: usize = 256;
/// Longer texts go through in pieces, so that the time stays proportional to the length.
const WHOLE: usize = 128 << 10;

/// The shapes of the redactor, and those of this crate. `None` is a defect that a test would find; then the shapes of
/// the redactor alone are used.
static SHAPES: LazyLock<Option<Redactor>> =
    LazyLock::new(|| Redactor::with_patterns(&patterns::lines(&Profile::ALL)).ok());

/// Finds whether a text can hold anything at all. `None` means that every text is looked through.
static TRIGGER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&patterns::trigger(&Profile::ALL)).ok());

/// Takes secrets out of texts: the endpoints of both naming profiles, bearer tokens, user names and passwords of URLs,
/// cookies, values of key-like names, well-known shapes of keys, and the texts that it was given.
#[derive(Debug, Clone, Default)]
pub struct Scrubber {
    given: Vec<Secret>,
}

impl Scrubber {
    /// Knows shapes only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows this text as well: an API key in use, an endpoint. Of an endpoint its token is known alone, too.
    pub fn add(&mut self, secret: &Secret) {
        let text = secret.expose();
        self.know(secret.clone());
        for profile in Profile::ALL {
            let token = text.split_once(profile.path_segment).and_then(|(_, rest)| rest.split('/').nth(1));
            self.know(Secret::new(token.unwrap_or_default()));
        }
    }

    /// Forgets a text, when a run is over.
    pub fn forget(&mut self, secret: &Secret) {
        self.given.retain(|known| !secret.expose().contains(known.expose()));
    }

    fn know(&mut self, secret: Secret) {
        let text = secret.expose();
        let known = self.given.iter().any(|known| known.expose() == text);
        if text.trim().len() < SHORTEST || known {
            return;
        }
        if self.given.len() >= KNOWN {
            self.given.remove(0);
        }
        self.given.push(secret);
        // The longest first: an endpoint goes as a whole, not its token out of it.
        self.given.sort_by_key(|known| std::cmp::Reverse(known.expose().len()));
    }

    /// The text without secrets. A text that has none is given back as it is.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = match self.without_given(text) {
            Cow::Borrowed(text) => Redactor::values().redact(text),
            Cow::Owned(text) => Cow::Owned(Redactor::values().redact(&text).into_owned()),
        };
        if TRIGGER.as_ref().is_some_and(|trigger| !trigger.is_match(text.as_bytes())) {
            return text;
        }
        match text {
            Cow::Borrowed(text) => by_shape(text),
            Cow::Owned(text) => Cow::Owned(by_shape(&text).into_owned()),
        }
    }

    fn without_given<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.given {
            let secret = secret.expose();
            if memmem::find(text.as_bytes(), secret.as_bytes()).is_some() {
                text = Cow::Owned(text.replace(secret, REDACTED));
            }
        }
        text
    }
}

fn by_shape(text: &str) -> Cow<'_, str> {
    let redactor = SHAPES.as_ref().unwrap_or_else(|| Redactor::known());
    if text.len() <= WHOLE {
        return redactor.redact(text);
    }
    let mut writer = redactor.writer(Vec::with_capacity(text.len()));
    let written = writer.write_all(text.as_bytes()).and_then(|()| writer.finish());
    // Memory takes every byte; were it not so, nothing is shown rather than everything.
    let bytes = written.unwrap_or_default();
    if bytes == text.as_bytes() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}
