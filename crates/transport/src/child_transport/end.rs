//! Waits for a process to end without blocking the event loop. Does not collect it.

use std::sync::Arc;

use crate::child::Child;

/// How often to look where no event tells of the end.
const INTERVAL: std::time::Duration = std::time::Duration::from_millis(25);

/// Watches one process.
#[derive(Debug)]
pub(super) struct ExitWatch {
    child: Arc<Child>,
    /// Readable once the process has ended.
    #[cfg(target_os = "linux")]
    handle: Option<tokio::io::unix::AsyncFd<Handle>>,
}

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Handle(Arc<Child>, std::os::fd::RawFd);

#[cfg(target_os = "linux")]
impl std::os::fd::AsRawFd for Handle {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        let Self(_child, number) = self;
        *number
    }
}

impl ExitWatch {
    pub(super) fn new(child: &Arc<Child>) -> Self {
        Self {
            #[cfg(target_os = "linux")]
            handle: watch(child),
            child: Arc::clone(child),
        }
    }

    /// Returns when it has ended. Dropping the future loses nothing.
    pub(super) async fn ended(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(handle) = &self.handle
            && handle.readable().await.is_ok()
        {
            return;
        }
        while !self.child.has_ended() {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "the new name is unsafe for types whose descriptor may change; the process keeps its own open"
)]
fn watch(child: &Arc<Child>) -> Option<tokio::io::unix::AsyncFd<Handle>> {
    let handle = Handle(Arc::clone(child), child.handle_number()?);
    tokio::io::unix::AsyncFd::with_interest(handle, tokio::io::Interest::READABLE).ok()
}
