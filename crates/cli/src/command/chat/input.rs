//! Owns how lines become a prompt: a backslash at the end goes on, three quotes begin and end a text of several lines.

use super::super::person::{Console, Line};

/// What stands around a text of several lines.
const QUOTES: &str = "\"\"\"";

/// The next prompt; `None` at the end of input.
pub(super) async fn read(console: &Console, mut more: impl FnMut()) -> Option<String> {
    let mut prompt = Prompt::default();
    loop {
        match console.line().await {
            Line::Typed(line) => {
                if prompt.add(&line) {
                    return Some(prompt.text());
                }
                more();
            }
            Line::End if prompt.is_empty() => return None,
            Line::End => return Some(prompt.text()),
        }
    }
}

/// A prompt on its way.
#[derive(Debug, Default)]
struct Prompt {
    lines: Vec<String>,
    quoted: bool,
}

impl Prompt {
    /// One more line; whether it was the last one.
    fn add(&mut self, line: &str) -> bool {
        if self.quoted {
            if let Some(last) = line.trim_end().strip_suffix(QUOTES) {
                if !last.is_empty() {
                    self.lines.push(last.to_owned());
                }
                return true;
            }
            self.lines.push(line.to_owned());
            return false;
        }
        if self.lines.is_empty()
            && let Some(first) = line.trim_start().strip_prefix(QUOTES)
        {
            if let Some(whole) = first.trim_end().strip_suffix(QUOTES) {
                self.lines.push(whole.to_owned());
                return true;
            }
            self.quoted = true;
            if !first.is_empty() {
                self.lines.push(first.to_owned());
            }
            return false;
        }
        let part = line.strip_suffix('\\');
        self.lines.push(part.unwrap_or(line).to_owned());
        part.is_none()
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty() && !self.quoted
    }

    fn text(self) -> String {
        self.lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(lines: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        let mut prompt = Prompt::default();
        for line in lines {
            if prompt.add(line) {
                all.push(std::mem::take(&mut prompt).text());
            }
        }
        assert!(prompt.is_empty());
        all
    }

    #[test]
    fn lines_become_prompts() {
        assert_eq!(prompts(&["one", "two\\", "three", ""]), ["one", "two\nthree", ""]);
        assert_eq!(prompts(&["\"\"\"", "a\\", "", "b", "\"\"\"", "c"]), ["a\\\n\nb", "c"]);
        assert_eq!(prompts(&["\"\"\"a", "b\"\"\"", "\"\"\"x\"\"\""]), ["a\nb", "x"]);
    }
}
