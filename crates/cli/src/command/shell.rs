//! What the commands that work with servers share: choosing one, connecting, asking a person, refusing.

mod arguments;
mod companion;
mod interrupts;
mod near;
mod page;
mod questions;
mod refusal;
mod session;
mod start;
mod words;

pub(super) use arguments::{Word, build};
pub(super) use interrupts::Interrupts;
pub(super) use near::near;
pub(super) use page::{Definition, definitions, find_prompt, find_tool, offered, remarks};
pub(super) use refusal::{Refusal, exit_of};
pub(super) use session::{Choice, Session, Shell, chosen, told};
pub(super) use start::{Started, Wanted, start_all};
pub(super) use words::read_words;
