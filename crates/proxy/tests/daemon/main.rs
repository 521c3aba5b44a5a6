//! The daemon with scripted servers in processes of their own: what is shared, who may connect, and the end.
#![cfg(target_os = "linux")]

mod door;
mod sharing;
mod support;
