//! Windows: nothing here yet but the job that ends everything when this process ends. Process trees are held by
//! job objects, so there is no process table to walk and no signal to send.

use std::io;
use std::sync::{Mutex, PoisonError};

use win32job::{ExtendedLimitInfo, Job};

/// The job this process is in itself. Never dropped: the system closes it, and with it everything that was
/// started below, when this process ends, however it ends.
static OWN_JOB: Mutex<Option<Job>> = Mutex::new(None);

/// A job whose processes end when its last handle is closed.
pub(crate) fn job() -> io::Result<Job> {
    Job::create_with_limit_info(ExtendedLimitInfo::new().limit_kill_on_job_close()).map_err(io::Error::other)
}

/// From now on whatever this process starts ends with it, without the moment between the start of a child and
/// its assignment to its own job.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    let mut own = OWN_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    if own.is_none() {
        let job = job()?;
        job.assign_current_process().map_err(io::Error::other)?;
        *own = Some(job);
    }
    Ok(())
}
