//! Owns diagnostic events: typed, with allow-listed fields, off by default. A sink that fails costs nothing.
