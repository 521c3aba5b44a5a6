//! Owns which client's conventions a definition is written in: which placeholders mean something, and in which fields.
//! Pure.

/// Whose conventions a definition follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Toolway's own files, and files named by the user.
    Toolway,
    /// Given by a program: nothing is replaced, nothing unknown is accepted.
    Inline,
    /// Cursor.
    Cursor,
    /// VS Code and its forks.
    VsCode,
    /// GitHub Copilot CLI.
    CopilotCli,
    /// Claude Code, and the portable `.mcp.json`.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Windsurf.
    Windsurf,
    /// Antigravity.
    Antigravity,
    /// Cline.
    Cline,
    /// Roo Code.
    Roo,
    /// Zed.
    Zed,
    /// `OpenCode`.
    OpenCode,
    /// Goose.
    Goose,
    /// Kiro.
    Kiro,
    /// Amazon Q Developer.
    AmazonQ,
    /// Factory Droid.
    Factory,
    /// Crush.
    Crush,
    /// Pi, with its MCP adapter.
    Pi,
    /// A plugin of Cursor or Claude Code: `${CURSOR_PLUGIN_ROOT}`, `${CLAUDE_PLUGIN_ROOT}` and variables.
    Plugin,
    /// An Agent Plugins package: `${PLUGIN_ROOT}` and `${PLUGIN_DATA}`, in args, env and cwd only.
    AgentPlugin,
    /// Continue.
    Continue,
    /// `MCPorter`.
    Mcporter,
    /// LM Studio.
    LmStudio,
    /// Junie.
    Junie,
}

/// A part of a definition that placeholders may stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The program.
    Command,
    /// One of its arguments.
    Args,
    /// The value of a variable.
    Env,
    /// The working directory, and the path of an `envFile`.
    Cwd,
    /// The address.
    Url,
    /// The value of a header.
    Headers,
    /// A value of `auth`.
    Auth,
}

/// One way to write a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// `${env:NAME}`.
    EnvColon,
    /// `${NAME}` and `${NAME:-default}`.
    Braces,
    /// `$NAME`.
    Dollar,
    /// `$env:NAME`.
    DollarEnv,
    /// `${userHome}`, `${workspaceFolder}`, `${workspaceFolderBasename}`, `${pathSeparator}`, `${/}`.
    Places,
    /// `${input:ID}`.
    Input,
    /// `${command:TEXT}`: the output of a command.
    CommandColon,
    /// `${keyring:NAME}`: a secret of the user's keyring.
    KeyringColon,
    /// A value that begins with `!` is the output of a command; `!!` stands for `!`.
    Bang,
    /// `{env:NAME}`.
    BareEnv,
    /// `{file:PATH}`: the contents of a file.
    BareFile,
    /// `${{ secrets.NAME }}`.
    Secrets,
    /// `${CURSOR_PLUGIN_ROOT}`, `${CLAUDE_PLUGIN_ROOT}`, `${PLUGIN_ROOT}`, `${PLUGIN_DATA}`.
    PluginPlaces,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 28] = [
        Self::Toolway,
        Self::Inline,
        Self::Cursor,
        Self::VsCode,
        Self::CopilotCli,
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Windsurf,
        Self::Antigravity,
        Self::Cline,
        Self::Roo,
        Self::Zed,
        Self::OpenCode,
        Self::Goose,
        Self::Kiro,
        Self::AmazonQ,
        Self::Factory,
        Self::Crush,
        Self::Pi,
        Self::Plugin,
        Self::AgentPlugin,
        Self::Continue,
        Self::Mcporter,
        Self::LmStudio,
        Self::Junie,
    ];

    /// The name used in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Toolway => "toolway",
            Self::Inline => "inline",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::CopilotCli => "copilot-cli",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Windsurf => "windsurf",
            Self::Antigravity => "antigravity",
            Self::Cline => "cline",
            Self::Roo => "roo",
            Self::Zed => "zed",
            Self::OpenCode => "opencode",
            Self::Goose => "goose",
            Self::Kiro => "kiro",
            Self::AmazonQ => "amazon-q",
            Self::Factory => "factory",
            Self::Crush => "crush",
            Self::Pi => "pi",
            Self::Plugin => "plugin",
            Self::AgentPlugin => "agent-plugin",
            Self::Continue => "continue",
            Self::Mcporter => "mcporter",
            Self::LmStudio => "lm-studio",
            Self::Junie => "junie",
        }
    }

    /// The one of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The placeholders that mean something; none: every text is literal.
    pub fn syntaxes(self) -> &'static [Syntax] {
        use Syntax::{
            Bang, BareEnv, BareFile, Braces, CommandColon, Dollar, DollarEnv, EnvColon, Input, KeyringColon,
            Places, PluginPlaces, Secrets,
        };
        match self {
            Self::Toolway => &[EnvColon, Braces, Places, Input, CommandColon, KeyringColon],
            Self::Cursor | Self::LmStudio | Self::Junie | Self::Mcporter => {
                &[EnvColon, Braces, Places, Input]
            }
            Self::VsCode => &[EnvColon, Places, Input],
            Self::ClaudeCode => &[EnvColon, Braces],
            Self::Windsurf | Self::Roo => &[EnvColon],
            Self::OpenCode => &[EnvColon, Braces, Places, BareEnv, BareFile],
            Self::Kiro | Self::AmazonQ => &[Braces],
            Self::Gemini | Self::Qwen | Self::Crush => &[Dollar, Braces],
            Self::Pi => &[Braces, DollarEnv, Bang],
            Self::Plugin => &[PluginPlaces, EnvColon, Braces, Places, Input],
            Self::AgentPlugin => &[PluginPlaces],
            Self::Continue => &[Secrets],
            Self::Inline
            | Self::CopilotCli
            | Self::ClaudeDesktop
            | Self::Codex
            | Self::Antigravity
            | Self::Cline
            | Self::Zed
            | Self::Goose
            | Self::Factory => &[],
        }
    }

    /// Whether that placeholder means something.
    pub fn has(self, syntax: Syntax) -> bool {
        self.syntaxes().contains(&syntax)
    }

    /// Whether placeholders in that field mean something.
    pub fn expands(self, field: Field) -> bool {
        match self {
            Self::AgentPlugin => matches!(field, Field::Args | Field::Env | Field::Cwd),
            _ => !self.syntaxes().is_empty(),
        }
    }

    /// Whether a leading `~/` in command, args and cwd is the home directory.
    pub fn expands_home(self) -> bool {
        self != Self::Inline && !matches!(self, Self::Codex | Self::ClaudeDesktop | Self::Zed)
    }

    /// Whether names and keys follow Toolway's own rules to the letter.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Toolway | Self::Inline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_replace_nothing_are_left_alone() {
        for dialect in [Dialect::Codex, Dialect::ClaudeDesktop, Dialect::Zed, Dialect::Inline] {
            assert!(dialect.syntaxes().is_empty() && !dialect.expands(Field::Args), "{dialect:?}");
        }
        assert!(Dialect::AgentPlugin.expands(Field::Env) && !Dialect::AgentPlugin.expands(Field::Command));
    }
}
