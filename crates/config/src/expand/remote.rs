//! Owns what is particular to a server at an address: URL, headers, client credentials, checked once they are whole.

use toolway_secret::Secret;

use crate::definition::{RemoteTarget, header_value_fault, url_fault};
use crate::dialect::Field;
use crate::expanded::{ExpandedAuth, ExpandedRemote};
use crate::problem::Problem;
use crate::sensitive::{secret_name, secret_value};

use super::{Depth, Resolver};

/// Headers whose values are no secrets: taken for some, they would spoil every text.
const PLAIN: [&str; 5] = ["Accept", "Accept-Language", "Content-Type", "User-Agent", "MCP-Protocol-Version"];

/// A value in a query of this length is taken for a secret, whatever its name.
const LONG: usize = 20;

pub(super) fn expand(resolver: &mut Resolver<'_>, target: &RemoteTarget) -> ExpandedRemote {
    let before = resolver.errors.len();
    let url = resolver.value(&target.url, Field::Url, "url");
    if resolver.errors.len() == before
        && !unread(resolver, &target.url, Field::Url)
        && let Some((fault, hint)) = url_fault(&url.text)
    {
        resolver.error(Problem::error(fault).hint(hint), &target.url, "url");
    }
    if let Ok(address) = url::Url::parse(&url.text) {
        for (name, value) in address.query_pairs() {
            if secret_name(&name) || secret_value(&value) || value.len() >= LONG {
                resolver.hide(&value);
            }
        }
    }
    let mut headers = Vec::with_capacity(target.headers.len());
    for (name, text) in &target.headers {
        let field = format!("headers.{name}");
        let before = resolver.errors.len();
        let value = resolver.value(text, Field::Headers, &field).text;
        if let Some(fault) = header_value_fault(&value).filter(|_| resolver.errors.len() == before) {
            resolver.error(Problem::error(fault), text, &field);
        }
        if !PLAIN.iter().any(|plain| plain.eq_ignore_ascii_case(name)) {
            resolver.hide(&value);
            if let Some((_, credential)) = value.split_once(' ') {
                resolver.hide(credential);
            }
        }
        headers.push((name.clone(), Secret::new(value)));
    }
    let auth = target.auth.as_ref().map(|auth| {
        let client_id = auth.client_id.as_ref();
        let client_id = client_id.map(|id| resolver.value(id, Field::Auth, "auth.CLIENT_ID").text);
        let secret = auth.client_secret.as_ref();
        let client_secret = secret.map(|secret| {
            let value = resolver.value(secret, Field::Auth, "auth.CLIENT_SECRET").text;
            resolver.hide(&value);
            Secret::new(value)
        });
        ExpandedAuth {
            client_id,
            client_secret,
            scopes: auth.scopes.clone(),
            redirect_uri: auth.redirect_uri.clone(),
            grant_type: auth.grant_type,
            account: auth.account.clone(),
        }
    });
    ExpandedRemote {
        kind: target.kind,
        url: Secret::new(url.text),
        headers,
        header_case: target.header_case,
        auth,
        tls: target.tls.clone(),
    }
}

/// Whether a part of the text is only known once files are read, commands are run and the keyring is asked.
fn unread(resolver: &Resolver<'_>, text: &crate::definition::Text, field: Field) -> bool {
    use crate::template::{Piece, parse};
    let later = |piece: &Piece| matches!(piece, Piece::Command(_) | Piece::File(_) | Piece::Keyring(_));
    resolver.context.depth < Depth::Commands
        && parse(text.raw(), resolver.dialect, field).is_ok_and(|pieces| pieces.iter().any(later))
}
