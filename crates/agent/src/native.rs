//! native

pub(crate) mod model;
