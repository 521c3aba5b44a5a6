//! Owns the rules for names, headers and addresses. Pure.

use url::{ParseError, Url};

/// The most characters of a server's name in Toolway's own files.
pub(crate) const LONGEST_NAME: usize = 64;
/// Names that Toolway itself gives to servers.
const RESERVED: [&str; 2] = ["custom-user-tools", "cursor-cloud"];

/// What is wrong with a server's name by Toolway's own rules.
pub(crate) fn name_fault(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("the name is empty".to_owned());
    }
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Some("the name is reserved".to_owned());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(letter) = name.chars().find(|letter| !fits(*letter)) {
        return Some(format!(
            "the name has the character {letter:?}; letters, digits, '.', '_' and '-' are allowed"
        ));
    }
    let count = name.chars().count();
    (count > LONGEST_NAME)
        .then(|| format!("the name has {count} characters, at most {LONGEST_NAME} are allowed"))
}

/// What is wrong with a variable's name.
pub(crate) fn env_name_fault(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("the name of a variable is empty"),
        _ if name.contains('=') => Some("the name of a variable has a '='"),
        _ if name.contains('\0') => Some("the name of a variable has a NUL character"),
        _ => None,
    }
}

/// What is wrong with a header's name (RFC 9110, 5.6.2: a token).
pub(crate) fn header_name_fault(name: &str) -> Option<&'static str> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    (name.is_empty() || !name.chars().all(is_token)).then_some("is no name of a header (RFC 9110, 5.6.2)")
}

/// What is wrong with a header's value: it must be visible ASCII, spaces and tabs inside.
pub(crate) fn header_value_fault(value: &str) -> Option<&'static str> {
    let is_visible = |c: char| c == '\t' || c == ' ' || c.is_ascii_graphic();
    if !value.chars().all(is_visible) {
        return Some("the value has characters that a header cannot hold: it must be visible ASCII");
    }
    let blank: &[char] = &[' ', '\t'];
    (value.starts_with(blank) || value.ends_with(blank)).then_some("the value begins or ends with a blank")
}

/// What is wrong with an address, and what to do. Tells nothing of the address itself.
pub(crate) fn url_fault(text: &str) -> Option<(&'static str, &'static str)> {
    let http = "write http:// or https://, host and path";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(ParseError::InvalidPort) => {
            return Some(("has a port that is none", "a port is a number up to 65535"));
        }
        Err(ParseError::EmptyHost) => return Some(("has no host", http)),
        Err(_) => return Some(("is no URL", http)),
    };
    match url.scheme() {
        "http" | "https" => {}
        "ws" | "wss" => return Some(("is a WebSocket, which MCP has not", http)),
        _ => return Some(("is neither http nor https", http)),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some(("holds a user or a password", "put them into headers.Authorization, from a variable"));
    }
    url.host_str().is_none_or(str::is_empty).then_some(("has no host", http))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule() {
        for good in ["a", "A.b_c-9", &"x".repeat(64)] {
            assert_eq!(name_fault(good), None, "{good}");
        }
        for bad in ["", "a b", "é", "a/b", "custom-user-tools", "Custom-User-Tools", &"x".repeat(65)] {
            assert!(name_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn headers_are_tokens_with_visible_values() {
        assert_eq!(header_name_fault("X-Key_1~"), None);
        for bad in ["", "X Key", "X:", "Clé", "a\n"] {
            assert!(header_name_fault(bad).is_some(), "{bad:?}");
        }
        assert_eq!(header_value_fault("Bearer a b"), None);
        for bad in ["a\r\nX: y", "é", " a", "a\n", "\u{7f}"] {
            assert!(header_value_fault(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_are_http_without_users() {
        for good in ["http://h/x", "https://[::1]:8/x?y", "HTTP://h"] {
            assert_eq!(url_fault(good), None, "{good}");
        }
        for bad in [
            "h/x",
            "ftp://h",
            "wss://h",
            "https://u@h",
            "https://u:p@h",
            "https://:p@h",
            "http://",
            "file:///x",
        ] {
            assert!(url_fault(bad).is_some(), "{bad}");
        }
    }
}
