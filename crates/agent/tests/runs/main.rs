//! Agents and their runs on an engine whose moves a test writes: handles, events, observers, force, crashes, what is kept.

mod crash;
mod engine;
mod events;
mod kept;
mod life;
mod native;
mod port;
