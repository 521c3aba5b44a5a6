//! Owns the names of characters in HTML, as far as they are used in texts.

use std::borrow::Cow;

const NAMES: [(&str, &str); 44] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ensp", " "),
    ("emsp", " "),
    ("thinsp", " "),
    ("shy", ""),
    ("zwnj", ""),
    ("zwj", ""),
    ("mdash", "—"),
    ("ndash", "–"),
    ("hellip", "…"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("bull", "•"),
    ("middot", "·"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("times", "×"),
    ("deg", "°"),
    ("para", "¶"),
    ("sect", "§"),
    ("euro", "€"),
    ("pound", "£"),
    ("larr", "←"),
    ("rarr", "→"),
    ("uarr", "↑"),
    ("darr", "↓"),
    ("le", "≤"),
    ("ge", "≥"),
    ("ne", "≠"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("szlig", "ß"),
    ("eacute", "é"),
];
/// Bytes of the longest name or number.
const LONGEST: usize = 10;

/// The text with characters in place of their names. What is no known name stays.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let after = from.get(1..).unwrap_or_default();
        let end = after.bytes().take(LONGEST).position(|byte| byte == b';');
        let named = end.and_then(|end| Some((character(after.get(..end)?)?, after.get(end + 1..)?)));
        if let Some((character, after)) = named {
            plain.push_str(&character);
            rest = after;
        } else {
            plain.push('&');
            rest = after;
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn character(name: &str) -> Option<Cow<'static, str>> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        let character = match number {
            0xa0 => ' ',
            number => char::from_u32(number).filter(|character| *character != '\0').unwrap_or('\u{fffd}'),
        };
        return Some(Cow::Owned(character.to_string()));
    }
    NAMES.iter().find(|(own, _)| *own == name).map(|(_, text)| Cow::Borrowed(*text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_become_characters_and_others_stay() {
        let table = [
            ("a &amp; b &lt;c&gt;", "a & b <c>"),
            ("&#65;&#x42;&#X43;", "ABC"),
            ("&amp;lt;", "&lt;"),
            ("AT&T & &unknown; &#xd800;", "AT&T & &unknown; \u{fffd}"),
            ("&", "&"),
            ("&uuml;&", "ü&"),
            ("&ü;", "&ü;"),
        ];
        for (text, expected) in table {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }
}
