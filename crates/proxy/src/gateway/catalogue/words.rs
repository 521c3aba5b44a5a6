//! Owns cutting texts into the words that a search compares: identifiers split, case and endings folded. Pure.

/// Words of a question that say nothing of what is sought.
const EMPTY: [&str; 40] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in",
    "into", "is", "it", "me", "my", "need", "of", "on", "or", "please", "some", "that", "the", "there",
    "this", "to", "tool", "us", "use", "using", "want", "what", "which", "with",
];

/// Calls `take` with each word of a text. `readFile`, `read_file` and `HTTPServer` are two words each; a script that
/// has no spaces gives pairs of neighbouring characters.
pub(super) fn each(text: &str, mut take: impl FnMut(String)) {
    let mut word = String::new();
    let mut dense: Option<char> = None;
    let mut alone = false;
    let mut letters = text.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        if is_dense(letter) {
            end(&mut word, &mut take);
            match dense.replace(letter) {
                Some(last) => {
                    take([last, letter].iter().collect());
                    alone = false;
                }
                None => alone = true,
            }
            before = letter;
            continue;
        }
        if let Some(last) = dense.take().filter(|_| alone) {
            take(last.into());
        }
        let hump = letter.is_uppercase()
            && (before.is_lowercase() || letters.peek().is_some_and(|next| next.is_lowercase()));
        if hump || !letter.is_alphanumeric() {
            end(&mut word, &mut take);
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if let Some(last) = dense.filter(|_| alone) {
        take(last.into());
    }
    end(&mut word, &mut take);
}

/// The words of a question, each once; without those that say nothing, if others are left.
pub(super) fn of_question(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    each(text, |word| {
        if !all.contains(&word) && all.len() < 32 {
            all.push(word);
        }
    });
    let telling: Vec<String> = all.iter().filter(|word| !EMPTY.contains(&word.as_str())).cloned().collect();
    if telling.is_empty() { all } else { telling }
}

fn end(word: &mut String, take: &mut impl FnMut(String)) {
    if !word.is_empty() {
        take(fold(std::mem::take(word)));
    }
}

/// English endings, cut the same way on both sides: `creates`, `created`, `creating` and `create` are one.
fn fold(mut word: String) -> String {
    if !word.is_ascii() || word.len() <= 3 {
        return word;
    }
    let cut = |word: &mut String, letters: usize| word.truncate(word.len() - letters);
    if word.ends_with("ies") {
        cut(&mut word, 3);
        word.push('y');
    } else if ["ses", "xes", "zes", "ches", "shes"].iter().any(|ending| word.ends_with(ending)) {
        cut(&mut word, 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        cut(&mut word, 1);
    }
    if word.len() >= 7 && word.ends_with("ing") {
        cut(&mut word, 3);
    } else if word.len() >= 6 && word.ends_with("ed") {
        cut(&mut word, 2);
    }
    if word.len() > 4 && word.ends_with('e') {
        cut(&mut word, 1);
    }
    word
}

/// Written without spaces between words, or with endings that are part of the word.
fn is_dense(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each(text, |word| found.push(word));
        found
    }

    #[test]
    fn identifiers_and_sentences_give_the_same_words() {
        for (text, expected) in [
            ("read_file", vec!["read", "file"]),
            ("readFiles", vec!["read", "file"]),
            ("HTTPServer v2", vec!["http", "server", "v2"]),
            ("github.create-issue", vec!["github", "creat", "issu"]),
            ("Creates, created, creating issues", vec!["creat", "creat", "creat", "issu"]),
            ("queries boxes status", vec!["query", "box", "status"]),
            ("数据库", vec!["数据", "据库"]),
            ("读 file 读", vec!["读", "file", "读"]),
            ("Größe_ändern", vec!["größe", "ändern"]),
            ("", vec![]),
            ("?!", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn a_question_is_its_telling_words() {
        assert_eq!(of_question("How do I list the files, list them?"), ["list", "file", "them"]);
        assert_eq!(of_question("what is it"), ["what", "is", "it"]);
    }
}
