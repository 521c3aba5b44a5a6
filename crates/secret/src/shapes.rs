//! Owns the shapes of well-known secrets, as regular expressions built when first needed. Knows nothing of files.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// Enough for the compilation of all shapes, unoptimized too.
const DEEP: usize = 4 << 20;

/// One shape: where a group is named, only that group is the secret.
const SHAPES: &[&str] = &[
    // Private key blocks (RFC 7468), line breaks raw or escaped.
    r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----(?s:.*?)-----END [A-Z0-9 ]{0,32}PRIVATE KEY-----",
    // GitHub, GitLab, npm, PyPI, Hugging Face.
    r"\bgh[pousr]_[A-Za-z0-9]{30,255}",
    r"\bgithub_pat_[A-Za-z0-9_]{22,255}",
    r"\bglpat-[A-Za-z0-9_-]{20,255}",
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bpypi-[A-Za-z0-9_-]{50,255}",
    r"\bhf_[A-Za-z0-9]{30,255}",
    // Amazon.
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    r#"(?i)aws_?secret_?access_?key\\?["']?\s*[:=]\s*\\?["']?(?<secret>[a-z0-9/+=]{40})"#,
    // Slack.
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}",
    r"\bxapp-[A-Za-z0-9-]{10,255}",
    r"https://hooks\.slack\.com/services/(?<secret>[A-Za-z0-9/]{20,255})",
    // OpenAI, Anthropic, Stripe, Google.
    r"\bsk-[A-Za-z0-9_-]{20,255}",
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bya29\.[A-Za-z0-9_-]{20,255}",
    // JSON Web Tokens (RFC 7519).
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    // Authorization values (RFC 6750, RFC 7617).
    r"(?i)\bbearer\s+(?<secret>[a-z0-9._~+/=-]{8,})",
    r#"(?i)\bauthorization\\?["']?\s*[:=]\s*\\?["']?(?:basic|token|digest)?\s*(?<secret>[a-z0-9._~+/=-]{8,})"#,
    // Passwords in URLs (RFC 3986, 3.2.1).
    r#"\b[A-Za-z][A-Za-z0-9+.-]{1,31}://[^\s/:@"'\\]{0,255}:(?<secret>[^\s/@"'\\]{1,255})@"#,
    // Values whose name says what they are.
    r#"(?i)(?:api[_-]?key|(?:access|auth|refresh|id)[_-]?token|client[_-]?secret|secret[_-]?key|private[_-]?key|passwd|password)\\?["']?\s*[:=]\s*\\?["']?(?<secret>[^\s"'\\,;&{}\[\]]{6,})"#,
];

/// A shape by itself: tells which part of a find is the secret.
pub(crate) static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    on_a_deep_stack(|| SHAPES.iter().filter_map(|shape| Regex::new(&bytewise(shape)).ok()).collect())
});

/// Compiling takes more stack than some threads have that write logs.
pub(crate) fn on_a_deep_stack<T: Send>(work: impl Fn() -> T + Sync) -> T {
    let apart = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("shapes".to_owned()).stack_size(DEEP);
        thread.spawn_scoped(scope, &work).ok()?.join().ok()
    });
    apart.unwrap_or_else(work)
}

/// The sources of the shapes.
pub(crate) fn sources() -> impl Iterator<Item = String> {
    SHAPES.iter().map(|shape| bytewise(&shape.replace("?<secret>", "?:")))
}

/// All delimiters are ASCII, so characters need not be told from bytes: with word boundaries of Unicode the search would
/// be many times slower in every text that is not ASCII.
fn bytewise(shape: &str) -> String {
    format!("(?-u:{shape})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles() {
        assert_eq!(EACH.len(), SHAPES.len());
        for source in sources() {
            Regex::new(&source).unwrap();
        }
    }
}
