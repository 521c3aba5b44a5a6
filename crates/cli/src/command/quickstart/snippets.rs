//! Owns what a person pastes into a client's configuration. The places are told in docs/clients.md.

use serde_json::json;

/// Where a line of a snippet is broken.
const BREAK: &str = "\n   ";

/// The snippets with this program.
pub(super) fn snippets(program: &str) -> String {
    let server = ["--", "npx", "-y", "@modelcontextprotocol/server-everything"];
    let entry = |options: &[&str]| {
        let args: Vec<&str> = ["stdio"].iter().chain(options).chain(&server).copied().collect();
        // JSON strings, and arrays of them, are TOML too.
        (json!(program).to_string(), json!(args).to_string())
    };
    let (command, args) = entry(&[]);
    let cursor = mcp_servers(&command, &args);
    let (command, args) = entry(&["--client", "claude-code"]);
    let claude = mcp_servers(&command, &args);
    let (command, args) = entry(&["--client", "codex"]);
    let codex = format!("[mcp_servers.name]\n  command = {command}\n  args = {args}");
    let (command, args) = entry(&["--client", "vscode"]);
    let vscode =
        format!(r#"{{"servers":{{"name":{{"type":"stdio","command":{command},{BREAK}"args":{args}}}}}}}"#);
    format!(
        "Paste this to have Toolway in front of a server; what follows \"--\" is the server's own command.\n\
         Cursor, ~/.cursor/mcp.json:\n  {cursor}\n\
         Claude Code, .mcp.json:\n  {claude}\n\
         Codex, ~/.codex/config.toml:\n  {codex}\n\
         VS Code, .vscode/mcp.json:\n  {vscode}\n"
    )
}

fn mcp_servers(command: &str, args: &str) -> String {
    format!(r#"{{"mcpServers":{{"name":{{"command":{command},{BREAK}"args":{args}}}}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_windows_path_is_escaped() {
        let text = snippets(r"C:\Tools\toolway.exe");
        assert!(text.contains(r#""command":"C:\\Tools\\toolway.exe""#), "{text}");
        assert!(text.contains(r#"command = "C:\\Tools\\toolway.exe""#), "{text}");
        assert!(text.contains(
            r#"args = ["stdio","--client","codex","--","npx","-y","@modelcontextprotocol/server-everything"]"#
        ));
    }
}
