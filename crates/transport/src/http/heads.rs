//! Owns a short memory of how a server answered: for choosing between transports, and for a diagnosis. Decides nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};

use super::target::Target;

/// Only the first answers are of interest: those of the start.
const MAX: usize = 8;

/// The head of one HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The request's method: `POST`, `GET`, `DELETE`.
    pub method: String,
    /// Where it went: without the query.
    pub url: String,
    /// The answer's status.
    pub status: u16,
    /// Its content type, as sent.
    pub content_type: Option<String>,
}

/// The first answers of a server.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    full: AtomicBool,
    first: Mutex<Vec<Head>>,
}

impl Heads {
    pub(crate) fn note(&self, method: &Method, at: &Target, status: StatusCode, headers: &HeaderMap) {
        if self.full.load(Ordering::Relaxed) {
            return;
        }
        let content_type =
            headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let head =
            Head { method: method.to_string(), url: at.to_string(), status: status.as_u16(), content_type };
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.push(head);
        self.full.store(first.len() >= MAX, Ordering::Relaxed);
    }

    pub(crate) fn first(&self) -> Vec<Head> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
