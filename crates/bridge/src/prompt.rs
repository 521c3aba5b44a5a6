//! Owns the prompts that an agent is sent: bootstrap, incremental, tail guard. Pure.
