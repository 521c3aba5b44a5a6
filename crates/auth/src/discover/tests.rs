//! What is believed of metadata, and where they are looked for.

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn texts(places: Vec<Url>) -> Vec<String> {
    places.into_iter().map(String::from).collect()
}

#[test]
fn metadata_is_looked_for_where_the_rfcs_say() {
    let resource = |text: &str| texts(well_known(&url(text), "oauth-protected-resource", true));
    let base = "https://h/.well-known/oauth-protected-resource";
    assert_eq!(resource("https://h/a/mcp/"), [format!("{base}/a/mcp"), base.to_owned()]);
    assert_eq!(resource("https://h"), [base.to_owned()]);
    assert_eq!(resource("https://h/mcp?t=1"), [format!("{base}/mcp?t=1"), base.to_owned()]);
    assert_eq!(
        texts(well_known(&url("https://h/tenant"), "oauth-authorization-server", false)),
        ["https://h/.well-known/oauth-authorization-server/tenant"]
    );
}

#[test]
fn a_resource_is_the_server_or_what_it_is_a_part_of() {
    let at = url("https://h/.well-known/x");
    for (named, server, good) in [
        ("https://h/mcp", "https://h/mcp", true),
        ("https://h/mcp/", "https://h/mcp", true),
        ("https://h", "https://h/mcp", true),
        ("https://h/a", "https://h/a/mcp", true),
        ("https://h:443/a", "https://h/a/mcp", true),
        ("https://h/mc", "https://h/mcp", false),
        ("https://h/other", "https://h/mcp", false),
        ("https://h/mcp/deeper", "https://h/mcp", false),
        ("https://evil/mcp", "https://h/mcp", false),
        ("http://h/mcp", "https://h/mcp", false),
        ("https://h:8443/mcp", "https://h/mcp", false),
        ("https://h/mcp?tenant=2", "https://h/mcp?tenant=1", false),
        ("no address", "https://h/mcp", false),
    ] {
        assert_eq!(checked_resource(&at, &url(server), Some(named)).is_ok(), good, "{named} for {server}");
    }
    assert!(checked_resource(&at, &url("https://h"), None).is_err());
}

#[test]
fn the_issuer_of_a_public_server_has_no_endpoints_in_private_networks() {
    let tls: crate::settings::TlsSource = std::sync::Arc::new(|| Err("none".to_owned()));
    // As for a server that anybody reaches, until it is looked up.
    let http = Http::new(tls, std::time::Duration::from_secs(1));
    let at = url("https://as.example/.well-known/x");
    for (endpoint, good) in [
        ("https://as.example/token", true),
        ("https://elsewhere.example/token", true),
        ("https://10.0.0.1/token", false),
        ("https://169.254.169.254/token", false),
        ("https://[::1]/token", false),
        ("https://127.0.0.1/token", false),
        ("http://localhost:8080/token", false),
        ("http://as.example/token", false),
    ] {
        for name in ["authorization", "token", "registration", "revocation"] {
            let mut metadata = serde_json::json!({
                "issuer": "https://as.example", "code_challenge_methods_supported": ["S256"],
                "authorization_endpoint": "https://as.example/a", "token_endpoint": "https://as.example/t",
            });
            metadata[format!("{name}_endpoint")] = endpoint.into();
            let metadata: ServerMetadata = serde_json::from_value(metadata).unwrap();
            let checked = checked_server(&http, &at, "https://as.example", metadata, true);
            assert_eq!(checked.is_ok(), good, "{name} {endpoint}: {checked:?}");
        }
    }
}

#[test]
fn issuers_are_equal_but_for_the_last_slash() {
    assert!(same_issuer("https://a/", "https://a") && same_issuer("https://a/x", "https://a/x/"));
    assert!(!same_issuer("https://a", "https://A") && !same_issuer("https://a", "https://a//"));
}
