//! Owns what a host offers to the bridge, as a trait.
