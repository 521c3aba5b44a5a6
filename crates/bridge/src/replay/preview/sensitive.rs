//! Owns the names of files and folders that are never shown, whatever is in them.

/// Folders and files.
const NAMES: [&str; 30] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".gcloud",
    ".password-store",
    "secrets",
    "secret",
    ".secrets",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".envrc",
    ".terraformrc",
    "shadow",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "authorized_keys",
];
/// Endings of key files.
const ENDINGS: [&str; 14] = [
    ".pem",
    ".key",
    ".p8",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".asc",
    ".gpg",
    ".pgp",
    ".tfstate",
    ".ovpn",
];

/// Whether a part of a path is a name that is never shown. Letter case does not count, since on some systems it does not.
pub(super) fn is_sensitive(name: &str) -> bool {
    let name = name.trim_end_matches(['.', ' ']).to_lowercase();
    // A stream of a file is the file.
    let name = name.split(':').next().unwrap_or_default();
    NAMES.contains(&name)
        || name.starts_with(".env")
        || name.rsplit_once('.').is_some_and(|(_, ending)| ending == "env")
        || name.contains("credential")
        || name.starts_with("secrets.")
        || name.starts_with("secret.")
        || name.starts_with("id_rsa")
        || name.starts_with("id_ed25519")
        || name.contains("private_key")
        || name.contains("private-key")
        || name.contains("service-account")
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::is_sensitive;

    #[test]
    fn names_of_secrets_are_known_in_any_case() {
        for name in [
            ".ssh",
            ".SSH",
            "secrets",
            ".env",
            ".env.local",
            ".Env.production",
            "prod.env",
            ".npmrc",
            ".netrc",
            "credentials",
            "aws_credentials.json",
            "server.pem",
            "tls.KEY",
            "id_rsa",
            "id_rsa.pub",
            ".env::$DATA",
            ".env.",
            "secrets.yaml",
            ".envrc",
            ".env~",
            ".env2",
            ".envs",
        ] {
            assert!(is_sensitive(name), "{name}");
        }
        for name in ["src", "main.rs", "environment.md", "keyboard.rs", "README.md", "secretary.txt"] {
            assert!(!is_sensitive(name), "{name}");
        }
    }
}
