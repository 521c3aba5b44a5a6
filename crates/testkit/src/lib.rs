//! Fake clients and servers, captures and leak checks.
