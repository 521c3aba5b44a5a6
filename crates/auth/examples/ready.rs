//! What it costs to attach a token that is good: `cargo run --release -p toolway-auth --example ready`.

#![expect(clippy::print_stdout, reason = "it is a measurement")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use toolway_auth::{Auth, AuthSettings, KeyringUse, Opener, ServerAuth, TlsSource};
use toolway_testkit::oauth::{Browser, Issuer, IssuerOptions};
use url::Url;

const ROUNDS: u32 = 9;
const CALLS: u32 = 200_000;

struct Person;

impl Opener for Person {
    fn show(&self, url: &Url) {
        let url = url.to_string();
        std::thread::spawn(move || Browser::open(&url));
    }
}

fn tls() -> TlsSource {
    Arc::new(|| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        Ok(Arc::new(config))
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let directory = tempfile::tempdir()?;
    let mut settings = AuthSettings::new(directory.path().join("sign-ins"), tls());
    settings.keyring = KeyringUse::Never;
    let auth = Auth::new(settings);
    let session = auth.session(ServerAuth::new(Url::parse(issuer.resource_url())?)?);
    session.login(&[], false, &Person).await?;
    // Without a directory no disk can be asked.
    drop(directory);
    let mut figures = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(session.ready()).context("no token")?;
        }
        figures.push(start.elapsed() / CALLS);
    }
    figures.sort();
    println!(
        "ready: {:?} at best, {:?} in the middle, {:?} at worst",
        figures[0],
        figures[figures.len() / 2],
        figures[figures.len() - 1]
    );
    Ok(())
}
