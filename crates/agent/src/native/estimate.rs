//! Owns the estimate of tokens. Real vocabularies weigh tens of megabytes in memory and are another one for each model;
//! in their place stand letters counted by kind, and what the model's service reports corrects the sum. Pure.

use super::model::{AnswerPart, Message, ModelCall, ToolAnswer, ToolSpec, UserPart};

/// Units of a picture: what services take for one of usual size.
const IMAGE: u64 = 1_600;
/// Units of a message's own frame.
const FRAME: u64 = 6;
/// Bounds of the correction: what lies outside is another counting, not another ratio.
const LOWEST: f64 = 0.3;
const HIGHEST: f64 = 4.0;

/// Units of a text: about tokens. Four letters of a word, one sign of Chinese, a third of a number.
pub(crate) fn text(text: &str) -> u64 {
    let (mut letters, mut digits, mut signs, mut other, mut wide) = (0u64, 0u64, 0u64, 0u64, 0u64);
    for char in text.chars() {
        match char {
            'a'..='z' | 'A'..='Z' | ' ' => letters += 1,
            '0'..='9' => digits += 1,
            '\0'..='\x7f' => signs += 1,
            '\u{80}'..='\u{7ff}' => other += 1,
            _ => wide += 1,
        }
    }
    letters.div_ceil(5).saturating_add(digits.div_ceil(3)) + signs.div_ceil(2) + other.div_ceil(2) + wide
}

/// Units of a message.
pub(crate) fn message(message: &Message) -> u64 {
    let sum: u64 = match message {
        Message::User(parts) => parts.iter().map(user_part).sum(),
        Message::Assistant(parts) => parts.iter().map(answer_part).sum(),
        Message::Tools(results) => results.iter().map(answer).sum(),
    };
    sum.saturating_add(FRAME)
}

/// Units of a result.
pub(crate) fn answer(result: &ToolAnswer) -> u64 {
    result.content.iter().map(user_part).sum::<u64>().saturating_add(FRAME)
}

/// Units of tools, as they stand in a request.
pub(crate) fn tools(specs: &[ToolSpec]) -> u64 {
    specs
        .iter()
        .map(|spec| text(&spec.name) + text(&spec.description) + text(spec.schema.text()) + FRAME)
        .sum()
}

fn user_part(part: &UserPart) -> u64 {
    match part {
        UserPart::Text(it) => text(it),
        UserPart::Image { .. } => IMAGE,
    }
}

fn answer_part(part: &AnswerPart) -> u64 {
    match part {
        AnswerPart::Text(it) | AnswerPart::Thinking { text: it, .. } => text(it),
        AnswerPart::Call(ModelCall { name, arguments, .. }) => text(name) + text(arguments) + FRAME,
    }
}

/// The ratio after a request of so many units was reported to have so many tokens. It follows slowly: one odd report does
/// not move it far.
pub(crate) fn correct(ratio: f64, units: u64, reported: u64) -> f64 {
    if units < 200 || reported == 0 {
        return ratio;
    }
    let seen = (to_float(reported) / to_float(units)).clamp(LOWEST, HIGHEST);
    f64::midpoint(ratio, seen)
}

/// Tokens of so many units.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a product of numbers that are not negative"
)]
pub(crate) fn tokens(units: u64, ratio: f64) -> u64 {
    (to_float(units) * ratio).ceil() as u64
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below what a float counts exactly")]
fn to_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_estimated_within_a_third_of_what_vocabularies_count() {
        // Counts of a widely used vocabulary of 200,000 entries.
        let cases = [
            ("The quick brown fox jumps over the lazy dog. It was not amused by the second attempt.", 19),
            ("fn main() {\n    println!(\"{}\", value.unwrap_or_default());\n}\n", 20),
            ("{\"id\":12345,\"name\":\"widget\",\"tags\":[\"a\",\"b\"],\"price\":9.99}", 24),
            ("我们正在测试一个新的工具，它可以读取文件。", 15),
        ];
        for (it, counted) in cases {
            let units = text(it);
            assert!(units * 3 >= counted * 2 && units * 2 <= counted * 3 + 6, "{it}: {units} for {counted}");
        }
    }

    #[test]
    fn reports_correct_the_ratio_and_odd_ones_do_not_run_away() {
        let ratio = correct(1.0, 1000, 1400);
        assert!((ratio - 1.2).abs() < 1e-9);
        assert!((correct(1.0, 10, 1400) - 1.0).abs() < 1e-9, "too small to tell");
        assert!(correct(1.0, 1000, 1_000_000) <= HIGHEST);
        assert_eq!(tokens(1000, 1.2), 1200);
    }

    #[test]
    fn pictures_count_by_themselves() {
        let image = UserPart::Image { mime_type: "image/png".into(), data: "A".repeat(4_000_000) };
        assert_eq!(message(&Message::User(vec![image])), IMAGE + FRAME);
    }
}
