//! Owns the head of a text file: what stands between two lines of three dashes, as YAML.

use toolway_config::{Format, Node, Problem, read};

/// A text and its head.
#[derive(Debug)]
pub(super) struct Headed<'a> {
    /// `None`: it has none, or an empty one.
    pub(super) head: Option<Node>,
    pub(super) text: &'a str,
}

/// Takes a text apart. The problem has its place in the whole file.
pub(super) fn split(whole: &str) -> Result<Headed<'_>, Problem> {
    let whole = whole.strip_prefix('\u{feff}').unwrap_or(whole);
    let Some((head, text)) = parts(whole) else { return Ok(Headed { head: None, text: whole }) };
    if head.trim().is_empty() {
        return Ok(Headed { head: None, text });
    }
    let read_as = |text: &str| read(text.as_bytes(), Format::Yaml);
    let node = read_as(head).or_else(|problems| {
        // Patterns stand there without quotes, and a star begins something else in YAML.
        read_as(&quoted(head)).map_err(|_| problems)
    });
    match node {
        Ok(node) if node.members().is_some() => Ok(Headed { head: Some(node), text }),
        Ok(node) => Err(below(Problem::error("its head is no list of names and values").at(node.at))),
        Err(mut problems) => {
            Err(below(problems.pop().unwrap_or_else(|| Problem::error("its head cannot be read"))))
        }
    }
}

fn parts(whole: &str) -> Option<(&str, &str)> {
    let after = whole.strip_prefix("---")?;
    let rest = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((rest.get(..at)?, rest.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

/// The head with quotes around values that begin like no plain text: `globs: *.ts`.
fn quoted(head: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((name, value)) if !name.starts_with([' ', '-', '#']) => {
            let value = value.trim();
            let is_plain = !value.is_empty() && !value.starts_with(['"', '\'', '[', '|', '>', '#']);
            if is_plain { format!("{name}: '{}'\n", value.replace('\'', "''")) } else { format!("{line}\n") }
        }
        _ => match line.split_once("- ") {
            Some((before, item)) if before.trim().is_empty() && item.trim_start().starts_with('*') => {
                format!("{before}- '{}'\n", item.trim().replace('\'', "''"))
            }
            _ => format!("{line}\n"),
        },
    };
    head.lines().map(line).collect()
}

/// The head begins in the second line.
fn below(mut problem: Problem) -> Problem {
    if let Some(at) = &mut problem.at {
        at.line += 1;
    }
    problem
}

/// A member that is a text or a list of texts.
pub(super) fn texts(node: &Node) -> Vec<String> {
    let one = |text: &str| split_list(text);
    match (node.as_str(), node.items()) {
        (Some(text), _) => one(text),
        (None, Some(items)) => {
            items.iter().filter_map(Node::as_str).map(|text| text.trim().to_owned()).collect()
        }
        (None, None) => Vec::new(),
    }
}

/// Texts with commas between them; commas in braces belong to a text.
fn split_list(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(ToOwned::to_owned).collect()
}

/// A member that is a word for true or false.
pub(super) fn flag(head: Option<&Node>, name: &str) -> bool {
    let node = head.and_then(|head| head.get(name));
    node.is_some_and(|node| node.as_bool() == Some(true) || node.as_str() == Some("true"))
}

/// A member that is a text and not empty.
pub(super) fn text(head: Option<&Node>, name: &str) -> Option<String> {
    let text = head.and_then(|head| head.get(name)).and_then(Node::as_str)?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_found_and_patterns_need_no_quotes() {
        let text =
            "---\r\ndescription: a: b\r\nglobs: *.ts,src/{a,b}/**\r\nalwaysApply: false\r\n---\r\nBody\n";
        let headed = split(text).unwrap();
        let head = headed.head.as_ref();
        assert_eq!(headed.text, "Body\n");
        assert_eq!(texts(head.unwrap().get("globs").unwrap()), ["*.ts", "src/{a,b}/**"]);
        assert!(!flag(head, "alwaysApply"));
        let list = split("---\nglobs:\n  - *.ts\n  - '*.js'\n---\n").unwrap();
        assert_eq!(texts(list.head.unwrap().get("globs").unwrap()), ["*.ts", "*.js"]);
        for plain in ["no head", "---\nnever closed", "----\na: b\n---\n", "---\n---\nx"] {
            assert!(split(plain).unwrap().head.is_none(), "{plain}");
        }
        let problem = split("---\nname: x\n\tbad: [\n---\n").unwrap_err();
        assert!(problem.at.is_some_and(|at| at.line >= 2), "{problem:?}");
        assert!(split("---\njust text\n---\n").is_err());
    }
}
