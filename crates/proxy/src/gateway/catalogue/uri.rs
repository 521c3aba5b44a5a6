//! Owns whose a resource is: addresses that two servers have, and templates that an address fits. Pure.

/// What the address of a resource begins with when another server has the same one.
const ALIAS: &str = "toolway://server/";

/// The address of a server's resource (or template) that cannot have its own one.
pub(super) fn alias(server: &str, uri: &str) -> String {
    format!("{ALIAS}{server}/{uri}")
}

/// Server and own address of an [`alias`].
pub(super) fn of_alias(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(ALIAS)?.split_once('/')
}

/// Everything before the path: `test://host`, `file:`.
pub(super) fn origin(uri: &str) -> &str {
    let Some((scheme, rest)) = uri.split_once(':') else { return uri };
    let authority =
        rest.strip_prefix("//").map_or(0, |rest| rest.find(['/', '?', '#']).unwrap_or(rest.len()) + 2);
    uri.get(..scheme.len() + 1 + authority).unwrap_or(uri)
}

/// The address can come from the template (RFC 6570): a plain `{name}` stands for anything within one segment,
/// expressions with an operator for anything at all.
pub(super) fn fits(template: &str, uri: &str) -> bool {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((expression, after)) = after.split_once('}') else { break };
        parts.extend(literal.chars().map(Part::Letter));
        parts.push(if expression.starts_with(['+', '#', '.', '/', ';', '?', '&']) {
            Part::Anything
        } else {
            Part::Segment
        });
        rest = after;
    }
    parts.extend(rest.chars().map(Part::Letter));
    matches(&parts, &uri.chars().collect::<Vec<_>>())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Letter(char),
    Segment,
    Anything,
}

/// Which prefixes of the pattern fit the text so far: linear in pattern times text.
fn matches(parts: &[Part], text: &[char]) -> bool {
    let mut open = vec![false; parts.len() + 1];
    if let Some(first) = open.first_mut() {
        *first = true;
    }
    skip_empty(parts, &mut open);
    for letter in text {
        let mut next = vec![false; parts.len() + 1];
        for (at, part) in parts.iter().enumerate().filter(|(at, _)| open.get(*at) == Some(&true)) {
            let (stays, goes) = match part {
                Part::Letter(wanted) => (false, wanted == letter),
                Part::Segment => (!['/', '?', '#'].contains(letter), false),
                Part::Anything => (true, false),
            };
            if let Some(slot) = next.get_mut(at) {
                *slot |= stays;
            }
            if let Some(slot) = next.get_mut(at + 1) {
                *slot |= goes;
            }
        }
        skip_empty(parts, &mut next);
        open = next;
    }
    open.last() == Some(&true)
}

/// An expression may stand for nothing.
fn skip_empty(parts: &[Part], open: &mut [bool]) {
    for (at, part) in parts.iter().enumerate() {
        if !matches!(part, Part::Letter(_))
            && open.get(at) == Some(&true)
            && let Some(slot) = open.get_mut(at + 1)
        {
            *slot = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_fit_their_addresses() {
        for (template, uri, expected) in [
            ("test://{id}/data", "test://7/data", true),
            ("test://{id}/data", "test:///data", true),
            ("test://{id}/data", "test://7/8/data", false),
            ("test://{id}/data", "test://7/data/x", false),
            ("file:///{+path}", "file:///a/b?c", true),
            ("db://{table}{?limit,offset}", "db://t?limit=1", true),
            ("db://{table}{?limit,offset}", "db://t", true),
            ("plain://x", "plain://x", true),
            ("plain://x", "plain://y", false),
            ("odd://{x", "odd://{x", true),
            ("u://{名}", "u://数据", true),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
        let hostile = "{+a}".repeat(200) + "b";
        assert!(!fits(&hostile, &"a".repeat(2000)));
    }

    #[test]
    fn aliases_and_origins() {
        let alias = alias("fs", "file:///a?b#c");
        assert_eq!(of_alias(&alias), Some(("fs", "file:///a?b#c")));
        assert_eq!(of_alias("toolway://saved/x"), None);
        for (uri, expected) in [
            ("test://a/b", "test://a"),
            ("file:///a", "file://"),
            ("urn:x:y", "urn:"),
            ("http://h?q", "http://h"),
        ] {
            assert_eq!(origin(uri), expected);
        }
    }
}
