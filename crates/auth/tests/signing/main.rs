//! Signing in from outside: a strict issuer, a scripted browser, a store on disk, and processes that are killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod desk;
mod logins;
mod many;
mod processes;
