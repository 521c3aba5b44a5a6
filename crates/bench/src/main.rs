//! The measuring harness: an upstream, a client, yardstick relays and faults.

fn main() {}
