//! Owns the language of permission rules: `Shell(git status)`, `Read(src/**)`, `Write(*.md)`, `Mcp(server:tool)`,
//! `WebFetch(*.example.com)`. Pure.

use super::pattern::Pattern;

/// A rule's text may not be longer.
const LONGEST: usize = 4096;

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
    Mcp { server: Pattern, tool: Pattern },
    /// A host.
    Fetch(Pattern),
}

/// What a command must look like.
#[derive(Debug, Clone)]
pub(super) struct ShellPattern {
    /// `*`: whatever it is, also what cannot be understood.
    pub(super) all: bool,
    /// Its first words.
    pub(super) words: Vec<Pattern>,
    /// All that follows, one space between words.
    pub(super) rest: Option<Pattern>,
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
            "read" => Ok(Self::Read(inside.to_owned())),
            "write" => Ok(Self::Write(inside.to_owned())),
            "mcp" => mcp(inside),
            "webfetch" => Ok(Self::Fetch(Pattern::of_text(&inside.to_ascii_lowercase()))),
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
            Some((head, rest)) if head.len() < space => (head, Some(Pattern::of_text(rest.trim()))),
            _ => (text.strip_suffix(":*").unwrap_or(text), None),
        };
        let words: Vec<Pattern> = head.split_whitespace().map(Pattern::of_text).collect();
        if words.is_empty() {
            return Err("names no command".to_owned());
        }
        Ok(Self { all: false, words, rest })
    }
}

fn mcp(text: &str) -> Result<Token, String> {
    let (server, tool) = text.split_once([':', ',']).unwrap_or((text, "*"));
    let (server, tool) = (server.trim(), tool.trim());
    if server.is_empty() || tool.is_empty() {
        return Err("server or tool is missing; Mcp(server:*) is all tools of a server".to_owned());
    }
    Ok(Token::Mcp { server: Pattern::of_text(server), tool: Pattern::of_text(tool) })
}

/// A text by which [`Pattern::of_text`] finds exactly itself.
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
    fn an_escaped_text_fits_itself_alone() {
        for text in ["a*b", "what?", "c:\\x", "plain"] {
            let pattern = Pattern::of_text(&escaped(text));
            assert!(pattern.is_match(text), "{text}");
            assert!(!pattern.is_match("aXb") && !pattern.is_match("whatX"), "{text}");
        }
    }
}
