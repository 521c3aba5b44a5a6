//! Owns servers that no file names: given on the command line by their own command line or address.

use std::ffi::OsString;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolway_agent::{authorizer, child_target};
use toolway_auth::ServerAuth;
use toolway_config::{LoadOptions, Policy, Standing};
use toolway_proxy::gateway::{
    Protocol, RemoteKind, RemoteTarget, ServerConfig, Share, Target, Timeouts, ToolFilter,
};
use toolway_secret::Secret;
use toolway_transport::{HttpConfig, Signer};

use super::{machine, own_machine};
use crate::args::AdHocArgs;
use crate::compose::{Environment, Expanded, UsageError, address_seen, arguments, expand, header, variable};
use crate::render::quoted;

/// What such a server is called in outputs.
const NAME: &str = "ad-hoc";

/// The server that the arguments give; `None`: they give none.
pub(crate) fn ad_hoc(args: &AdHocArgs, own: &Environment) -> Result<Option<Arc<ServerConfig>>, UsageError> {
    let machine = machine(own)?;
    let config = match (&args.command, &args.url) {
        (Some(command), _) => command_line(command, args, own, &machine)?,
        (None, Some(url)) => address(url, args, own, &machine)?,
        (None, None) if args.transport.is_some() => {
            return Err(UsageError::new("--transport", "belongs to --command or --url"));
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(Arc::new(config)))
}

/// An administrator's policy holds here as well. What cannot be judged is forbidden as soon as there is a policy. Gives
/// what in the entry must not be seen.
fn permit(
    flag: &str,
    entry: Value,
    machine: &toolway_config::Environment,
) -> Result<Vec<Secret>, UsageError> {
    let inline = Map::from_iter([(NAME.to_owned(), entry)]);
    let resolved = toolway_config::load(&LoadOptions { inline, ..LoadOptions::default() }, machine);
    let forbidden = |by: String| Err(UsageError::new(flag, format!("forbidden by {by}")));
    let entry = resolved.entries.first();
    match entry.map(|entry| &entry.standing) {
        Some(Standing::Blocked { policy }) => forbidden(policy.clone()),
        Some(Standing::Ready) => {
            let expanded = entry.and_then(|entry| entry.expand(machine).ok());
            Ok(expanded.map(|expanded| expanded.secrets).unwrap_or_default())
        }
        _ if resolved.policy == Policy::default() => Ok(Vec::new()),
        _ => {
            let file = resolved.policy.file.unwrap_or_default();
            forbidden(format!("{}: it cannot be judged by the policy there", file.display()))
        }
    }
}

fn command_line(
    line: &str,
    args: &AdHocArgs,
    own: &Environment,
    machine: &toolway_config::Environment,
) -> Result<ServerConfig, UsageError> {
    if args.transport.as_deref().is_some_and(|kind| kind != "stdio") {
        return Err(
            UsageError::new("--transport", "a command speaks stdio").with_hint("give --url for http and sse")
        );
    }
    let words = split(line).ok_or_else(|| {
        UsageError::new("--command", "its quotes do not close")
            .with_hint("--command 'npx -y some-server --flag \"a b\"'")
    })?;
    let Some((command, rest)) = words.split_first() else {
        return Err(UsageError::new("--command", "is empty"));
    };
    let given = args.env.iter().map(|pair| variable(pair, own)).collect::<Result<Vec<_>, _>>()?;
    let env: Map<String, Value> =
        given.iter().map(|(name, value)| (name.clone(), Value::from(value.expose()))).collect();
    let mut secrets = arguments(words.iter().map(String::as_str));
    secrets.extend(permit("--command", json!({"command": command, "args": rest, "env": env}), machine)?);
    let mut digest = Sha256::new();
    for word in &words {
        digest.update([word.as_bytes(), b"\0"].concat());
    }
    for (name, value) in &given {
        digest.update([name.as_bytes(), b"=", value.expose().as_bytes(), b"\0"].concat());
        secrets.push(value.clone());
    }
    let cwd = std::env::current_dir().ok();
    if let Some(cwd) = &cwd {
        digest.update(cwd.as_os_str().as_encoded_bytes());
    }
    let given: Vec<(OsString, OsString)> =
        given.iter().map(|(name, value)| (name.into(), value.expose().into())).collect();
    let rest = rest.iter().map(OsString::from).collect();
    let child = child_target(command.clone(), rest, &given, false, cwd, &own_machine(own)?);
    Ok(settings(Target::Child(child), hex(digest), secrets))
}

fn address(
    url: &str,
    args: &AdHocArgs,
    own: &Environment,
    machine: &toolway_config::Environment,
) -> Result<ServerConfig, UsageError> {
    let kind = match args.transport.as_deref() {
        None => RemoteKind::Auto,
        Some("http" | "streamable-http") => RemoteKind::StreamableHttp,
        Some("sse") => RemoteKind::Sse,
        Some("stdio") => return Err(UsageError::new("--transport", "an address does not speak stdio")),
        Some(other) => {
            return Err(UsageError::new("--transport", format!("{other:?} is none of stdio, http, sse")));
        }
    };
    let Expanded { text: url, from_elsewhere } = expand(url, own, "--url")?;
    let mut secrets = permit("--url", json!({"url": url}), machine)?;
    let mut http = HttpConfig::new(&url).map_err(|error| UsageError::new("--url", error.to_string()))?;
    if !from_elsewhere {
        address_seen(&http, "--url 'https://HOST/mcp?key=${NAME}'");
    }
    http.headers = args.header.iter().map(|pair| header(pair, own)).collect::<Result<_, _>>()?;
    let mut digest = Sha256::new();
    digest.update([url.as_bytes(), b"\0"].concat());
    for (name, value) in &http.headers {
        digest.update([name.as_bytes(), b":", value.expose().as_bytes(), b"\0"].concat());
        secrets.push(value.clone());
    }
    http.authorizer = signer(&http, own)?;
    Ok(settings(Target::Remote(RemoteTarget { http, kind }), hex(digest), secrets))
}

/// Signs with what somebody has signed in for at this address.
fn signer(http: &HttpConfig, own: &Environment) -> Result<Option<Signer>, UsageError> {
    if http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return Ok(None);
    }
    let machine = own_machine(own)?;
    let Some(sign_ins) = machine.sign_ins() else { return Ok(None) };
    let server = ServerAuth::new(http.url.clone());
    let server = server.map_err(|error| UsageError::new("--url", error.to_string()))?;
    // What the person typed is not repeated where it may hold a secret.
    let url = if server.resource.query().is_some() { "URL".to_owned() } else { server.resource.to_string() };
    let hint = format!("run: toolway login {}", quoted(&url, cfg!(windows)));
    Ok(Some(Signer::new(authorizer(sign_ins.session(server), hint, None))))
}

fn settings(target: Target, digest: String, secrets: Vec<Secret>) -> ServerConfig {
    ServerConfig {
        name: NAME.to_owned(),
        target,
        digest,
        timeouts: Timeouts::default(),
        required: false,
        lazy: false,
        share: Share::Never,
        filter: ToolFilter::default(),
        protocol: Protocol::Auto,
        max_response_chars: None,
        secrets,
        roots: None,
    }
}

/// The words of a command line. On Windows a backslash is part of a path, and quotes are double ones.
fn split(line: &str) -> Option<Vec<String>> {
    if cfg!(windows) { split_plainly(line) } else { shlex::split(line) }
}

fn split_plainly(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for letter in line.chars() {
        match letter {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    (!quoted).then_some(words)
}

fn hex(digest: Sha256) -> String {
    use std::fmt::Write as _;
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(args: &AdHocArgs) -> Result<ServerConfig, UsageError> {
        let own = Environment::of(&[("TOKEN", "s3cr3t"), ("PATH", "/bin"), ("OTHER", "x")]);
        ad_hoc(args, &own).map(|config| ServerConfig::clone(&config.unwrap()))
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_does_it() {
        let args = AdHocArgs {
            command: Some("run 'a b' --x=\"c d\" --token hunter2".to_owned()),
            env: vec!["T=${TOKEN}".to_owned()],
            ..AdHocArgs::default()
        };
        let config = made(&args).unwrap();
        assert!(!format!("{config:?}").contains("s3cr3t"));
        assert!(config.secrets.iter().any(|secret| secret.expose() == "hunter2"));
        let Target::Child(target) = config.target else { panic!() };
        assert_eq!(
            (target.command.as_str(), target.child.args.clone()),
            ("run", vec!["a b".into(), "--x=c d".into(), "--token".into(), "hunter2".into()])
        );
        let names: Vec<_> = target.child.env.keys().map(|name| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["PATH", "T", "TOOLWAY_DEPTH"]);
        assert_eq!(
            split_plainly(r#"C:\x "a b" "" c"#),
            Some(vec![r"C:\x".into(), "a b".into(), String::new(), "c".into()])
        );
        assert_eq!(split_plainly("\"a"), None);
    }

    #[test]
    fn an_address_takes_headers_in_both_spellings() {
        let args = AdHocArgs {
            url: Some("http://h/${TOKEN}".to_owned()),
            header: vec!["Authorization: Bearer ${TOKEN}".to_owned(), "X-A=b:c=d".to_owned()],
            transport: Some("sse".to_owned()),
            ..AdHocArgs::default()
        };
        let config = made(&args).unwrap();
        let Target::Remote(target) = config.target else { panic!() };
        assert_eq!((target.kind, target.http.url.as_str()), (RemoteKind::Sse, "http://h/s3cr3t"));
        let headers: Vec<(&str, &str)> =
            target.http.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("Authorization", "Bearer s3cr3t"), ("X-A", "b:c=d")]);
    }

    #[test]
    fn an_administrators_policy_holds_for_what_is_typed_too() {
        let dir = tempfile::tempdir().unwrap();
        let own = Environment::of(&[("PATH", "/bin")]);
        let mut machine = machine(&own).unwrap();
        machine.managed_dirs = vec![dir.path().to_owned()];
        let args = AdHocArgs { env: vec!["NODE_OPTIONS=-r ./x".to_owned()], ..AdHocArgs::default() };
        for (policy, command, url) in [
            ("{}", true, true),
            (r#"{"policy": {"deny": [{"command": "/opt/evil*"}]}}"#, false, true),
            (r#"{"policy": {"deny": [{"command": "evil * x"}, {"url": "*.example"}]}}"#, false, false),
            (r#"{"policy": {"allow": [{"command": "/opt/evil*"}, {"url": "h.example"}]}}"#, false, true),
            (r#"{"policy": {"disableAll": true}}"#, false, false),
            (r#"{"policy": {"allow": []}}"#, false, false),
            ("{", false, false),
        ] {
            std::fs::write(dir.path().join("mcp.json"), policy).unwrap();
            let line = command_line("/opt/evil/evil --a x", &args, &own, &machine);
            assert_eq!(line.is_ok(), command, "{policy}: {line:?}");
            assert_eq!(address("https://h.example/mcp", &args, &own, &machine).is_ok(), url, "{policy}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let of = |command: Option<&str>, url: Option<&str>, transport: Option<&str>, header: Option<&str>| {
            AdHocArgs {
                command: command.map(str::to_owned),
                url: url.map(str::to_owned),
                transport: transport.map(str::to_owned),
                header: header.map(str::to_owned).into_iter().collect(),
                env: Vec::new(),
            }
        };
        for args in [
            of(Some("x"), None, Some("http"), None),
            of(Some("'x"), None, None, None),
            of(Some(""), None, None, None),
            of(None, Some("http://h"), Some("stdio"), None),
            of(None, Some("http://h"), Some("ftp"), None),
            of(None, Some("ftp://h"), None, Some("=v")),
            of(None, Some("nothing"), None, None),
            of(None, Some("http://h"), None, Some("novalue")),
            of(None, Some("http://h"), None, Some("X=${UNSET}")),
            of(None, None, Some("http"), None),
        ] {
            assert!(ad_hoc(&args, &Environment::default()).is_err(), "{args:?}");
        }
    }
}
