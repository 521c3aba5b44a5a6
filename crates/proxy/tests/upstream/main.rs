//! The gateway's upstream side against scripted servers: connections, the upstream task, the sequential client.

mod client;
mod life;
mod lists;
mod remote;
mod signing;
mod stdio;
mod support;
