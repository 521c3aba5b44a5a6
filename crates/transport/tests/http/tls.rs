//! https: certificates are checked, connections reused, and nothing goes on unencrypted.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use toolway_transport::{Roots, Transport};

use crate::client::{Client, Got, config, result};
use crate::server::Server;

/// A server with a certificate of its own for `localhost`, and the certificate.
async fn server() -> (Server, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let certificate = made.cert.der().clone();
    let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (Server::tls(listener, TlsAcceptor::from(Arc::new(tls))).unwrap(), certificate.to_vec())
}

#[tokio::test]
async fn a_trusted_server_is_talked_to_over_one_connection() {
    let (mut server, certificate) = server().await;
    let mut trusting = config(&server).unwrap();
    trusting.roots = Roots::Only(vec![certificate]);
    let mut client = Client::with(&trusting).unwrap();
    for id in 0..3 {
        client.call(id).unwrap();
        let request = server.next().await;
        assert_eq!(request.connection, 0);
        request.json(&result(id)).await;
        assert_eq!(client.next().await, Got::Message(result(id)));
    }
    client.call(3).unwrap();
    let plain = server.origin.replace("https:", "http:");
    server.next().await.answer("307 Temporary Redirect", &format!("location: {plain}/mcp\r\n"), "").await;
    let text = client.failure(&["3"]).await.unwrap();
    assert!(text.contains("which is not encrypted"), "{text}");
    client.transport.close().await;
}

/// RFC 7468.
fn pem(certificate: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[tokio::test]
async fn a_bundle_of_certificates_is_trusted_alone_or_beside_those_of_the_system() {
    for only in [true, false] {
        let (mut server, certificate) = server().await;
        let mut trusting = config(&server).unwrap();
        trusting.roots = Roots::from_pem(&pem(&certificate), only).unwrap();
        let mut client = Client::with(&trusting).unwrap();
        client.call(1).unwrap();
        server.next().await.json(&result(1)).await;
        assert_eq!(client.next().await, Got::Message(result(1)));
        client.transport.close().await;
    }
    for (text, reason) in [("", "it holds no certificate"), (&*pem(b"no certificate"), "cannot be used")] {
        let error = Roots::from_pem(text, true).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_refused() {
    let (server, _) = server().await;
    for roots in [Roots::System, Roots::Only(Vec::new())] {
        let mut wary = config(&server).unwrap();
        wary.roots = roots;
        let mut client = Client::with(&wary).unwrap();
        client.call(1).unwrap();
        let text = client.failure(&["1"]).await.unwrap();
        assert!(text.contains("the TLS handshake failed: invalid peer certificate"), "{text}");
    }
}
