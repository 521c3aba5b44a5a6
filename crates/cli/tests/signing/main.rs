//! The real binary before servers that want a login: relays, the gateway, the shell's commands and the doctor, with an
//! issuer and a browser of the tests.
#![cfg(target_os = "linux")]

mod gateway;
mod home;
mod relay;
mod shell;
