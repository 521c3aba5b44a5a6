//! Owns what an agent offers to the bridge, as a trait.
