//! Owns the reading of sizes and durations with units.

use std::time::Duration;

/// Bytes: a number, or a number with B, kB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024).
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        _ => return Err(format!("{unit:?} is no unit of size (B, kB, MB, GB, KiB, MiB, GiB)")),
    };
    let value = positive(number)? * factor;
    if !(1.0..=9e15).contains(&value) {
        return Err("out of range".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
    Ok(value.round() as u64)
}

/// A duration: a number of seconds, or a number with ms, s, m, h or d.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "ms" => 0.001,
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("{unit:?} is no unit of time (ms, s, m, h, d)")),
    };
    let value = positive(number)? * seconds;
    Duration::try_from_secs_f64(value).map_err(|_| "out of range".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

fn positive(number: &str) -> Result<f64, String> {
    match number.replace('_', "").parse::<f64>() {
        Ok(value) if value > 0.0 => Ok(value),
        Ok(_) => Err("must be positive".to_owned()),
        Err(_) => Err("is not a number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_with_units() {
        for (text, value) in
            [("10000", 10_000), ("1MiB", 1 << 20), ("4 GiB", 4 << 30), ("1.5kB", 1500), ("1_000", 1000)]
        {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for (text, value) in
            [("120", 120_000), ("7d", 604_800_000), ("10m", 600_000), ("250ms", 250), ("0.5s", 500)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(value)), "{text}");
        }
        for text in ["", "0", "-1", "x", "1xb", "1e9", "1.2.3", "0s", "inf", "NaN"] {
            assert!(bytes(text).is_err() && duration(text).is_err(), "{text}");
        }
    }
}
