//! Owns what a server over stdio is called in the list of saved results. Pure.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Programs that start another one: the package, module or script that they start says more.
const STARTERS: &[&str] = &[
    "npx", "bunx", "uvx", "pipx", "uv", "node", "bun", "deno", "python", "python3", "py", "ruby", "php",
    "cmd",
];
/// Words between a starter and what it starts.
const WORDS: &[&str] = &["run", "exec", "x", "tool"];

/// The program's name; behind `npx`, `python` and their like the name of what they start.
pub(super) fn server_name(program: &OsStr, arguments: &[OsString]) -> String {
    let own = stem(program);
    if !STARTERS.contains(&own.to_ascii_lowercase().as_str()) {
        return own;
    }
    let plain = |word: &&OsString| {
        let text = word.to_string_lossy();
        !text.starts_with(['-', '/']) && !WORDS.contains(&&*text) || Path::new(word).components().count() > 2
    };
    let started = arguments.iter().find(plain).map(|started| started.to_string_lossy());
    // What is not one word is code (`python -c`), and stays out of the list.
    let started =
        started.filter(|started| !started.contains(|c: char| c.is_whitespace() || ";()'\"".contains(c)));
    started.map_or(own, |started| package(&started))
}

/// `@scope/name@1.2` is `name`; of a path the file's stem.
fn package(text: &str) -> String {
    let last = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let name = last.split('@').next().filter(|name| !name.is_empty()).unwrap_or(last);
    let script = [".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".php", ".cmd", ".exe"];
    script.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
}

fn stem(program: &OsStr) -> String {
    Path::new(program).file_stem().unwrap_or(program).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starter_gives_the_name_of_what_it_starts() {
        for (line, name) in [
            ("npx -y @modelcontextprotocol/server-everything@2.0.0 stdio", "server-everything"),
            ("/usr/bin/npx.cmd some-server@latest", "some-server"),
            ("uvx mcp-server-git --repository x", "mcp-server-git"),
            ("uv run my_server.py", "my_server"),
            ("python3 -m my.module", "my.module"),
            ("node --no-warnings /opt/x/dist/server.mjs", "server"),
            ("node /opt/server.js", "server"),
            ("cmd /c npx", "npx"),
            ("/opt/bin/my-server --flag value", "my-server"),
            ("npx", "npx"),
        ] {
            let mut words = line.split(' ').map(OsString::from);
            let program = words.next().unwrap();
            assert_eq!(server_name(&program, &words.collect::<Vec<_>>()), name, "{line}");
        }
        assert_eq!(server_name("python3".as_ref(), &["-c".into(), "import x; x.run()".into()]), "python3");
    }
}
