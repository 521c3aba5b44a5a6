//! The loopback server over real sockets: the door, both generations of the protocol, many at once, and its end.

mod bodies;
mod calls;
mod door;
mod half_closed;
mod http_forms;
mod ids;
mod legacy;
mod life;
mod load;
mod modern;
mod names;
mod rig;
mod self_test;
mod skills;
mod streams;
mod wire;
