//! Owns the name of futures behind traits that are objects. It uses nothing of this crate.

use std::future::Future;
use std::pin::Pin;

/// A future that is not named.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
