//! Owns the member of an own entry that remembers the clients it came from: its name, and whose placeholders the
//! entry's texts hold. What else is in it is the clients' business.

use crate::dialect::Dialect;

/// The member of Toolway's own entries that remembers where they came from: `{dialect?, clients: {ID: {name?, project?,
/// notes?}}}`. `dialect` says whose placeholders the entry's texts hold, where it is not Toolway's own. `notes` are JSON
/// pointers into the client's entry, each with what Toolway would write there (`ours`) and what stood there (`theirs`);
/// either is missing where there is nothing.
pub const ORIGIN: &str = "x-toolway-origin";

/// The dialect that an origin names, if there is one of that name.
pub(crate) fn dialect_named(name: Option<&str>) -> Dialect {
    name.and_then(Dialect::by_name).unwrap_or(Dialect::Toolway)
}
