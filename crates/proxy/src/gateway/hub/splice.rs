//! Owns the changes that a message needs on its way through: another id, another name, another progress token. Each is
//! a splice: every other byte stays. Knows no session.

use std::ops::Range;

use toolway_wire::find::{Step, find};
use toolway_wire::{Envelope, Id};

/// The digits of an id or token of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digits {
    bytes: [u8; 20],
    from: usize,
}

impl Digits {
    pub(super) fn of(mut number: u64) -> Self {
        let mut bytes = [b'0'; 20];
        let mut from = bytes.len();
        loop {
            from -= 1;
            if let Some(byte) = bytes.get_mut(from) {
                *byte = b'0' + (number % 10) as u8;
            }
            number /= 10;
            if number == 0 {
                return Self { bytes, from };
            }
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.from..).unwrap_or_default()
    }
}

/// The number that an id of ours stands for, also when the peer made a string of it, or spells numbers in its own way.
pub(super) fn number(id: &Id) -> Option<u64> {
    let raw = id.raw();
    let inner = raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(raw);
    if inner.is_empty() || inner.len() > 19 {
        return None;
    }
    let digits = inner
        .iter()
        .try_fold(0u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')));
    digits.or_else(|| whole(std::str::from_utf8(raw).ok()?))
}

/// The integer that `7.0` or `1.048576e6` is. Ours are below 2^53, so that nothing is lost on the way.
fn whole(number: &str) -> Option<u64> {
    let value: f64 = number.parse().ok()?;
    let text = format!("{value:.0}");
    let same = text.len() <= 16 && text.parse() == Ok(value);
    same.then(|| text.parse().ok()).flatten()
}

/// Where the value of the top-level `id` stands.
fn id_span(json: &[u8], envelope: &Envelope) -> Option<Range<usize>> {
    envelope.id_span().and_then(range).or_else(|| find(json, &[Step::Key("id")]))
}

fn range(span: Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)
}

/// The message with another id.
pub(super) fn with_id(json: &[u8], envelope: &Envelope, id: &[u8]) -> Option<Vec<u8>> {
    let at = id_span(json, envelope)?;
    let (before, after) = (json.get(..at.start)?, json.get(at.end..)?);
    // Just as long as it is to be: it needs no second allocation when it is shared.
    let mut out = Vec::with_capacity(before.len() + id.len() + after.len());
    out.extend_from_slice(before);
    out.extend_from_slice(id);
    out.extend_from_slice(after);
    Some(out)
}

/// What a request becomes on its way to a server.
#[derive(Debug)]
pub(super) struct Readdressed {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// Where `params` stands in them.
    pub(super) params: Range<u64>,
    /// The client's own progress token, raw.
    pub(super) token: Option<Box<[u8]>>,
}

/// What stands at a place instead, in pieces.
type Change<'a> = (Range<usize>, [&'a [u8]; 3]);

/// The request with another id, with `name` (a JSON string) as `params.name` where it is given, and with the id as its
/// progress token where `token` says so. `None`: it has no place for that.
pub(super) fn readdress(
    json: &[u8],
    envelope: &Envelope,
    id: &[u8],
    name: Option<&[u8]>,
    token: bool,
) -> Option<Readdressed> {
    let id_at = id_span(json, envelope)?;
    let params = envelope.params_span().and_then(range)?;
    let renamed = match name {
        Some(name) => Some((envelope.name_span().and_then(range)?, [name, b"".as_slice(), b""])),
        None => None,
    };
    let (mut own_token, mut tokened) = (None, None);
    if token {
        tokened = Some(with_token(json, envelope, &params, id)?);
        own_token = envelope.token_span().and_then(range).and_then(|at| json.get(at)).map(Into::into);
    }
    let mut changes: [Option<Change<'_>>; 3] = [Some((id_at, [id, b"", b""])), renamed, tokened];
    changes.sort_unstable_by_key(|change| change.as_ref().map(|(at, _)| at.start));
    let changes = || changes.iter().flatten();
    let mut length = json.len();
    for (at, pieces) in changes() {
        length += pieces.iter().map(|piece| piece.len()).sum::<usize>();
        length = length.checked_sub(at.len())?;
    }
    let mut out = Vec::with_capacity(length);
    let mut from = 0;
    // How much longer it has become in front of `params`, and up to its end.
    let (mut start, mut end) = (params.start, params.end);
    for (at, pieces) in changes() {
        out.extend_from_slice(json.get(from..at.start)?);
        let before = out.len();
        for piece in pieces {
            out.extend_from_slice(piece);
        }
        let length = out.len() - before;
        if at.start < params.start {
            start = (start + length).checked_sub(at.len())?;
        }
        if at.start < params.end {
            end = (end + length).checked_sub(at.len())?;
        }
        from = at.end;
    }
    out.extend_from_slice(json.get(from..)?);
    Some(Readdressed { bytes: out, params: start as u64..end as u64, token: own_token })
}

/// The change that makes the id the progress token.
fn with_token<'a>(
    json: &[u8],
    envelope: &Envelope,
    params: &Range<usize>,
    id: &'a [u8],
) -> Option<Change<'a>> {
    let is_object = |at: &Range<usize>| json.get(at.start) == Some(&b'{');
    if let Some(at) = envelope.token_span().and_then(range) {
        return Some((at, [id, b"", b""]));
    }
    let has_members = |at: usize| {
        let rest = json.get(at..).unwrap_or_default();
        rest.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'}')
    };
    let Some(meta) = envelope.meta_span().and_then(range).filter(is_object) else {
        if !is_object(params) {
            return None;
        }
        let at = params.start + 1;
        let end: &[u8] = if has_members(at) { b"}," } else { b"}" };
        return Some((at..at, [b"\"_meta\":{\"progressToken\":", id, end]));
    };
    let at = meta.start + 1;
    Some((at..at, [b"\"progressToken\":", id, if has_members(at) { b"," } else { b"" }]))
}

/// The message with another value at a path, which is there. `None`: it is not.
pub(super) fn with_value(json: &[u8], path: &[Step<'_>], value: &[u8]) -> Option<Vec<u8>> {
    let at = find(json, path)?;
    Some([json.get(..at.start)?, value, json.get(at.end..)?].concat())
}

/// The raw value at a path.
pub(super) fn value<'a>(json: &'a [u8], path: &[Step<'_>]) -> Option<&'a [u8]> {
    json.get(find(json, path)?)
}

/// The text at a path.
pub(super) fn text(json: &[u8], path: &[Step<'_>]) -> Option<String> {
    toolway_wire::find::string(json, find(json, path)?)
}

/// A response with this raw result.
pub(super) fn result(id: &[u8], result: &[u8]) -> Vec<u8> {
    [b"{\"jsonrpc\":\"2.0\",\"id\":".as_slice(), id, b",\"result\":", result, b"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolway_wire::{Scanner, Verdict};

    fn scan(json: &str) -> Envelope {
        match Scanner::new().whole(json.as_bytes()) {
            Verdict::Message(envelope) => envelope.clone(),
            verdict => panic!("{verdict:?}"),
        }
    }

    fn call(json: &str) -> (String, Option<String>) {
        let made = readdress(json.as_bytes(), &scan(json), b"77", Some(b"\"own\""), true).unwrap();
        let text = String::from_utf8(made.bytes).unwrap();
        let envelope = scan(&text);
        assert_eq!(envelope.params_span(), Some(made.params));
        assert_eq!((envelope.name(), envelope.id().unwrap().raw()), (Some("own"), b"77".as_slice()));
        (text, made.token.map(|token| String::from_utf8(token.into()).unwrap()))
    }

    #[test]
    fn a_call_changes_at_three_places() {
        for (before, after, token) in [
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"s__t","arguments":{"name":1e2, "id":3}}}"#,
                r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"_meta":{"progressToken":77},"name":"own","arguments":{"name":1e2, "id":3}}}"#,
                None,
            ),
            (
                r#" { "params" : { "_meta" : { "x" : 1, "progressToken" : "p\u0061" } , "arguments":{}, "name" : "s__t" } , "id" : 1.0 , "method":"tools/call","jsonrpc":"2.0","y":[] }"#,
                r#" { "params" : { "_meta" : { "x" : 1, "progressToken" : 77 } , "arguments":{}, "name" : "own" } , "id" : 77 , "method":"tools/call","jsonrpc":"2.0","y":[] }"#,
                Some(r#""p\u0061""#),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t","_meta":{}}}"#,
                r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"own","_meta":{"progressToken":77}}}"#,
                None,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":{}},"name":"s__t"}}"#,
                r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"_meta":{"progressToken":77,"a":{}},"name":"own"}}"#,
                None,
            ),
        ] {
            assert_eq!(call(before), (after.to_owned(), token.map(str::to_owned)));
        }
    }

    #[test]
    fn an_answer_changes_at_one_place() {
        for (before, after) in [
            (
                r#"{"jsonrpc":"2.0","id":5,"result":{"id":5}}"#,
                r#"{"jsonrpc":"2.0","id":"x","result":{"id":5}}"#,
            ),
            (
                r#"{"result":{"id":[5]},"id":5,"jsonrpc":"2.0"}"#,
                r#"{"result":{"id":[5]},"id":"x","jsonrpc":"2.0"}"#,
            ),
            (
                r#"{"error":{"code":1,"message":"m"} , "id" : 5,"jsonrpc":"2.0"}"#,
                r#"{"error":{"code":1,"message":"m"} , "id" : "x","jsonrpc":"2.0"}"#,
            ),
        ] {
            let changed = with_id(before.as_bytes(), &scan(before), b"\"x\"").unwrap();
            assert_eq!(String::from_utf8(changed).unwrap(), after);
        }
    }

    #[test]
    fn digits_and_numbers_are_each_others_reverse() {
        for n in [0, 9, 10, 12_345_678_901, (1 << 53) - 1] {
            let digits = Digits::of(n);
            assert_eq!(digits.as_bytes(), n.to_string().as_bytes());
            assert_eq!(number(&Id::from_json(digits.as_bytes()).unwrap()), Some(n));
        }
        for (id, value) in [
            ("\"12\"", Some(12)),
            ("12.0", Some(12)),
            ("1.048576e6", Some(1 << 20)),
            ("\"a\"", None),
            ("\"1.0\"", None),
            ("1.5", None),
            ("1e300", None),
            ("-1", None),
            ("-1.0", None),
            ("\"\"", None),
            ("\"inf\"", None),
        ] {
            assert_eq!(number(&Id::from_json(id.as_bytes()).unwrap()), value, "{id}");
        }
    }
}
