//! The fronts before a hub that is played: what passes the door, and which stream a message takes.

mod door;
mod hub;
mod legacy;
mod modern;
mod peer;
mod stdio;
mod tls;
