//! Real processes under real supervisors: how they start, what they get, and that nothing of them survives.
//! Unix only: the programs are shell scripts.
#![cfg(unix)]

mod death;
mod end;
mod messages;
mod start;
mod support;
