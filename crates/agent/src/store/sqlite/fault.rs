//! Owns what is said of a database that cannot be used.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::AgentError;
use crate::store::place;

/// What went wrong, and what to do. Values never stand in it.
pub(super) fn of(file: &Path, error: &rusqlite::Error) -> AgentError {
    let path = file.display();
    let code = error.sqlite_error_code();
    let message = match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return place::locked(file),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return place::damaged(file, &error.to_string());
        }
        Some(ErrorCode::DiskFull) => format!("{path}: the disk is full: make room and send again"),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            format!(
                "{path} cannot be written ({error}): check its rights and those of its folder, or choose another store"
            )
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!("{path} cannot be read or written ({error}): look at the disk")
        }
        _ => format!("{path}: {error}"),
    };
    AgentError::Store { message }
}
