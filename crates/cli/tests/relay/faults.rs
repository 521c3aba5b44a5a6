//! The fault runs of the measuring harness, and the bad input of both peers: every one ends in a clear error for that
//! request, is passed on, or is ignored and counted; never a hang, a crash, or a leftover.

mod bad_input;
mod ends;
mod http;
mod memory;
mod sse;
mod stdio;
