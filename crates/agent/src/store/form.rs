//! Owns the forms of times in records. Times are kept in microseconds.

use std::time::Duration;

use ::time::OffsetDateTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Since 1970.
pub(super) fn micros(at: OffsetDateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// The present, as exactly as it is kept.
pub(crate) fn now() -> OffsetDateTime {
    at(micros(OffsetDateTime::now_utc()))
}

fn at(micros: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

pub(super) mod time {
    use super::{Deserialize, Deserializer, OffsetDateTime, Serialize, Serializer, at, micros};

    pub(crate) fn serialize<S: Serializer>(at: &OffsetDateTime, serializer: S) -> Result<S::Ok, S::Error> {
        micros(*at).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<OffsetDateTime, D::Error> {
        i64::deserialize(deserializer).map(at)
    }
}

pub(super) mod duration {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the form that serde calls")]
    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        duration.map(|duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_micros))
    }
}
