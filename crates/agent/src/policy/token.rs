//! Owns the language of permission rules: `Shell(git status)`, `Read(src/**)`, `Write(*.md)`, `Mcp(server:tool)`,
//! `WebFetch(*.example.com)`. Pure.

use regex::Regex;

/// A rule's text may not be longer.
const LONGEST: usize = 4096;
/// The largest program of a pattern, in bytes.
const LARGEST: usize = 1 << 20;

/// A rule as it was read.
#[derive(Debug, Clone)]
pub(super) enum Token {
    /// A command.
    Shell(ShellPattern),
    /// A pattern of paths.
    Read(String),
    /// A pattern of paths.
    Write(String),
    /// A server and its tool.
    Mcp { server: Regex, tool: Regex },
    /// A host.
    Fetch(Regex),
}

/// What a command must look like.
#[derive(Debug, Clone)]
pub(super) struct ShellPattern {
    /// `*`: whatever it is, also what cannot be understood.
    pub(super) all: bool,
    /// Its first words.
    pub(super) words: Vec<Regex>,
    /// All that follows, one space between words.
    pub(super) rest: Option<Regex>,
}

/// The kinds of rules, as they are written.
const KINDS: &str = "a rule is Shell(command), Read(path), Write(path), Mcp(server:tool) or WebFetch(host)";

impl Token {
    /// Reads a rule.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(format!("is longer than {LONGEST} bytes"));
        }
        let inside =
            text.split_once('(').and_then(|(kind, rest)| Some((kind.trim(), rest.strip_suffix(')')?)));
        let Some((kind, inside)) = inside else { return Err(KINDS.to_owned()) };
        let inside = inside.trim();
        if inside.is_empty() {
            return Err(format!("{kind}() names nothing; {kind}(*) is all"));
        }
        match kind.to_ascii_lowercase().as_str() {
            "shell" => Ok(Self::Shell(ShellPattern::parse(inside)?)),
            "read" => path(inside).map(Self::Read),
            "write" => path(inside).map(Self::Write),
            "mcp" => mcp(inside),
            "webfetch" => text_pattern(&inside.to_ascii_lowercase()).map(Self::Fetch),
            _ => Err(format!("{kind:?} is no kind of rule; {KINDS}")),
        }
    }
}

impl ShellPattern {
    fn parse(text: &str) -> Result<Self, String> {
        if matches!(text, "*" | "**") {
            return Ok(Self { all: true, words: Vec::new(), rest: None });
        }
        let space = text.find(char::is_whitespace).unwrap_or(text.len());
        let (head, rest) = match text.split_once(':') {
            // `command:arguments`
            Some((head, rest)) if head.len() < space => (head, Some(text_pattern(rest.trim())?)),
            _ => (text.strip_suffix(":*").unwrap_or(text), None),
        };
        let words: Vec<Regex> = head.split_whitespace().map(text_pattern).collect::<Result<_, _>>()?;
        if words.is_empty() {
            return Err("names no command".to_owned());
        }
        Ok(Self { all: false, words, rest })
    }
}

fn path(text: &str) -> Result<String, String> {
    path_pattern(text, false)?;
    Ok(text.to_owned())
}

fn mcp(text: &str) -> Result<Token, String> {
    let (server, tool) = text.split_once([':', ',']).unwrap_or((text, "*"));
    let (server, tool) = (server.trim(), tool.trim());
    if server.is_empty() || tool.is_empty() {
        return Err("server or tool is missing; Mcp(server:*) is all tools of a server".to_owned());
    }
    Ok(Token::Mcp { server: text_pattern(server)?, tool: text_pattern(tool)? })
}

/// `*` is any text, `?` any character; a backslash takes what follows as it is.
pub(super) fn text_pattern(pattern: &str) -> Result<Regex, String> {
    let mut source = String::from("(?s)^");
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' => source.push_str(".*"),
            '?' => source.push('.'),
            '\\' => literal(characters.next().unwrap_or('\\'), &mut source),
            other => literal(other, &mut source),
        }
    }
    source.push('$');
    compile(&source)
}

/// A text by which [`text_pattern`] finds exactly itself.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// `*` and `?` stay inside a folder, `**` does not. With `/` between the names.
pub(super) fn path_pattern(pattern: &str, any_case: bool) -> Result<Regex, String> {
    let mut source = String::from(if any_case { "(?si)^" } else { "(?s)^" });
    let mut rest = pattern;
    let mut at_start = true;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/").filter(|_| at_start) {
            source.push_str("(?:.*/)?");
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("/**").filter(|after| after.is_empty()) {
            // The folder itself as well.
            source.push_str("(?:/.*)?");
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("**") {
            source.push_str(".*");
            (rest, at_start) = (after, false);
            continue;
        }
        match character {
            '*' => source.push_str("[^/]*"),
            '?' => source.push_str("[^/]"),
            other => literal(other, &mut source),
        }
        at_start = character == '/';
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    source.push('$');
    compile(&source)
}

fn literal(character: char, source: &mut String) {
    let mut buffer = [0; 4];
    source.push_str(&regex::escape(character.encode_utf8(&mut buffer)));
}

fn compile(source: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(source)
        .size_limit(LARGEST)
        .build()
        .map_err(|_| "is too large a pattern".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_understood_say_what_a_rule_is() {
        for bad in ["", "Shell", "Shell(", "Shell()", "Run(x)", "Mcp(:x)", "Mcp(x:)", "rm", "Shell(rm"] {
            assert!(Token::parse(bad).is_err(), "{bad}");
        }
        let long = format!("Shell({})", "x".repeat(LONGEST));
        assert!(Token::parse(&long).unwrap_err().contains("longer"));
        for good in
            ["Shell(*)", " shell( git ) ", "Mcp(a:b)", "Mcp(a, b)", "Mcp(a)", "WebFetch(*.x.org)", "Read(/)"]
        {
            assert!(Token::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn paths_fit_patterns_by_names() {
        for (pattern, path, fits) in [
            ("src/**/*.ts", "src/a.ts", true),
            ("src/**/*.ts", "src/b/c/a.ts", true),
            ("src/**/*.ts", "xsrc/a.ts", false),
            ("**/.env*", ".env", true),
            ("**/.env*", "a/b/.env.local", true),
            ("**/.env*", "a/b.env", false),
            (".env*", "a/.env", false),
            ("src/**", "src", true),
            ("src/**", "src/a/b", true),
            ("src/**", "srcs", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(path_pattern(pattern, false).unwrap().is_match(path), fits, "{pattern} {path}");
        }
        assert!(path_pattern("SRC/*", true).unwrap().is_match("src/A"));
    }

    #[test]
    fn an_escaped_text_fits_itself_alone() {
        for text in ["a*b", "what?", "c:\\x", "plain"] {
            let pattern = text_pattern(&escaped(text)).unwrap();
            assert!(pattern.is_match(text), "{text}");
            assert!(!pattern.is_match("aXb") && !pattern.is_match("whatX"), "{text}");
        }
    }
}
