//! The front over TLS.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::hub::Played;
use super::peer::{Peer, call, request};
use crate::gateway::front::{HttpFrontConfig, server_tls};

/// RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

#[tokio::test]
async fn over_tls_the_same_front_is_served_and_nothing_without_it() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) =
        (pem("CERTIFICATE", made.cert.der()), pem("PRIVATE KEY", &made.signing_key.serialize_der()));
    let tls = server_tls(certificate.as_bytes(), key.as_bytes()).unwrap();
    let played = Played::http(HttpFrontConfig { tls: Some(tls), ..HttpFrontConfig::default() }).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", played.port)).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let text = request("POST", played.port, &[("Connection", "close")], &call("1", "x"));
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    // No session yet: the front itself has answered.
    assert!(String::from_utf8_lossy(&answer).contains("Mcp-Session-Id is missing"));
    let mut plain = Peer::open(played.port, &text).await;
    assert!(plain.is_closed().await);
    played.stop().await;
}

#[test]
fn what_is_no_certificate_is_refused_without_showing_the_key() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) =
        (pem("CERTIFICATE", made.cert.der()), pem("PRIVATE KEY", &made.signing_key.serialize_der()));
    let other = pem(
        "PRIVATE KEY",
        &rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().signing_key.serialize_der(),
    );
    for (certificate, key) in
        [("", key.as_str()), ("nonsense", &key), (&certificate, ""), (&certificate, &other)]
    {
        let error = server_tls(certificate.as_bytes(), key.as_bytes()).unwrap_err();
        assert!(!error.contains("PRIVATE"), "{error}");
    }
}
