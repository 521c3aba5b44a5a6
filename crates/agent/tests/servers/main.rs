//! The servers of an agent, as its runs have them: options and files on one side, scripted servers in processes of their
//! own on the other.

mod change;
mod front;
mod http;
mod options;
mod signing;
mod sources;
mod stdio;
mod support;
mod trials;
mod whole;
