//! Owns the words after a tool's name: which are JSON, files, stdin, or pairs. Reads files and stdin.

use std::io::Read as _;

use super::arguments::{Word, pair};
use super::refusal::Refusal;

/// The most bytes of arguments from a file or stdin.
const MOST_BYTES: u64 = 256 << 20;

/// The words with what they stand for.
pub(crate) fn read_words(words: &[String]) -> Result<Vec<Word>, Refusal> {
    let mut stdin_read = false;
    words
        .iter()
        .map(|word| {
            let word = word.as_str();
            if word == "-" {
                if std::mem::replace(&mut stdin_read, true) {
                    return Err(Refusal::usage("stdin can be read once only: - stands there twice"));
                }
                let text = text_of(std::io::stdin().lock(), "stdin")?;
                return Ok(Word::Json { text, from: "stdin".to_owned() });
            }
            if let Some(file) = word.strip_prefix('@') {
                let opened = std::fs::File::open(file)
                    .map_err(|error| Refusal::usage(format!("cannot read {file}: {error}")))?;
                return Ok(Word::Json { text: text_of(opened, file)?, from: file.to_owned() });
            }
            if word.trim_start().starts_with(['{', '[', '"']) {
                return Ok(Word::Json { text: word.to_owned(), from: "the argument".to_owned() });
            }
            pair(word).ok_or_else(|| {
                Refusal::usage(format!("{word:?} is neither JSON nor NAME=VALUE"))
                    .with_hint("give a JSON object, @FILE, - for stdin, or NAME=VALUE")
            })
        })
        .collect()
}

fn text_of(source: impl std::io::Read, name: &str) -> Result<String, Refusal> {
    let mut text = String::new();
    source
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| Refusal::usage(format!("cannot read {name}: {error}")))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Refusal::usage(format!("{name} holds more than {} MiB", MOST_BYTES >> 20)));
    }
    // A byte order mark, as some editors write it.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Vec<Word>, Refusal> {
        read_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_told_apart_by_how_they_begin() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a=b.json");
        std::fs::write(&file, "\u{feff}{\"x\":1}").unwrap();
        let name = file.to_string_lossy().into_owned();
        assert_eq!(
            words(&[r#"{"a":"b=c"}"#, &format!("@{name}"), "k=v", "n:=1"]).unwrap(),
            [
                Word::Json { text: r#"{"a":"b=c"}"#.into(), from: "the argument".into() },
                Word::Json { text: "{\"x\":1}".into(), from: name },
                Word::Pair("k".into(), "v".into()),
                Word::Exact("n".into(), "1".into()),
            ]
        );
    }

    #[test]
    fn what_is_none_of_them_is_refused() {
        for word in ["plain", "@/no/such/file", "=x"] {
            assert_eq!(words(&[word]).unwrap_err().exit.code(), 2, "{word}");
        }
    }
}
