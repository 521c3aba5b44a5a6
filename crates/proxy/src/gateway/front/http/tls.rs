//! Owns TLS of the front: a certificate chain and its key, from PEM. Knows no connections.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its key, ready to serve.
#[derive(Debug, Clone)]
pub struct ServerTls(pub(super) Arc<rustls::ServerConfig>);

/// Reads a certificate chain and a private key, both PEM. The error is a fragment that shows nothing of the key.
pub fn server_tls(certificates: &[u8], key: &[u8]) -> Result<ServerTls, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|_| "the certificate is not PEM".to_owned())?;
    if chain.is_empty() {
        return Err("there is no certificate in the file".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| "there is no private key in PEM in the file".to_owned())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("certificate and key do not fit: {error}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(ServerTls(Arc::new(config)))
}
