//! Owns the arguments of `acp`.

use clap::Args;

use super::{OfferArgs, RuntimeArgs};

/// `toolway acp`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct AcpArgs {
    /// Another model that the editor may choose. May be repeated.
    #[arg(long, value_name = "ID", help_heading = "Model")]
    pub(crate) offer_model: Vec<String>,
    #[command(flatten)]
    pub(crate) offer: OfferArgs,
    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

const AFTER: &str = "The editor names the folder and may add servers; what nothing allows is asked there. Keys of models \
are taken from the environment alone (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...).\n\nExit codes: 0 the editor closed stdin; \
1 it reads no more; 2 usage or configuration; 129, 130, 143 by SIGHUP, SIGINT, SIGTERM.";
