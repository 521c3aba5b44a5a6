//! Owns every name of a naming profile: prefixes, keys, ids, files, commands. No other code spells them.

/// The names that one kind of host uses on the wire, on disk and on screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// What `--profile` calls it.
    pub id: &'static str,
    /// What the MCP name of a host tool begins with.
    pub prefix: &'static str,
    /// The key of the loopback server among the agent's MCP servers.
    pub server_key: &'static str,
    /// The tool that activates a skill, by its host name.
    pub skill_tool: &'static str,
    /// The tool that only shows what the agent did, by its host name.
    pub display_tool: &'static str,
    /// What titles of neutral cards begin with.
    pub card_title: &'static str,
    /// What the ids of replayed calls begin with.
    pub replay_prefix: &'static str,
    /// What the ids of runs, and of calls that the host executes, begin with.
    pub run_prefix: &'static str,
    /// What the hashes of MCP request ids begin with in diagnostics.
    pub request_prefix: &'static str,
    /// The first segment of the endpoint's path.
    pub path_segment: &'static str,
    /// `serverInfo.name` of the loopback server.
    pub server_name: &'static str,
    /// `serverInfo.version` of the loopback server.
    pub server_version: &'static str,
    /// The member of a tool's `_meta` that says its host name.
    pub meta_name: &'static str,
    /// What diagnostic lines on stderr begin with, in brackets.
    pub diagnostic_tag: &'static str,
    /// The command that prints the debug report.
    pub debug_command: &'static str,
    /// The folder of the user file, below the home directory (or the configuration directory, see `in_config_dir`).
    pub user_folder: &'static str,
    /// The name of the user file.
    pub user_file: &'static str,
    /// The user file lies below the user's configuration directory, not below the home directory.
    pub in_config_dir: bool,
    /// The variable that moves the folder of the user file.
    pub folder_variable: Option<&'static str>,
    /// How texts call the host.
    pub host: &'static str,
}

impl Profile {
    /// pi with Cursor's agent, as its documented page has it.
    pub const PI: Self = Self {
        id: "pi",
        prefix: "pi__",
        server_key: "pi_tools",
        skill_tool: "cursor_activate_skill",
        display_tool: "cursor",
        card_title: "Cursor",
        replay_prefix: "cursor-replay-",
        run_prefix: "cursor-pi-bridge-run-",
        request_prefix: "cursor-mcp-call-",
        path_segment: "cursor-pi-tool-bridge",
        server_name: "pi-cursor-sdk-tool-bridge",
        server_version: "0.1.0",
        meta_name: "piToolName",
        diagnostic_tag: "pi-cursor-sdk:bridge",
        debug_command: "/cursor-tools",
        user_folder: ".pi/agent",
        user_file: "cursor-sdk.json",
        in_config_dir: false,
        folder_variable: Some("PI_CODING_AGENT_DIR"),
        host: "pi",
    };

    /// Every other host.
    pub const HOST: Self = Self {
        id: "host",
        prefix: "host__",
        server_key: "host_tools",
        skill_tool: "activate_skill",
        display_tool: "agent",
        card_title: "Agent",
        replay_prefix: "toolway-replay-",
        run_prefix: "toolway-bridge-run-",
        request_prefix: "toolway-mcp-call-",
        path_segment: "toolway-bridge",
        server_name: "toolway-bridge",
        server_version: env!("CARGO_PKG_VERSION"),
        meta_name: "hostToolName",
        diagnostic_tag: "toolway:bridge",
        debug_command: "/tools",
        user_folder: "toolway",
        user_file: "bridge.json",
        in_config_dir: true,
        folder_variable: None,
        host: "host",
    };

    /// All of them.
    pub const ALL: [Self; 2] = [Self::PI, Self::HOST];

    /// The profile of that id.
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.id == id)
    }
}
