//! Owns the arguments of `chat`.

use std::path::PathBuf;

use clap::Args;

use super::RuntimeArgs;

/// `toolway chat`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct ChatArgs {
    /// The chat's own tools that the agent may call: `todo`, `ask`, `clipboard`, `open_in_editor`, and commands of chat.json.
    /// The agent's own tools and its servers are not touched by this.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "The chat's own tools")]
    pub(crate) tools: Option<Vec<String>>,
    /// Those that it may not.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "The chat's own tools")]
    pub(crate) exclude_tools: Vec<String>,
    /// None of them.
    #[arg(long, conflicts_with_all = ["tools", "exclude_tools"], help_heading = "The chat's own tools")]
    pub(crate) no_tools: bool,
    /// Go on with an earlier chat: its number or its id, as /resume shows them.
    #[arg(long, value_name = "CHAT")]
    pub(crate) resume: Option<String>,
    /// The agent makes plans, and changes nothing.
    #[arg(long)]
    pub(crate) plan: bool,
    /// The commands of the chat [default: chat.json in Toolway's configuration directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) chat_config: Option<PathBuf>,
    /// The settings of the bridge [default: bridge.json in Toolway's configuration directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}

const AFTER: &str = "Type a prompt and press return; a line that ends with \\ goes on, and \"\"\" begins and ends a text of \
several lines. /help shows the commands. Ctrl-C stops what the agent does; once more when nothing is done ends the \
chat.\n\nWithout a terminal every line of stdin is a prompt, and nobody can be asked.\n\nExit codes: 0 the end of input, or \
/quit; 1 without a terminal: the last prompt, or a command after it, failed; 2 usage or configuration; 130, 129, 143 by SIGINT, SIGHUP, SIGTERM.";
