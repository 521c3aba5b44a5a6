//! Owns the calls of one run: ids, queue, settlement, cancellation. A plain table, driven without a runtime.
