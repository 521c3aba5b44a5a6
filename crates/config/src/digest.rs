//! Owns the two digests of a server: of what its definition means, and of what it runs with. Reads the files that the
//! first is bound to, and nothing else.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::definition::{Definition, InheritEnv, Options, StdioTarget, Target, Text};
use crate::dialect::{Dialect, Field};
use crate::expanded::{Expanded, ExpandedStdio, ExpandedTarget};
use crate::template::{self, Piece};

#[cfg(test)]
mod tests;

/// Variables that decide what a program runs: their values in an `envFile` of the project are part of the meaning, and
/// a command that sets them is not the command that a policy allows.
pub(crate) const STEERING: [&str; 20] = [
    "PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "BASH_ENV",
    "ENV",
    "RUBYOPT",
    "RUBYLIB",
    "PERL5OPT",
    "PERL5LIB",
    "JAVA_TOOL_OPTIONS",
    "npm_config_registry",
    "UV_INDEX_URL",
];

/// Digest of what a definition means: placeholders by the names of their variables, not by values, order and spelling
/// without meaning evened out; and of the scripts inside `root` that its command points at.
pub(crate) fn of_meaning(
    definition: &Definition,
    expanded: &Expanded,
    env_file: Option<&Path>,
    root: Option<&Path>,
) -> String {
    let target = match &definition.target {
        Target::Stdio(target) => meaning_of_stdio(target, definition.dialect),
        Target::Remote(target) => {
            let mut headers: Vec<_> = target
                .headers
                .iter()
                .map(|(name, value)| {
                    json!([name.to_ascii_lowercase(), meaning(value, definition.dialect, Field::Headers)])
                })
                .collect();
            headers.sort_by_key(Value::to_string);
            let auth = target.auth.as_ref().map(|auth| {
                let one = |text: &Option<Text>| {
                    text.as_ref().map(|text| meaning(text, definition.dialect, Field::Auth))
                };
                json!([
                    one(&auth.client_id),
                    one(&auth.client_secret),
                    auth.scopes,
                    auth.redirect_uri,
                    auth.grant_type.name(),
                    auth.account
                ])
            });
            let tls = target.tls.as_ref().map(|tls| json!([tls.ca_bundle, tls.strict]));
            json!({
                "kind": format!("{:?}", target.kind),
                "url": meaning(&target.url, definition.dialect, Field::Url),
                "headers": headers,
                "auth": auth,
                "tls": tls,
                "header_case": format!("{:?}", target.header_case),
            })
        }
    };
    let mut scripts = Vec::new();
    if let (Some(root), ExpandedTarget::Stdio(stdio)) = (root, &expanded.target) {
        scripts = scripts_of(stdio, root);
        scripts.extend(env_file.and_then(|file| steering(file, root)));
    }
    let all = json!([1, target, options(&definition.options, definition.dialect), scripts]);
    hex(&Sha256::digest(all.to_string()))
}

fn meaning_of_stdio(target: &StdioTarget, dialect: Dialect) -> Value {
    let list = |texts: &[Text]| -> Vec<Value> {
        texts.iter().map(|text| meaning(text, dialect, Field::Args)).collect()
    };
    let mut env: Vec<_> =
        target.env.iter().map(|(name, value)| json!([name, meaning(value, dialect, Field::Env)])).collect();
    env.sort_by_key(Value::to_string);
    let path = |text: &Option<Text>| text.as_ref().map(|text| meaning(text, dialect, Field::Cwd));
    json!({
        "command": meaning(&target.command, dialect, Field::Command),
        "args": target.args.as_deref().map(list),
        "env": env,
        "env_file": path(&target.env_file),
        "cwd": path(&target.cwd),
        "inherit_env": inherit(&target.inherit_env),
    })
}

fn inherit(inherit: &InheritEnv) -> Value {
    match inherit {
        InheritEnv::Base => Value::Null,
        InheritEnv::All => Value::Bool(true),
        InheritEnv::Names(names) => json!(names),
    }
}

/// A text by its pieces.
fn meaning(text: &Text, dialect: Dialect, field: Field) -> Value {
    let Ok(pieces) = template::parse(text.raw(), dialect, field) else { return json!({"raw": text.raw()}) };
    let home = dialect.expands_home() && text.raw().starts_with("~/");
    let pieces = pieces.into_iter().map(|piece| match piece {
        Piece::Literal(text) => json!(text),
        Piece::Variable { name, default } => json!({"variable": name, "default": default}),
        Piece::Known(known) => json!({"known": known.name()}),
        Piece::Input(id) => json!({"input": id}),
        Piece::Command(line) => json!({"command": line}),
        Piece::File(path) => json!({"file": path}),
        Piece::Keyring(name) => json!({"keyring": name}),
    });
    json!([home, pieces.collect::<Vec<_>>()])
}

/// All options but the switch.
fn options(options: &Options, dialect: Dialect) -> Value {
    let Options {
        enabled: _,
        tools,
        startup_timeout,
        list_timeout,
        call_idle_timeout,
        call_max,
        required,
        lazy,
        share,
        max_response_chars,
        roots,
        protocol,
        placement,
    } = options;
    let millis =
        |time: &Option<std::time::Duration>| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(0));
    let roots: Option<Vec<Value>> =
        roots.as_ref().map(|roots| roots.iter().map(|root| meaning(root, dialect, Field::Cwd)).collect());
    json!([
        tools.allow,
        tools.deny,
        tools.rename,
        tools.describe,
        millis(startup_timeout),
        millis(list_timeout),
        millis(call_idle_timeout),
        millis(call_max),
        required,
        lazy,
        share.map(|share| format!("{share:?}")),
        max_response_chars,
        roots,
        protocol.map(|protocol| format!("{protocol:?}")),
        placement.map(|placement| format!("{placement:?}")),
    ])
}

/// Path and digest of each file inside `root` that the command line names.
fn scripts_of(stdio: &ExpandedStdio, root: &Path) -> Vec<Value> {
    let Ok(root) = root.canonicalize() else { return Vec::new() };
    let mut names: Vec<PathBuf> = vec![PathBuf::from(&stdio.command)];
    let mut before = "";
    for arg in &stdio.args {
        let arg = arg.expose();
        names.push(PathBuf::from(arg));
        if arg.contains(char::is_whitespace) {
            // What a shell is told to run.
            names.extend(shlex::split(arg).unwrap_or_default().into_iter().map(PathBuf::from));
        }
        if let Some((_, value)) = arg.split_once('=') {
            names.push(PathBuf::from(value));
        }
        if before == "-m" {
            let module = arg.replace('.', "/");
            names.extend(
                [format!("{module}.py"), format!("{module}/__init__.py"), format!("{module}/__main__.py")]
                    .map(PathBuf::from),
            );
        }
        before = arg;
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for name in names.iter().filter(|name| !name.as_os_str().is_empty()) {
        for base in [stdio.cwd.as_path(), root.as_path()] {
            let path = base.join(name);
            let mut files = vec![path.clone()];
            if path.is_dir() {
                // What runs when a program is told a directory.
                files.extend(
                    ["package.json", "index.js", "__main__.py", "pyproject.toml"].map(|file| path.join(file)),
                );
            }
            for file in files {
                let Ok(file) = file.canonicalize() else { continue };
                let Ok(inside) = file.strip_prefix(&root) else { continue };
                let inside = inside.to_string_lossy().into_owned();
                if file.is_file() && !found.iter().any(|(known, _)| *known == inside) {
                    found.push((inside, of_file(&file).unwrap_or_else(|error| error.kind().to_string())));
                }
            }
        }
    }
    found.sort();
    found.into_iter().map(|(path, digest)| json!([path, digest])).collect()
}

/// The variables of an `envFile` inside `root` that steer what is run.
fn steering(file: &Path, root: &Path) -> Option<Value> {
    let file = file.canonicalize().ok()?;
    if !file.starts_with(root.canonicalize().ok()?) {
        return None;
    }
    let text = String::from_utf8(crate::tree::read_bytes(&file).ok()?).ok()?;
    let variables = crate::envfile::parse(&text).ok()?;
    let steers = |(name, _): &(String, String)| STEERING.contains(&name.as_str());
    let steering: Vec<_> = variables.into_iter().filter(steers).collect();
    (!steering.is_empty()).then(|| json!(steering))
}

fn of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(piece.get(..read).unwrap_or_default());
    }
}

/// Digest of all that a server runs with, values included.
pub(crate) fn of_expanded(expanded: &Expanded) -> String {
    let target = match &expanded.target {
        ExpandedTarget::Stdio(stdio) => {
            let mut env: Vec<_> = stdio.env.iter().map(|(name, value)| (name, value.expose())).collect();
            env.sort();
            let args: Vec<_> = stdio.args.iter().map(toolway_secret::Secret::expose).collect();
            json!([stdio.command, args, env, inherit(&stdio.inherit_env), stdio.cwd.to_string_lossy()])
        }
        ExpandedTarget::Remote(remote) => {
            let mut headers: Vec<_> = remote
                .headers
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.expose()))
                .collect();
            headers.sort();
            let auth = remote.auth.as_ref().map(|auth| {
                let secret = auth.client_secret.as_ref().map(toolway_secret::Secret::expose);
                json!([
                    auth.client_id,
                    secret,
                    auth.scopes,
                    auth.redirect_uri,
                    auth.grant_type.name(),
                    auth.account
                ])
            });
            let tls = remote.tls.as_ref().map(|tls| json!([tls.ca_bundle, tls.strict]));
            json!([
                format!("{:?}", remote.kind),
                remote.url.expose(),
                headers,
                format!("{:?}", remote.header_case),
                auth,
                tls
            ])
        }
    };
    let options = options(&Options { roots: None, ..expanded.options.clone() }, Dialect::Inline);
    hex(&Sha256::digest(json!([1, target, options, expanded.roots]).to_string()))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").ok();
    }
    text
}
