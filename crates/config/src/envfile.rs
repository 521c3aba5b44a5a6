//! Owns files of variables (`.env`): names and values as they stand, nothing replaced in them. Reads no process
//! environment, which is why it does its own reading.

use crate::problem::{Position, Problem};

/// The variables of a file, in its order. `NAME=value`, `export NAME=value`, `#` comments; values in single quotes are
/// literal, in double quotes `\n`, `\r`, `\t`, `\"` and `\\` are understood, and both may go over several lines. A
/// problem tells the line and never the value.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, String)>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    let (mut rest, mut line) = (text, 1_u32);
    while !rest.is_empty() {
        let (current, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = current.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            (rest, line) = (after, line + 1);
            continue;
        }
        let fault = |message: &str| {
            let at = Position { line, column: 1, offset: text.len() - rest.len() };
            Problem::error(message).at(at)
        };
        let Some((name, value)) = rest.split_once('=').filter(|(name, _)| !name.contains('\n')) else {
            return Err(fault("has no '='").hint("a line is NAME=value"));
        };
        let name = name.trim();
        let name = name.strip_prefix("export ").unwrap_or(name).trim();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '(' | ')');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(fault("has no name of a variable before the '='"));
        }
        let value = value.trim_start_matches([' ', '\t']);
        let (value, left) = match value.chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => {
                quoted(value, quote).ok_or_else(|| fault("has a quote that does not end"))?
            }
            _ => unquoted(value),
        };
        variables.push((name.to_owned(), value));
        let used = rest.get(..rest.len() - left.len()).unwrap_or_default();
        line += u32::try_from(used.matches('\n').count()).unwrap_or(0);
        rest = left;
    }
    Ok(variables)
}

/// The value up to the line's end, or to a comment, and what follows the line.
fn unquoted(text: &str) -> (String, &str) {
    let (value, after) = text.split_once('\n').unwrap_or((text, ""));
    let comment = value.find(" #").or_else(|| value.find("\t#"));
    let value = comment.and_then(|at| value.get(..at)).unwrap_or(value);
    (value.trim().to_owned(), after)
}

/// The value between quotes, and what follows its last line. `None`: the quote does not end.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => {
                let after = text.get(at + 1..)?;
                return Some((value, after.split_once('\n').map_or("", |(_, after)| after)));
            }
            '\\' if quote == '"' => match letters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            '\r' => {}
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap()
    }

    #[test]
    fn values_are_taken_as_they_stand() {
        let text = "\u{feff}# top\nA=1\r\nexport B = two words # note\nC='$A \\n'\nD=\"x\\ny $A\"\nE=\nF=pa$$w0rd#x\n\
                    G=\"a\nb\"  # c\nH=a=b\nI=it's";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "$A \\n"),
            ("D", "x\ny $A"),
            ("E", ""),
            ("F", "pa$$w0rd#x"),
            ("G", "a\nb"),
            ("H", "a=b"),
            ("I", "it's"),
        ];
        assert_eq!(read(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(read(""), []);
    }

    #[test]
    fn a_fault_tells_the_line_and_not_the_value() {
        for (text, line) in [("A=1\nhunter2\n", 2), ("A=\"1\n2\"\nB=\"hunter2", 3), ("A=1\n a b=hunter2", 2)]
        {
            let problem = parse(text).unwrap_err();
            assert_eq!(problem.at.unwrap().line, line, "{text:?}");
            assert!(!problem.to_string().contains("hunter2"));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[A-C='\"\\\\\n# $é]{0,40}") {
            parse(&text).ok();
        }
    }
}
