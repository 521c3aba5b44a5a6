//! Owns what a run exposes: the one source of `tools/list`, manifest, report and signature. Pure.
