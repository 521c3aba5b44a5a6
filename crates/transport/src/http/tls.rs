//! TLS for https targets: trust roots are loaded when the first such connection is made, and not before.

use std::sync::{Arc, LazyLock, OnceLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

use super::tcp::Tcp;

/// Which certificate authorities are trusted.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// Those of the operating system; Mozilla's list when it has none.
    #[default]
    System,
    /// These DER certificates only.
    Only(Vec<Vec<u8>>),
    /// These DER certificates beside those of the system.
    Besides(Vec<Vec<u8>>),
}

impl Roots {
    /// The certificates of a text in PEM (RFC 7468); `only`: no others. The error says why there is none.
    pub fn from_pem(text: &str, only: bool) -> Result<Self, String> {
        let read: Result<Vec<Vec<u8>>, _> = CertificateDer::pem_slice_iter(text.as_bytes())
            .map(|certificate| certificate.map(|certificate| certificate.to_vec()))
            .collect();
        let certificates = read.map_err(|error| format!("it is no PEM: {error}"))?;
        let mut store = RootCertStore::empty();
        for certificate in &certificates {
            store
                .add(CertificateDer::from(certificate.clone()))
                .map_err(|error| format!("one of its certificates cannot be used: {error}"))?;
        }
        if certificates.is_empty() {
            return Err("it holds no certificate".to_owned());
        }
        Ok(if only { Self::Only(certificates) } else { Self::Besides(certificates) })
    }

    /// A client's TLS configuration that trusts them, for HTTP/1.1. The first in a process that needs the system's
    /// certificates reads them, which takes a while.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, String> {
        client_config(self)
    }
}

/// Makes TLS connections.
#[derive(Debug)]
pub(crate) struct Tls {
    roots: Roots,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Tls {
    pub(crate) fn new(roots: Roots) -> Self {
        Self { roots, config: OnceLock::new() }
    }

    pub(crate) async fn connect(&self, host: &Host<String>, stream: Tcp) -> Result<TlsStream<Tcp>, String> {
        let config = self.config.get_or_init(|| client_config(&self.roots)).clone()?;
        let name = match host {
            Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|error| error.to_string())?,
            Host::Ipv4(ip) => ServerName::IpAddress((*ip).into()),
            Host::Ipv6(ip) => ServerName::IpAddress((*ip).into()),
        };
        TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|error| format!("the TLS handshake failed: {error}"))
    }
}

/// Read once in a process, when first needed: a process that holds many connections holds the certificates once.
static SYSTEM: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "a system certificate could not be read");
    }
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Arc::new(store)
});

fn client_config(roots: &Roots) -> Result<Arc<ClientConfig>, String> {
    let of = |certificates: &[Vec<u8>], mut store: RootCertStore| {
        store.add_parsable_certificates(certificates.iter().cloned().map(CertificateDer::from));
        Arc::new(store)
    };
    let store = match roots {
        Roots::System => Arc::clone(&SYSTEM),
        Roots::Only(certificates) => of(certificates, RootCertStore::empty()),
        Roots::Besides(certificates) => of(certificates, RootCertStore::clone(&SYSTEM)),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
