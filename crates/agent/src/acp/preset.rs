//! Owns the agents that are known by name: how each is started, how one gets and signs in to it. It starts nothing.

use std::ffi::{OsStr, OsString};

use crate::options::Machine;

/// An agent of the Agent Client Protocol that is known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcpPreset {
    /// Its name in options: `opencode`.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// The program.
    pub command: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// How one gets it.
    pub install: &'static str,
    /// How one signs in.
    pub sign_in: &'static str,
    /// Variables of the user's that it reads its key from: they are passed to it where they are set.
    pub passes: &'static [&'static str],
    /// Whether it is run in Toolway's own tests. The others need an account, and were not tested.
    pub tested: bool,
}

const PRESETS: [AcpPreset; 6] = [
    AcpPreset {
        name: "cursor",
        title: "Cursor's command line agent",
        command: "cursor-agent",
        args: &["acp"],
        install: "install Cursor's command line tool, https://cursor.com/cli",
        sign_in: "run `cursor-agent login`, or set CURSOR_API_KEY",
        passes: &["CURSOR_API_KEY"],
        tested: false,
    },
    AcpPreset {
        name: "opencode",
        title: "opencode",
        command: "opencode",
        args: &["acp"],
        install: "npm install -g opencode-ai, https://opencode.ai",
        sign_in: "run `opencode auth login`, or name a provider in opencode.json",
        passes: &[
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_CONTENT",
            "OPENCODE_CONFIG_DIR",
            "OPENCODE_MODELS_URL",
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_AUTOUPDATE",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
            "XDG_STATE_HOME",
        ],
        tested: true,
    },
    AcpPreset {
        name: "codex",
        title: "Codex",
        command: "codex-acp",
        args: &[],
        install: "npm install -g @zed-industries/codex-acp",
        sign_in: "run `codex login`, or set CODEX_API_KEY or OPENAI_API_KEY",
        passes: &["CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_HOME"],
        tested: false,
    },
    AcpPreset {
        name: "claude",
        title: "Claude Agent",
        command: "claude-agent-acp",
        args: &[],
        install: "npm install -g @zed-industries/claude-agent-acp",
        sign_in: "run `claude /login`, or set ANTHROPIC_API_KEY",
        passes: &["ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR"],
        tested: false,
    },
    AcpPreset {
        name: "gemini",
        title: "Gemini CLI",
        command: "gemini",
        args: &["--acp"],
        install: "npm install -g @google/gemini-cli",
        sign_in: "run `gemini` once and sign in, or set GEMINI_API_KEY",
        passes: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        tested: false,
    },
    AcpPreset {
        name: "qwen",
        title: "Qwen Code",
        command: "qwen",
        args: &["--acp"],
        install: "npm install -g @qwen-code/qwen-code",
        sign_in: "run `qwen` once and sign in, or set OPENAI_API_KEY and OPENAI_BASE_URL",
        passes: &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"],
        tested: false,
    },
];

impl AcpPreset {
    /// All of them.
    pub const fn all() -> &'static [Self] {
        &PRESETS
    }

    /// The variables of the machine that are passed to it.
    pub(crate) fn passed<'a>(
        &self,
        machine: &'a Machine,
    ) -> impl Iterator<Item = &'a (OsString, OsString)> + use<'a> {
        let passes = self.passes;
        machine
            .variables()
            .iter()
            .filter(move |(name, _)| passes.iter().any(|passed| name == OsStr::new(passed)))
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name_and_only_the_tested_one_says_so() {
        for preset in AcpPreset::all() {
            assert_eq!(AcpPreset::named(preset.name), Some(preset));
            assert_eq!(preset.tested, preset.name == "opencode", "{}", preset.name);
        }
        assert_eq!(AcpPreset::named("other"), None);
    }
}
