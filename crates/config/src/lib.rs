//! Server definitions from the files of every MCP client: read, checked, merged, trusted, edited. Starts nothing.
