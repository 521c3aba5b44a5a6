//! What the commands that work with servers share: choosing one, connecting, asking a person, refusing.

mod arguments;
mod companion;
mod near;
mod page;
mod questions;
mod refusal;
mod session;
mod words;

pub(super) use arguments::build;
pub(super) use companion::Voice;
pub(super) use near::near;
pub(super) use page::{Definition, definitions};
pub(super) use refusal::Refusal;
pub(super) use session::{Session, Shell, told};
pub(super) use words::read_words;
