//! Signing in from outside: a strict issuer, a scripted browser, a store on disk, and processes that are killed.

mod answers;
mod clients;
mod crowds;
mod damaged;
mod desk;
mod ending;
mod lies;
mod logins;
mod machine;
mod many;
mod processes;
mod renewing;
mod stepping;
