//! Owns the signing in of a relay: which client, which scopes, and how a login reaches the person.

use std::sync::Arc;

use toolway_agent::authorizer;
use toolway_auth::{Redirect, ServerAuth, StaticClient};
use toolway_secret::Secret;
use toolway_transport::{HttpConfig, Signer};

use super::servers::own_machine;
use super::value::Value;
use super::{Browser, Environment, UsageError};
use crate::args::OAuthArgs;
use crate::render::quoted;

/// The variable that holds a client's secret.
const CLIENT_SECRET: &str = "TOOLWAY_CLIENT_SECRET";

/// The signing in that the arguments ask for; `None`: they do not.
pub(crate) fn oauth(
    args: &OAuthArgs,
    http: &HttpConfig,
    own: &Environment,
) -> Result<Option<Signer>, UsageError> {
    let wanted = args.oauth || own.option(None, "oauth", None)?.is_some_and(|value| value.text != "0");
    if !wanted {
        let given = [
            ("--client-id", args.client_id.is_some()),
            ("--client-secret-file", args.client_secret_file.is_some()),
            ("--scope", !args.scope.is_empty()),
            ("--redirect-port", args.redirect_port.is_some()),
            ("--no-browser", args.no_browser),
        ];
        return match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(UsageError::new(flag, "is for --oauth")),
            None => Ok(None),
        };
    }
    if http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return Err(UsageError::new("--oauth", "there is a header Authorization, which does the same")
            .with_hint("leave one of them out"));
    }
    let machine = own_machine(own)?;
    let sign_ins = machine.sign_ins().cloned();
    let sign_ins = sign_ins.ok_or_else(|| {
        UsageError::new("--oauth", "there is no home directory in which tokens could be kept")
    })?;
    let server = server(args, http, own)?;
    let name = http.url.host_str().unwrap_or("the server");
    let opener = Arc::new(Browser::new(name, !args.no_browser, |name| own.get(name).map(Into::into)));
    let hint = hint(&server);
    Ok(Some(Signer::new(authorizer(sign_ins.session(server), hint, Some(opener)))))
}

/// What to do after a login that went wrong: the next request begins another one.
fn hint(server: &ServerAuth) -> String {
    let again = "send the request again: the address to open stands on stderr";
    // A query may hold a secret.
    if server.resource.query().is_some() {
        return again.to_owned();
    }
    let client = server.client.as_ref();
    let client = client.map(|client| format!(" --client-id {}", quoted(&client.id, cfg!(windows))));
    let url = quoted(server.resource.as_str(), cfg!(windows));
    format!("run: toolway login {url}{}; or {again}", client.unwrap_or_default())
}

fn server(args: &OAuthArgs, http: &HttpConfig, own: &Environment) -> Result<ServerAuth, UsageError> {
    let wrong = |what: &str| {
        let what = what.to_owned();
        move |error: toolway_auth::AuthError| UsageError::new(what, error.to_string())
    };
    let mut server = ServerAuth::new(http.url.clone()).map_err(wrong("--url"))?;
    let file = own.option(args.client_secret_file.clone(), "client-secret-file", None)?;
    let secret = client_secret(file.as_ref(), own)?;
    server.client = match own.option(args.client_id.clone(), "client-id", None)? {
        Some(id) => Some(StaticClient { id: id.text, secret }),
        None if secret.is_some() => {
            return Err(UsageError::new("--client-id", "is missing: there is a client's secret"));
        }
        None => None,
    };
    let scopes = match own.option(None, "scope", None)? {
        Some(value) if args.scope.is_empty() => vec![value.text],
        _ => args.scope.clone(),
    };
    server.scopes = scopes.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect();
    if let Some(port) = own.option(args.redirect_port.clone(), "redirect-port", None)? {
        let number: u16 = port.parse(|text| text.parse().map_err(|_| "is no port".to_owned()))?;
        let address = format!("http://127.0.0.1:{number}/callback");
        server.redirect = Redirect::parse(&address).map_err(wrong(&port.from))?;
    }
    Ok(server)
}

/// The secret of a client, of a file or of `TOOLWAY_CLIENT_SECRET`; never from an argument: those stand in the list of
/// processes.
pub(crate) fn client_secret(file: Option<&Value>, own: &Environment) -> Result<Option<Secret>, UsageError> {
    let text = match file {
        Some(file) => {
            let read = |error: std::io::Error| {
                UsageError::new(&file.from, format!("cannot read {}: {error}", file.text))
            };
            let text = std::fs::read_to_string(&file.text).map_err(read)?;
            text.strip_suffix('\n')
                .map(|text| text.strip_suffix('\r').unwrap_or(text).to_owned())
                .unwrap_or(text)
        }
        None => match own.get(CLIENT_SECRET).filter(|value| !value.is_empty()) {
            Some(value) => value
                .to_str()
                .ok_or_else(|| UsageError::new(CLIENT_SECRET, "its value is not UTF-8"))?
                .to_owned(),
            None => return Ok(None),
        },
    };
    if text.is_empty() {
        return Err(UsageError::new("--client-secret-file", "the file is empty"));
    }
    Ok(Some(Secret::new(text).made_known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(args: &OAuthArgs, own: &[(&str, &str)]) -> Result<Option<ServerAuth>, UsageError> {
        let own = Environment::of(own);
        let http = HttpConfig::new("https://h.example/mcp").unwrap();
        Ok(oauth(args, &http, &own)?.map(|_| server(args, &http, &own).unwrap()))
    }

    fn wanted() -> OAuthArgs {
        OAuthArgs { oauth: true, ..OAuthArgs::default() }
    }

    #[test]
    fn the_hint_names_the_command_unless_a_secret_may_be_in_the_address() {
        let hint_of = |url: &str, id: Option<&str>| {
            let args = OAuthArgs { client_id: id.map(str::to_owned), ..wanted() };
            hint(&server(&args, &HttpConfig::new(url).unwrap(), &Environment::default()).unwrap())
        };
        assert!(
            hint_of("https://h.example/mcp", None)
                .starts_with("run: toolway login https://h.example/mcp; or ")
        );
        assert!(hint_of("https://h.example/mcp", Some("c")).contains("/mcp --client-id c; or "));
        assert!(hint_of("https://h.example/mcp?key=1", None).starts_with("send the request again"));
    }

    #[test]
    fn options_of_a_login_want_one() {
        let args = OAuthArgs { client_id: Some("c".to_owned()), ..OAuthArgs::default() };
        let error = made(&args, &[("HOME", "/h")]).unwrap_err();
        assert_eq!(error.to_string(), "--client-id: is for --oauth");
        assert!(made(&OAuthArgs::default(), &[("TOOLWAY_OAUTH", "0")]).unwrap().is_none());
        assert!(made(&OAuthArgs::default(), &[("TOOLWAY_OAUTH", "1"), ("HOME", "/h")]).unwrap().is_some());
        assert!(made(&wanted(), &[]).unwrap_err().to_string().contains("no home directory"));
    }

    #[test]
    fn a_client_its_secret_its_scopes_and_its_redirect_are_taken_from_where_they_are() {
        let args = OAuthArgs {
            client_id: Some("c".to_owned()),
            scope: vec!["a b".to_owned(), "c".to_owned()],
            redirect_port: Some("8787".to_owned()),
            ..wanted()
        };
        let server = made(&args, &[("HOME", "/h"), (CLIENT_SECRET, "s3cr3t-of-ours")]).unwrap().unwrap();
        assert_eq!(server.scopes, ["a", "b", "c"]);
        assert_eq!(server.redirect, Redirect::parse("http://127.0.0.1:8787/callback").unwrap());
        assert!(!format!("{server:?}").contains("s3cr3t"));
        let secret = server.client.and_then(|client| client.secret).unwrap();
        assert_eq!(secret.expose(), "s3cr3t-of-ours");

        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        std::fs::write(&file, "from-a-file\n").unwrap();
        let args = OAuthArgs { client_secret_file: Some(file.to_string_lossy().into_owned()), ..args };
        let server = made(&args, &[("HOME", "/h")]).unwrap().unwrap();
        assert_eq!(server.client.and_then(|client| client.secret).unwrap().expose(), "from-a-file");
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let home = ("HOME", "/h");
        let error = made(&wanted(), &[home, (CLIENT_SECRET, "s")]).unwrap_err();
        assert_eq!(error.to_string(), "--client-id: is missing: there is a client's secret");
        for port in ["0", "x", "65536"] {
            let args = OAuthArgs { redirect_port: Some(port.to_owned()), ..wanted() };
            let own = Environment::of(&[home]);
            let http = HttpConfig::new("https://h.example/mcp").unwrap();
            assert!(server(&args, &http, &own).is_err(), "{port}");
        }
        let mut http = HttpConfig::new("https://h.example/mcp").unwrap();
        http.headers.push(("Authorization".to_owned(), Secret::new("Bearer x")));
        let error = oauth(&wanted(), &http, &Environment::of(&[home])).unwrap_err();
        assert!(error.to_string().contains("there is a header Authorization"), "{error}");
    }
}
