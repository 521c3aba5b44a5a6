//! OAuth for MCP servers: who signs people in for a server, how this program becomes a client there, how it gets, keeps,
//! renews and gives up tokens, for all processes of a user at once.
//!
//! It follows the authorization of the MCP specification (2025-11-25 and 2026-07-28): protected-resource metadata (RFC
//! 9728), authorization-server metadata (RFC 8414, `OpenID` discovery), PKCE with S256 (RFC 7636), resource indicators
//! (RFC 8707), `iss` (RFC 9207), client id metadata documents, dynamic registration (RFC 7591), client credentials (RFC
//! 6749, 4.4), step-up on `insufficient_scope` (RFC 6750, 3.1), refresh and revocation (RFC 7009).
//!
//! What is sent to the authorization and token endpoints is made and read by the [`oauth2`] crate: it is small, certain
//! of the details (encodings, PKCE, errors), takes any HTTP client and keeps nothing. The official SDK's (`rmcp`)
//! authorization also discovers and registers, but keeps its state to one process, follows any address that metadata
//! names, and brings the SDK along; what this crate is for (a store that many processes share, one refresh and one login
//! at a time, metadata that lies) would have to be built around it all the same.
//!
//! Begin with [`Auth`] and its [`Session`]s. Nothing here reads the environment, opens browsers by itself, or prints.

mod address;
mod answer;
mod challenge;
mod client;
mod discover;
mod error;
mod grant;
mod http;
mod keyring;
mod loopback;
mod named;
mod session;
mod settings;
mod store;
mod token;

pub use address::is_public;
pub use challenge::BearerChallenge;
pub use error::AuthError;
pub use named::NamedSecrets;
pub use session::{Auth, Login, Opener, Session, SignIn, SignInState, SignedOut, settle};
pub use settings::{AuthSettings, Grant, KeyringUse, Redirect, ServerAuth, StaticClient, Tls, TlsSource};
