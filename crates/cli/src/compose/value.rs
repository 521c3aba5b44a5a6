//! Owns the environment as it was at the start, and values that know where they came from.

use std::ffi::{OsStr, OsString};
use std::fmt;

use super::UsageError;

/// Our environment, read once. `Debug` shows the variables' names only.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}

impl Environment {
    /// As it is now.
    pub(crate) fn read() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    #[cfg(test)]
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        let variables = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables }
    }

    /// All variables.
    pub(crate) fn all(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        self.variables.iter().cloned()
    }

    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_os_str())
    }

    /// The option `--NAME`: its flag, its variable, or an older variable.
    pub(crate) fn option(
        &self,
        flag: Option<String>,
        name: &str,
        older: Option<&str>,
    ) -> Result<Option<Value>, UsageError> {
        if let Some(text) = flag {
            return Ok(Some(Value { text, from: format!("--{name}") }));
        }
        let own = format!("TOOLWAY_{}", name.replace('-', "_").to_ascii_uppercase());
        let older = older.map(|older| format!("CURSOR_MCP_RESPONSE_PROXY_{older}"));
        for variable in std::iter::once(own).chain(older) {
            if let Some(value) = self.get(&variable).filter(|value| !value.is_empty()) {
                let text =
                    value.to_str().ok_or_else(|| UsageError::new(&variable, "its value is not UTF-8"))?;
                return Ok(Some(Value { text: text.to_owned(), from: variable }));
            }
        }
        Ok(None)
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) from: String,
}

impl Value {
    /// Its meaning by `parse`, whose error is put beside where it came from.
    pub(crate) fn parse<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, UsageError> {
        parse(&self.text).map_err(|reason| UsageError::new(&self.from, format!("{:?} {reason}", self.text)))
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, UsageError> {
        self.parse(|text| {
            words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                format!("is none of {}", known.join(", "))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_the_variable_and_that_over_the_older_one() {
        let both = Environment::of(&[
            ("TOOLWAY_PREVIEW_CHARS", "2"),
            ("CURSOR_MCP_RESPONSE_PROXY_PREVIEW_CHARS", "3"),
        ]);
        let older = Environment::of(&[
            ("CURSOR_MCP_RESPONSE_PROXY_PREVIEW_CHARS", "3"),
            ("TOOLWAY_PREVIEW_CHARS", ""),
        ]);
        let look = |environment: &Environment, flag: Option<&str>| {
            let flag = flag.map(str::to_owned);
            environment.option(flag, "preview-chars", Some("PREVIEW_CHARS")).unwrap().map(|value| value.text)
        };
        assert_eq!(look(&both, Some("1")).as_deref(), Some("1"));
        assert_eq!(look(&both, None).as_deref(), Some("2"));
        assert_eq!(look(&older, None).as_deref(), Some("3"));
        assert_eq!(look(&Environment::default(), None), None);
    }
}
