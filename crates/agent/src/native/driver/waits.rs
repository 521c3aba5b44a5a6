//! Owns what a run waits for, besides calls: its end, a moment, the model.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::TurnStop;
use crate::error::AgentError;
use crate::native::model::{ModelEvent, ModelStream};

/// Ends when the run is to end, and says why.
pub(super) async fn stopped(cancel: &CancellationToken, deadline: Option<Instant>) -> TurnStop {
    tokio::select! {
        biased;
        () = cancel.cancelled() => TurnStop::Cancelled,
        () = until(deadline) => TurnStop::Limit(
            "the run has reached its limit of time: raise `limits.time` to let it go on".to_owned(),
        ),
    }
}

pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

pub(super) async fn next_event(
    stream: &mut Option<Box<dyn ModelStream>>,
) -> Option<Result<ModelEvent, AgentError>> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}
