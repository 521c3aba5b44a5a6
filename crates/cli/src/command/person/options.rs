//! Owns what a typed line means where there are answers to choose from. Pure.

/// By numbers or by their words; anything else is an answer of its own.
pub(crate) fn chosen(typed: &str, options: &[String], several: bool) -> Vec<String> {
    let typed = typed.trim();
    let one = |text: &str| {
        let text = text.trim();
        let numbered = || text.parse::<usize>().ok()?.checked_sub(1).and_then(|at| options.get(at));
        options.iter().find(|option| *option == text).or_else(numbered).cloned()
    };
    if let Some(option) = one(typed) {
        return vec![option];
    }
    if several {
        let all: Option<Vec<String>> = typed.split(',').map(one).collect();
        if let Some(all) = all {
            return all;
        }
    }
    vec![typed.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_choose_and_the_rest_is_an_answer() {
        let options = ["red", "2", "blue"].map(str::to_owned);
        assert_eq!(chosen(" 1 ", &options, false), ["red"]);
        assert_eq!(chosen("2", &options, false), ["2"], "a word stands above a number");
        assert_eq!(chosen("1, blue", &options, true), ["red", "blue"]);
        assert_eq!(chosen("1, blue", &options, false), ["1, blue"]);
        assert_eq!(chosen("green", &options, true), ["green"]);
        assert_eq!(chosen("4", &options, true), ["4"]);
    }
}
