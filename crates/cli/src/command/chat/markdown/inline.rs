//! Owns what stands inside a line of markdown: code, emphasis, links. Pure.

use super::{BOLD, CYAN, DIM, END, ITALIC, STRUCK, UNDERLINE};

/// The line as a terminal shows it.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut before = ' ';
    while let Some(letter) = rest.chars().next() {
        if let Some((shown, length)) = special(rest, before) {
            out.push_str(&shown);
            before = rest.get(..length).and_then(|taken| taken.chars().last()).unwrap_or(' ');
            rest = rest.get(length..).unwrap_or_default();
        } else {
            out.push(letter);
            before = letter;
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

/// What begins here, and how many bytes it takes.
fn special(text: &str, before: char) -> Option<(String, usize)> {
    match text.as_bytes().first()? {
        b'\\' => {
            let next = text.chars().nth(1).filter(char::is_ascii_punctuation)?;
            Some((next.to_string(), 2))
        }
        b'`' => {
            let marks = text.chars().take_while(|c| *c == '`').count();
            let mark = "`".repeat(marks);
            let inner = text.get(marks..)?;
            let length = inner.find(&mark)?;
            let code = inner.get(..length)?;
            Some((format!("{CYAN}{}{END}", code.trim_matches(' ')), marks * 2 + length))
        }
        b'[' => link(text, 0),
        b'!' if text.as_bytes().get(1) == Some(&b'[') => link(text, 1),
        b'*' => span(text, "**", BOLD).or_else(|| span(text, "*", ITALIC)),
        b'_' if !before.is_alphanumeric() => span(text, "__", BOLD).or_else(|| span(text, "_", ITALIC)),
        b'~' => span(text, "~~", STRUCK),
        _ => None,
    }
}

/// Text between two marks, neither of which stands beside a space on the inside.
fn span(text: &str, mark: &str, code: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix(mark)?;
    if inner.starts_with([' ', '\t']) || inner.starts_with(mark) {
        return None;
    }
    let mut from = 0;
    loop {
        let at = from + inner.get(from..)?.find(mark)?;
        let (content, after) = (inner.get(..at)?, inner.get(at + mark.len()..)?);
        let goes_on = content.is_empty()
            || content.ends_with([' ', '\t'])
            || mark.len() == 1 && after.starts_with(mark)
            || mark.starts_with('_') && after.starts_with(char::is_alphanumeric);
        if !goes_on {
            // What ends inside ends everything: it is begun again.
            let shown = inline(content).replace(END, &format!("{END}{code}"));
            return Some((format!("{code}{shown}{END}"), mark.len() * 2 + at));
        }
        from = at + mark.len();
        if mark.len() == 1 && after.starts_with(mark) {
            from += mark.len();
        }
    }
}

/// `[text](address)`: the text, and the address where it says more.
fn link(text: &str, skip: usize) -> Option<(String, usize)> {
    let inner = text.get(skip + 1..)?;
    let close = inner.find("](")?;
    let shown = inner.get(..close)?;
    if shown.contains('[') {
        return None;
    }
    let rest = inner.get(close + 2..)?;
    let end = rest.find(')')?;
    let address = rest.get(..end)?.split_whitespace().next().unwrap_or_default();
    let more = if address == shown || address.is_empty() {
        String::new()
    } else {
        format!(" {DIM}({address}){END}")
    };
    Some((format!("{UNDERLINE}{shown}{END}{more}"), skip + 1 + close + 2 + end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(text: &str) -> String {
        [
            (BOLD, "<b>"),
            (DIM, "<d>"),
            (ITALIC, "<i>"),
            (UNDERLINE, "<u>"),
            (CYAN, "<c>"),
            (STRUCK, "<s>"),
            (END, "</>"),
        ]
        .iter()
        .fold(inline(text), |out, (code, tag)| out.replace(code, tag))
    }

    #[test]
    fn emphasis_code_and_links() {
        for (text, shown) in [
            ("a **b** *c* __d__ _e_ ~~f~~", "a <b>b</> <i>c</> <b>d</> <i>e</> <s>f</>"),
            ("**a `x` b**", "<b>a <c>x</><b> b</>"),
            ("*a **b** c*", "<i>a <b>b</><i> c</>"),
            ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
            ("``a`b`` \\*not\\*", "<c>a`b</> *not*"),
            (
                "[text](https://x.y) [https://x.y](https://x.y)",
                "<u>text</> <d>(https://x.y)</> <u>https://x.y</>",
            ),
            ("![pic](a.png \"t\")", "<u>pic</> <d>(a.png)</>"),
            ("[not a link] **open `open ä", "[not a link] **open `open ä"),
        ] {
            assert_eq!(tagged(text), shown, "{text}");
        }
    }
}
