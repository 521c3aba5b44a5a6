//! Owns the shapes of what this crate takes out of texts, as lines of regular expressions. Knows no text.

use crate::profile::Profile;

/// Names whose values are secret, wherever they end a longer name (`GITHUB_TOKEN`, `x-api-key`).
const NAMES: &str = "(?:authorization|api[ _-]?key|(?:access|secret|private|auth|signing|encryption|account)[_-]?key|token|secret|pass(?:word|wd|phrase)|credentials?|sess(?:ion)?[ _-]?id|jwt|cookie)";

/// The patterns, one a line, as the redactor takes them; where a group is named, that part alone goes.
pub(super) fn lines(profiles: &[Profile]) -> String {
    let slash = r"(?:/|\\/|\\{1,3}u002[Ff]|%(?:25){0,2}2[Ff]|&#x2[Ff];|&#47;){1,4}";
    let segments = segments(profiles);
    let name = NAMES;
    let lines = [
        // Endpoints, with or without scheme and host; also with escaped or encoded slashes, and several of them.
        format!(
            r#"(?-u:(?:https?(?::|%3[Aa]){slash}(?:[^\s/\\"'<>%]|%3[Aa]){{1,255}}|(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{{1,5}})?)?(?:{slash})?(?:{segments}){slash}[A-Za-z0-9_%.~-]+(?:{slash}mcp\b)?)"#
        ),
        // Bearer tokens (RFC 6750), also encoded.
        r"(?i-u:\bbearer(?:\s+|%20|\+|\s*[:=]\s*)(?<secret>[a-z0-9._~+/=-]{6,}))".to_owned(),
        // User information of a URL (RFC 3986, 3.2.1), with or without a password.
        r#"(?-u:\b[A-Za-z][A-Za-z0-9+.-]{1,31}:\\?/\\?/(?<secret>[^\s/"'\\<>?#]{1,255})@)"#.to_owned(),
        r#"(?i-u:%3A%2F%2F(?<secret>[^\s/@"'\\<>?#&]{1,255}?)%40)"#.to_owned(),
        // Credentials of commands, and of a machine in a `.netrc`.
        r#"(?-u:\bcurl\b[^\r\n]{0,400}?\s(?:-u|--user|--proxy-user)[= ]?\\{0,3}["']?[^\s:"'\\]{1,128}:(?<secret>[^\s"'\\]+))"#.to_owned(),
        r#"(?-u:\bcurl\b[^\r\n]{0,400}?\s-b *\\{0,3}["']?(?<secret>[^\s"'\\=]{1,128}=[^\r\n"'\\ ]+))"#.to_owned(),
        r"(?i-u:\blogin\s+\S{1,128}\s+password\s+(?<secret>\S+))".to_owned(),
        // Cookies (RFC 6265): the rest of the header, or of the quoted text.
        r#"(?i-u:\b(?:set-)?cookie\\{0,3}["']?\s*[:=]\s*\[?\s*\\{0,3}["']?(?<secret>[^\s"'\\;,=]{1,255} ?= ?\\{0,3}"?[^\r\n"'\\]*))"#.to_owned(),
        r#"(?i-u:--cookie[= ]\s*\\{0,3}["']?(?<secret>[^\s"'\\][^\r\n"'\\]*))"#.to_owned(),
        // A scheme stays, what follows it goes; credentials with a list of parameters go up to the end of the line.
        r#"(?i-u:authorization\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?(?:digest|aws4-hmac-sha256|hawk)\s+(?<secret>[^\r\n]+))"#.to_owned(),
        r#"(?i-u:authorization\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?(?:basic|bearer|token|apikey|negotiate)\s+(?<secret>[^\s"'\\,;]+))"#.to_owned(),
        // Quoted values: JSON, also in a text of JSON, and assignments.
        format!(
            r#"(?i-u:{name}\\{{0,3}}["']?\s*(?::|=>?|:=)\s*\[?\s*\\{{0,3}}["'](?<secret>(?:[^"'\\\r\n]|\\+[^"'\\\r\n])+))"#
        ),
        // A name and its value as two members, and as an element.
        format!(
            r#"(?i-u:\\{{0,3}}["']name\\{{0,3}}["']\s*:\s*\\{{0,3}}["'][^"'\\]{{0,64}}{name}\\{{0,3}}["']\s*,\s*\\{{0,3}}["']value\\{{0,3}}["']\s*:\s*\\{{0,3}}["'](?<secret>[^"'\\\r\n]+))"#
        ),
        format!(r"(?i-u:<[a-z0-9:_.-]{{0,64}}{name}(?:\s[^<>]{{0,255}})?>\s*(?<secret>[^<>\s][^<>]*?)\s*</)"),
        // Environment and query: no space around the sign.
        format!(r#"(?i-u:{name}=(?<secret>[^\s"'`\\,;&<>(){{}}\[\]]+))"#),
        format!(r#"(?i-u:{name}%3D(?<secret>[^\s"'\\,;&<>%]+))"#),
        // Header fields: names of several words, or the one that has no other use.
        format!(
            r#"(?i-u:(?:\b[a-z0-9]+-{name}|\bapi-key|\bsession-id|\bauthorization)[ \t]*:[ \t]*(?<secret>[^\s"'\\,;]+))"#
        ),
        // A line that is nothing but a name and a value: a header field, YAML, a line of a log.
        format!(
            r#"(?im-u:^[ \t]*[a-z0-9_.-]{{0,64}}{name}[ \t]*:[ \t]+(?<secret>[^\s"'`\\,;(){{}}\[\]<>]{{8,}})[ \t\r]*$)"#
        ),
        // Flags, in a command and in a list.
        format!(r#"(?i-u:(?:^|[\s"'`\[(,=])--?(?:[a-z0-9]+[_-])*{name}[ \t]+\\{{0,3}}["']?(?<secret>[^\s"'\\-][^\s"'\\]*))"#),
        format!(r#"(?i-u:--?(?:[a-z0-9]+[_-])*{name}\\{{0,3}}["']\s*,\s*\\{{0,3}}["'](?<secret>[^"'\\]+))"#),
        // Other text: only what has a digit, since such a name has other uses in prose and in code.
        format!(
            r#"(?i-u:{name}\\{{0,3}}["']?\s*(?:[:=]|=>|->)\s*(?<secret>[a-z_~+/.-]{{0,64}}[0-9][a-z0-9_~+/=.%-]{{3,}}))"#
        ),
        // The beginning of a private key (RFC 7468) whose end was cut off.
        r"(?-u:-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----(?<secret>(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{30,})+(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{1,29}\b)?))".to_owned(),
    ];
    lines.join("\n")
}

/// Something of it is in every text that a pattern here or a shape of the redactor could match.
pub(super) fn trigger(profiles: &[Profile]) -> String {
    format!(
        "(?i-u:{}|bearer|authorization|key|token|secret|passw|passp|credential|sess|jwt|cookie|://|:\\\\/|%3a%2f|curl|@|gh[pousr]_|_pat_|glpat-|npm_|pypi-|hf_|akia|asia|abia|acca|xox|xapp|slack|sk-|[rs]k_|aiza|ya29|eyj|-----begin)",
        segments(profiles)
    )
}

fn segments(profiles: &[Profile]) -> String {
    profiles.iter().map(|profile| regex::escape(profile.path_segment)).collect::<Vec<_>>().join("|")
}
