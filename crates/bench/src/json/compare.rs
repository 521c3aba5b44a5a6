//! Do two raw values say the same, and in the same spelling? Must not decide what a front may change.

use super::{fields, items, string};

/// `identical` bytes, `respelled` (same value, other spelling), `reordered` (other key order) or `CHANGED`.
pub(crate) fn compare(want: &[u8], got: &[u8]) -> &'static str {
    if want == got {
        "identical"
    } else if same(want, got, true) {
        "respelled"
    } else if same(want, got, false) {
        "reordered"
    } else {
        "CHANGED"
    }
}

/// Exact decimal normal form: sign, digits without outer zeros, exponent.
fn normal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.trim_start_matches('+').parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let mut exponent = exponent - i64::try_from(fraction.len()).ok()?;
    while digits.ends_with('0') && digits.len() > 1 {
        digits.pop();
        exponent += 1;
    }
    match digits.trim_start_matches('0') {
        "" => Some((negative, "0".into(), 0)),
        digits => Some((negative, digits.into(), exponent)),
    }
}

fn same_number(a: &[u8], b: &[u8]) -> bool {
    let number = |raw| std::str::from_utf8(raw).ok().and_then(normal);
    matches!((number(a), number(b)), (Some(x), Some(y)) if x == y)
}

fn same(a: &[u8], b: &[u8], ordered: bool) -> bool {
    let (a, b) = (a.trim_ascii(), b.trim_ascii());
    if a == b {
        return true;
    }
    match (a.first(), b.first()) {
        (Some(b'{'), Some(b'{')) => {
            let (fa, fb): (Vec<_>, Vec<_>) = (fields(a).collect(), fields(b).collect());
            fa.len() == fb.len()
                && if ordered {
                    fa.iter().zip(&fb).all(|(x, y)| x.0 == y.0 && same(x.1, y.1, true))
                } else {
                    fa.iter().all(|x| fb.iter().any(|y| x.0 == y.0 && same(x.1, y.1, false)))
                }
        }
        (Some(b'['), Some(b'[')) => {
            let (ia, ib) = (items(a), items(b));
            ia.len() == ib.len() && ia.iter().zip(&ib).all(|(x, y)| same(x, y, ordered))
        }
        (Some(b'"'), Some(b'"')) => {
            matches!((string(Some(a)), string(Some(b))), (Some(x), Some(y)) if x == y)
        }
        _ => same_number(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn spelling_order_and_value_are_told_apart() {
        let table = [
            ("1.0", "1.0", "identical"),
            ("1.0", "1", "respelled"),
            ("1e2", "100.0", "respelled"),
            ("12345678901234567890", "12345678901234567000", "CHANGED"),
            (r#""\u00e9""#, "\"é\"", "respelled"),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, "reordered"),
            (r#"{"a":1}"#, "{}", "CHANGED"),
            ("-0.0", "0", "CHANGED"),
        ];
        for (want, got, verdict) in table {
            assert_eq!(compare(want.as_bytes(), got.as_bytes()), verdict, "{want} {got}");
        }
    }
}
