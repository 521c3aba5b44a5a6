//! Owns what the doctor tells of the tokens that are kept for a server: never a token. Knows no start.

use std::sync::Arc;

use toolway_agent::Machine;
use toolway_auth::{AuthError, ServerAuth, SignIn, SignInState};
use toolway_proxy::gateway::{ServerConfig, Target};
use toolway_transport::Signer;

use super::super::shell::{Refusal, Shell};
use super::super::sign_in::summary;
use super::report::{Check, Layer, ServerReport, Verdict};

/// Says at each server that wants a login, or has one, what is kept for it.
pub(super) fn explain(
    reports: &mut [ServerReport],
    starts: &[(usize, Arc<ServerConfig>)],
    machine: &Machine,
) -> Result<(), Refusal> {
    let wanted = |config: &ServerConfig, check: &Check| {
        let signed = config.target.signer().is_some_and(Signer::has_signed);
        check.layer == Layer::Authorised && (signed || check.verdict == Verdict::Fault)
    };
    let mut kept: Option<Vec<Result<SignIn, AuthError>>> = None;
    for (at, config) in starts {
        let Some(resource) = resource(config) else { continue };
        let Some(report) = reports.get_mut(*at) else { continue };
        for check in report.checks.iter_mut().filter(|check| wanted(config, check)) {
            // The store is opened where there is something to say of it only: a keyring may ask its owner first.
            let kept = match &kept {
                Some(kept) => kept,
                None => kept.insert(all(machine)?),
            };
            for line in lines(kept, &resource, check.verdict == Verdict::Fault) {
                check.finding.push_str(if check.verdict == Verdict::Fault { "\n" } else { ": " });
                check.finding.push_str(&line);
            }
        }
    }
    Ok(())
}

fn all(machine: &Machine) -> Result<Vec<Result<SignIn, AuthError>>, Refusal> {
    let Some(sign_ins) = machine.sign_ins() else { return Ok(Vec::new()) };
    let found = Shell::block_on(async { Ok(sign_ins.auth().all().await) })?;
    Ok(match found {
        Ok(found) => found.into_iter().map(|(_, one)| one).collect(),
        Err(error) => vec![Err(error)],
    })
}

/// Under which address its tokens are kept.
fn resource(config: &ServerConfig) -> Option<String> {
    let Target::Remote(remote) = &config.target else { return None };
    remote.http.authorizer.as_ref()?;
    Some(ServerAuth::new(remote.http.url.clone()).ok()?.resource.into())
}

fn lines(kept: &[Result<SignIn, AuthError>], resource: &str, fault: bool) -> Vec<String> {
    let own = kept.iter().filter_map(|one| one.as_ref().ok()).filter(|one| one.resource == resource);
    let mut lines: Vec<String> = own.map(line).collect();
    if fault && lines.is_empty() {
        lines.push("no token is kept for it".to_owned());
    }
    if fault {
        let unreadable = kept.iter().filter_map(|one| one.as_ref().err());
        lines.extend(unreadable.map(|error| format!("a sign-in that is kept cannot be read: {error}")));
    }
    lines
}

fn line(one: &SignIn) -> String {
    let about = summary(one);
    let what = match one.state {
        SignInState::SignedIn => format!("a token is kept{about}"),
        SignInState::Renewable => format!("a token is kept, at its end, which is renewed by itself{about}"),
        SignInState::Expired => format!("a token is kept, at its end, which cannot be renewed{about}"),
        SignInState::SignedOut => format!("no token is kept any more{about}"),
    };
    let ended = one.ended.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let wanted = if one.wanted.is_empty() {
        String::new()
    } else {
        format!("; the server wants {} too", one.wanted.join(" "))
    };
    format!("{what}{ended}{wanted}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn one(state: SignInState) -> SignIn {
        SignIn {
            resource: "https://h.example/mcp".to_owned(),
            issuer: "https://issuer.example".to_owned(),
            client_id: "c".to_owned(),
            client: "registered",
            account: String::new(),
            state,
            scopes: vec!["read".to_owned()],
            wanted: Vec::new(),
            expires_in: Some(Duration::from_mins(40)),
            ended: None,
            changed_at: 0,
        }
    }

    #[test]
    fn what_is_kept_is_told_for_this_server_alone() {
        let other = SignIn { resource: "https://other.example/mcp".to_owned(), ..one(SignInState::SignedIn) };
        let ended = SignIn {
            ended: Some("the refresh token was refused".to_owned()),
            wanted: vec!["write".to_owned()],
            expires_in: None,
            ..one(SignInState::SignedOut)
        };
        let unreadable = AuthError::Setting { field: "x".to_owned(), reason: "y".to_owned() };
        let kept = [Ok(other), Ok(one(SignInState::SignedIn)), Ok(ended), Err(unreadable)];
        assert_eq!(
            lines(&kept, "https://h.example/mcp", true),
            [
                "a token is kept at https://issuer.example, for read, good for 40 min",
                "no token is kept any more at https://issuer.example, for read: the refresh token was refused; the server \
                 wants write too",
                "a sign-in that is kept cannot be read: x: y",
            ]
        );
        assert_eq!(lines(&kept[..1], "https://h.example/mcp", true), ["no token is kept for it"]);
        assert_eq!(lines(&kept[..1], "https://h.example/mcp", false), [""; 0]);
    }
}
