//! Owns how a definition is shown to a person without showing what may be secret. Pure.

mod shown;

pub(crate) use shown::{shown_fields, variables};
pub(crate) use toolway_secret::{secret_in_argument, secret_name, secret_value};
