//! Tests of own_activity.
