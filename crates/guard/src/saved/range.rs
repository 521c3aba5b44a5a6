//! Owns ranges of lines and bytes as people write them. Pure.

use std::str::FromStr;

use crate::GuardError;

/// Both ends count; the last may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first line (from 1) or byte (from 0).
    pub first: u64,
    /// The last one; `None` for the end.
    pub last: Option<u64>,
}

impl FromStr for Span {
    type Err = GuardError;

    /// `900-950`, `900-` (to the end), `900` (that one alone).
    fn from_str(text: &str) -> Result<Self, GuardError> {
        let bad = || GuardError::Range(text.to_owned());
        let number = |text: &str| text.trim().replace(['_', ','], "").parse::<u64>().map_err(|_| bad());
        let span = match text.split_once('-') {
            None => {
                let one = number(text)?;
                Self { first: one, last: Some(one) }
            }
            Some((first, "")) => Self { first: number(first)?, last: None },
            Some((first, last)) => Self { first: number(first)?, last: Some(number(last)?) },
        };
        if span.last.is_some_and(|last| last < span.first) { Err(bad()) } else { Ok(span) }
    }
}

impl Span {
    /// Lines count from 1.
    pub(crate) fn of_lines(text: &str) -> Result<Self, GuardError> {
        let span: Self = text.parse()?;
        if span.first == 0 { Err(GuardError::Range(text.to_owned())) } else { Ok(span) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_people_write_them() {
        let span = |first, last| Some(Span { first, last });
        for (text, expected) in [
            ("900-950", span(900, Some(950))),
            ("900-", span(900, None)),
            ("7", span(7, Some(7))),
            (" 1 - 2 ", span(1, Some(2))),
            ("1,000-2_000", span(1000, Some(2000))),
            ("2-1", None),
            ("-5", None),
            ("a-b", None),
            ("", None),
            ("1-2-3", None),
        ] {
            assert_eq!(text.parse::<Span>().ok(), expected, "{text}");
        }
        assert!(Span::of_lines("0-5").is_err());
    }
}
