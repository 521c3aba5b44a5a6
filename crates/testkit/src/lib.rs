//! The test kit: scripted fake MCP servers, a client, a judge of JSON-RPC's rules, a leak check, replays. It is for
//! tests only and knows nothing of the product that it tests, except how its relay is called.

mod acp_agent;
mod binaries;
mod capture;
mod client;
mod fake;
mod hub;
mod journal;
mod leaks;
mod message;
mod model_server;
pub mod oauth;
mod png;
mod replay;
mod rig;
pub mod script;
#[cfg(target_os = "linux")]
mod seat;
mod told;

pub use acp_agent::{AcpAgent, AcpScript};
pub use binaries::{fakemcp, toolway_acp_agent, toolway_issuer, toolway_model};
pub use capture::Capture;
pub use client::{Client, INITIALIZE, INITIALIZED, SOON};
pub use fake::{Fake, FakeConfig, FakeTransport, ignore_signals};
pub use hub::{HttpRequest, Hub, Peer};
pub use journal::{Journal, bytes_of};
pub use leaks::{Leaks, files, listening, open_files, peak_memory, processor_ticks, tree, wait_for_end};
pub use message::Message;
pub use model_server::{ModelExchange, ModelReply, ModelScript, ModelServer};
pub use png::png;
pub use replay::{Direction, Recording};
pub use rig::{Rig, Session, Upstream};
pub use script::Script;
#[cfg(target_os = "linux")]
pub use seat::Seat;
pub use told::Told;
