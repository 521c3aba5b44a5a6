//! Owns which tool of the agent is which: types, their other names, and what only looks like a web search.

/// A tool of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    Read,
    Shell,
    Grep,
    Glob,
    Ls,
    Edit,
    Notebook,
    Write,
    Delete,
    Lints,
    Todos,
    Plan,
    Task,
    Image,
    Mcp,
    CodeSearch,
    Screen,
    WebSearch,
    WebFetch,
    Unknown,
}

impl ToolKind {
    /// The tool of that name: as the SDK has it, as the command line tool writes it, or as models call it.
    pub(super) fn of(name: &str) -> Self {
        let name = plain(name);
        let name = name.strip_suffix("toolcall").unwrap_or(&name);
        match name {
            "read" | "readfile" => Self::Read,
            "shell" | "runterminalcmd" | "terminal" | "bash" => Self::Shell,
            "grep" | "grepsearch" | "search" => Self::Grep,
            "glob" | "filesearch" | "globfilesearch" => Self::Glob,
            "ls" | "listdir" => Self::Ls,
            "edit" | "strreplace" | "editfile" => Self::Edit,
            "notebook" => Self::Notebook,
            name if name.contains("notebook") && name.contains("edit") => Self::Notebook,
            "write" | "writefile" => Self::Write,
            "delete" | "deletefile" => Self::Delete,
            "readlints" => Self::Lints,
            "updatetodos" | "todowrite" => Self::Todos,
            "createplan" => Self::Plan,
            "task" => Self::Task,
            "generateimage" => Self::Image,
            "mcp" => Self::Mcp,
            "semsearch" | "codebasesearch" | "semanticsearch" => Self::CodeSearch,
            "recordscreen" => Self::Screen,
            _ => web(name).unwrap_or(Self::Unknown),
        }
    }

    /// A running call of it is announced, when it takes its time.
    pub(super) fn is_announced(self) -> bool {
        matches!(
            self,
            Self::Task
                | Self::Shell
                | Self::Mcp
                | Self::Image
                | Self::Screen
                | Self::CodeSearch
                | Self::WebSearch
                | Self::WebFetch
                | Self::Plan
                | Self::Todos
        )
    }
}

/// A search or fetch in the web, by its name. A search of code or files is none.
pub(super) fn web(name: &str) -> Option<ToolKind> {
    const SEARCHES: [&str; 4] = ["websearch", "searchweb", "internetsearch", "searchinternet"];
    const ENGINES: [&str; 8] =
        ["google", "bing", "brave", "tavily", "exa", "duckduckgo", "perplexity", "serp"];
    const FETCHES: [&str; 9] = [
        "webfetch",
        "fetchweb",
        "urlfetch",
        "fetchurl",
        "readurl",
        "fetchpage",
        "webpage",
        "httpget",
        "fetchhtml",
    ];
    let name = plain(name);
    let is_search = SEARCHES.iter().any(|part| name.contains(part))
        || (name.contains("search") && ENGINES.iter().any(|engine| name.contains(engine)));
    if is_search {
        return Some(ToolKind::WebSearch);
    }
    let is_fetch = name == "fetch" || FETCHES.iter().any(|part| name.contains(part));
    is_fetch.then_some(ToolKind::WebFetch)
}

/// Letters and digits alone, in lower case: `run_terminal_cmd` and `RunTerminalCmd` are one name.
fn plain(name: &str) -> String {
    name.chars().take(256).filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_tool_is_known() {
        let table = [
            (ToolKind::Read, "read read_file readToolCall"),
            (ToolKind::Shell, "shell run_terminal_cmd terminal bash shellToolCall"),
            (ToolKind::Grep, "grep grep_search search grepToolCall"),
            (ToolKind::Glob, "glob file_search globToolCall"),
            (ToolKind::Ls, "ls list_dir lsToolCall"),
            (ToolKind::Edit, "edit strreplace str_replace edit_file editToolCall StrReplace"),
            (
                ToolKind::Notebook,
                "edit_notebook notebook_edit EditNotebook editNotebookToolCall notebook edit_notebook_cell notebookEditCell",
            ),
            (ToolKind::Write, "write write_file writeToolCall"),
            (ToolKind::Delete, "delete deleteToolCall"),
            (ToolKind::Lints, "readLints readLintsToolCall"),
            (ToolKind::Todos, "updateTodos updateTodosToolCall"),
            (ToolKind::Plan, "createPlan"),
            (ToolKind::Task, "task taskToolCall"),
            (ToolKind::Image, "generateImage"),
            (ToolKind::Mcp, "mcp mcpToolCall"),
            (ToolKind::CodeSearch, "semSearch semSearchToolCall"),
            (ToolKind::Screen, "recordScreen"),
            (ToolKind::WebSearch, "webSearch web_search brave_search webSearchToolCall"),
            (ToolKind::WebFetch, "webFetch web_fetch fetch webFetchToolCall"),
            (
                ToolKind::Unknown,
                "constructor __proto__ toString hasOwnProperty futureThing listMcpResources searching",
            ),
        ];
        for (kind, names) in table {
            for name in names.split(' ') {
                assert_eq!(ToolKind::of(name), kind, "{name}");
            }
        }
        assert_eq!(ToolKind::of(""), ToolKind::Unknown);
    }
}
