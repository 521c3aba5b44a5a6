//! What a session does between a scripted host and a scripted agent, on a clock that the tests move. Calls go into the
//! run directly: over sockets they are in the tests of the whole crate.

mod agents;
mod any_order;
mod calls;
mod display;
mod ends;
mod faults;
mod rig;
mod steering;
