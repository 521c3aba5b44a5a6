//! `toolway __query`: one query of a relay's read-back tool. Bounds this process first, so that no filter can take
//! more than its share of the machine, even when the relay is gone.

use std::io::{self, BufWriter, Write};

use toolway_guard::{Store, StoreConfig, answer_query, bound_query};

use crate::args::QueryArgs;
use crate::compose::UsageError;
use crate::exit::Exit;

/// Runs the query. What goes wrong with it is an answer too, so the exit says only whether it was given.
pub(super) fn run(args: &QueryArgs) -> Result<Exit, UsageError> {
    bound_query(args.seconds).map_err(|error| UsageError::new("limits", error.to_string()))?;
    let store = Store::new(StoreConfig::new(args.dir.clone()));
    let mut out = BufWriter::new(super::stream(io::stdout())?);
    let written = answer_query(&store, &args.session, &args.id, &args.filter, &mut out);
    Ok(if written.and_then(|()| out.flush()).is_ok() { Exit::Done } else { Exit::Ended })
}
