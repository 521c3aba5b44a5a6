//! Owns a live run between agent and host: the ordered queue of events, batches, waits. Pure state, driven by one task.
