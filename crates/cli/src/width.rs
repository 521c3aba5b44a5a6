//! Owns how many columns of a terminal a text takes. Pure.

/// Letters that take two columns (Unicode's East Asian width W and F, pictures among them), as ranges.
const WIDE: [(u32, u32); 25] = [
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x23e9, 0x23ec),
    (0x25fd, 0x25fe),
    (0x2614, 0x2615),
    (0x2648, 0x2653),
    (0x26aa, 0x26ab),
    (0x26bd, 0x26be),
    (0x2705, 0x2705),
    (0x270a, 0x270b),
    (0x2728, 0x2728),
    (0x274c, 0x274e),
    (0x2753, 0x2757),
    (0x2795, 0x2797),
    (0x2b1b, 0x2b1c),
    (0x2e80, 0x303e),
    (0x3041, 0xa4cf),
    (0xa960, 0xa97f),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe30, 0xfe6f),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x1f300, 0x1faff),
    (0x20000, 0x3fffd),
];

/// Letters that take none: marks on the one before, joiners, colours of skin.
const NONE: [(u32, u32); 7] = [
    (0x0300, 0x036f),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x200b, 0x200d),
    (0x20d0, 0x20ff),
    (0xfe00, 0xfe0f),
    (0x1f3fb, 0x1f3ff),
];

/// The columns of a text without line breaks and colours.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// A line of at most so many columns, with `…` for what is cut.
pub(crate) fn cut(line: String, most: usize) -> String {
    if width(&line) <= most {
        return line;
    }
    let mut used = 1;
    let fits = |letter: &char| {
        used += columns(*letter);
        used <= most
    };
    let mut shown: String = line.chars().take_while(fits).collect();
    shown.push('…');
    shown
}

fn columns(letter: char) -> usize {
    let code = letter as u32;
    let within = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    if code < 0x300 {
        1
    } else if within(&NONE) {
        0
    } else if within(&WIDE) {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_take_the_columns_that_a_terminal_gives_them() {
        for (text, columns) in
            [("höher", 5), ("日本語", 6), ("한글", 4), ("e\u{301}", 1), ("👍🏽", 2), ("✅ ok", 5)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn a_line_is_cut_where_the_screen_ends() {
        for (line, most, shown) in [
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("a long line", 6, "a lon…"),
            ("a 日本語 of them", 8, "a 日本…"),
        ] {
            assert_eq!(cut(line.to_owned(), most), shown);
        }
    }
}
