//! The loopback server over real sockets: the door, both generations of the protocol, many at once, and its end.

mod bodies;
mod door;
mod legacy;
mod life;
mod load;
mod modern;
mod rig;
mod wire;
