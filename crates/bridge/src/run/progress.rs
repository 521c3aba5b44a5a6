//! Owns what a client is told of a call's progress: the host's numbers, made to rise as MCP (2025-11-25,
//! `basic/utilities/progress`) asks, and signs of life between them.

use bytes::Bytes;
use toolway_wire::push_string;

use crate::json::RawJson;

/// How far a call is, as the host says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// A number that rises; its bytes are kept.
    pub progress: RawJson,
    /// What it rises to, if that is known.
    pub total: Option<RawJson>,
    /// For people.
    pub message: Option<String>,
}

impl Progress {
    /// A whole number, of nothing known.
    pub fn new(progress: u64) -> Self {
        Self { progress: RawJson::of(&progress.into()), total: None, message: None }
    }
}

/// By how much a sign of life raises the number.
const STEP: f64 = 1e-6;

/// One client's view of one call.
#[derive(Debug)]
pub(super) struct Meter {
    token: RawJson,
    last: f64,
}

impl Meter {
    pub(super) fn new(token: RawJson) -> Self {
        Self { token, last: 0.0 }
    }

    /// The params of the next notification; `None` where the host's number is none. Without the host's progress it is a
    /// sign of life: the last number, and hardly more.
    pub(super) fn params(&mut self, progress: Option<&Progress>) -> Option<Bytes> {
        let mut params = Vec::with_capacity(96);
        params.extend_from_slice(b"{\"progressToken\":");
        params.extend_from_slice(self.token.bytes());
        params.extend_from_slice(b",\"progress\":");
        let said = match progress {
            Some(progress) => Some((number(&progress.progress)?, &progress.progress)),
            None => None,
        };
        match said {
            Some((value, raw)) if value > self.last || (self.last == 0.0 && value == 0.0) => {
                self.last = value;
                params.extend_from_slice(raw.bytes());
            }
            _ => {
                self.last += STEP.max(self.last.abs() * f64::EPSILON * 2.0);
                params.extend_from_slice(serde_json::json!(self.last).to_string().as_bytes());
            }
        }
        if let Some(progress) = progress {
            if let Some(total) = progress.total.as_ref().filter(|total| number(total).is_some()) {
                params.extend_from_slice(b",\"total\":");
                params.extend_from_slice(total.bytes());
            }
            if let Some(message) = &progress.message {
                params.extend_from_slice(b",\"message\":");
                push_string(message, &mut params);
            }
        }
        params.push(b'}');
        Some(params.into())
    }
}

/// The value of a JSON number, for comparing.
fn number(json: &RawJson) -> Option<f64> {
    let first = json.bytes().first()?;
    if !(first.is_ascii_digit() || *first == b'-') {
        return None;
    }
    json.text().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(progress: &str, total: Option<&str>, message: Option<&str>) -> Progress {
        let json = |text: &str| RawJson::new(text.as_bytes().to_vec()).unwrap();
        Progress { progress: json(progress), total: total.map(json), message: message.map(ToOwned::to_owned) }
    }

    fn tell(meter: &mut Meter, progress: Option<&Progress>) -> Option<String> {
        meter.params(progress).map(|params| String::from_utf8(params.to_vec()).unwrap())
    }

    #[test]
    fn the_hosts_numbers_keep_their_bytes() {
        let mut meter = Meter::new(RawJson::of(&"p".into()));
        let told =
            tell(&mut meter, Some(&of("9007199254740993", Some("1e30"), Some("half \"way\"")))).unwrap();
        assert_eq!(
            told,
            r#"{"progressToken":"p","progress":9007199254740993,"total":1e30,"message":"half \"way\""}"#
        );
    }

    #[test]
    fn numbers_always_rise_even_where_the_hosts_do_not() {
        let mut meter = Meter::new(RawJson::of(&7.into()));
        let (zero, five) = (of("0", None, None), of("5", None, None));
        let mut last = -1.0;
        for progress in [Some(&zero), None, Some(&zero), Some(&five), Some(&five), None, Some(&zero)] {
            let told = tell(&mut meter, progress).unwrap();
            let value =
                serde_json::from_str::<serde_json::Value>(&told).unwrap()["progress"].as_f64().unwrap();
            assert!(value > last, "{value} after {last}");
            last = value;
        }
        assert!(last < 5.001);
    }

    #[test]
    fn what_is_no_number_is_not_told() {
        let mut meter = Meter::new(RawJson::of(&7.into()));
        for odd in ["\"5\"", "null", "[1]", "1e999"] {
            assert_eq!(tell(&mut meter, Some(&of(odd, None, None))), None, "{odd}");
        }
        assert_eq!(
            tell(&mut meter, Some(&of("1", Some("\"x\""), None))).unwrap(),
            r#"{"progressToken":7,"progress":1}"#
        );
    }
}
