//! Owns the decision which saved results have to go. Pure.

use std::collections::HashSet;
use std::time::Duration;

use super::index::SavedEntry;
use crate::config::StoreConfig;

/// The ids that go: older than `keep_for`, then the oldest while all together are over `max_saved`; never one
/// younger than `keep_at_least`, never the newest.
pub(super) fn due(entries: &[SavedEntry], now_us: i64, config: &StoreConfig) -> Vec<String> {
    let mut sorted: Vec<&SavedEntry> = entries.iter().collect();
    sorted.sort_by(|left, right| (left.at_us, &left.id).cmp(&(right.at_us, &right.id)));
    let mut total: u64 = sorted.iter().map(|entry| entry.disk_bytes()).sum();
    let removable = sorted.len().saturating_sub(1);
    let mut gone = Vec::new();
    for entry in sorted.iter().take(removable) {
        let age = age(entry, now_us);
        if age < config.keep_at_least {
            break;
        }
        let old = config.keep_for.is_some_and(|keep_for| age > keep_for);
        let over = config.max_saved.is_some_and(|max_saved| total > max_saved);
        if old || over {
            total -= entry.disk_bytes();
            gone.push(entry.id.clone());
        }
    }
    gone
}

/// The ids that a purge by hand removes: all, or those older than `older_than`.
pub(super) fn older(entries: &[SavedEntry], now_us: i64, older_than: Option<Duration>) -> Vec<String> {
    let chosen =
        entries.iter().filter(|entry| older_than.is_none_or(|older_than| age(entry, now_us) > older_than));
    chosen.map(|entry| entry.id.clone()).collect::<HashSet<String>>().into_iter().collect()
}

fn age(entry: &SavedEntry, now_us: i64) -> Duration {
    Duration::from_micros(u64::try_from(now_us.saturating_sub(entry.at_us)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    /// Entries 0, 1, 2 ... saved at these seconds, 100 bytes each.
    fn entries(seconds: &[i64]) -> Vec<SavedEntry> {
        let entry = |(n, at): (usize, &i64)| SavedEntry {
            id: n.to_string(),
            at_us: at * SECOND,
            bytes: 100,
            ..SavedEntry::default()
        };
        seconds.iter().enumerate().map(entry).collect()
    }

    fn config(keep_for: Option<u64>, max_saved: Option<u64>, keep_at_least: u64) -> StoreConfig {
        StoreConfig {
            dir: "/x".into(),
            keep_for: keep_for.map(Duration::from_secs),
            max_saved,
            keep_at_least: Duration::from_secs(keep_at_least),
        }
    }

    #[test]
    fn age_then_quota_decide_and_the_newest_and_the_young_stay() {
        for (seconds, config, gone) in [
            (vec![0, 50, 90], config(None, None, 0), vec![]),
            (vec![0, 50, 90], config(Some(30), None, 0), vec!["0", "1"]),
            (vec![0, 1, 2], config(Some(30), None, 0), vec!["0", "1"]),
            (vec![90, 50, 0], config(Some(30), None, 0), vec!["2", "1"]),
            (vec![0, 50, 90], config(None, Some(200), 0), vec!["0"]),
            (vec![0, 50, 90], config(None, Some(0), 0), vec!["0", "1"]),
            (vec![0, 50, 90], config(None, Some(0), 60), vec!["0"]),
            (vec![0, 50, 90], config(Some(1), Some(0), 200), vec![]),
            (vec![200, 90], config(Some(5), None, 0), vec!["1"]),
            (vec![], config(Some(5), Some(0), 0), vec![]),
        ] {
            assert_eq!(due(&entries(&seconds), 100 * SECOND, &config), gone, "{seconds:?} {config:?}");
        }
    }

    #[test]
    fn by_hand_everything_may_go() {
        let mut all = older(&entries(&[0, 50, 90]), 100 * SECOND, None);
        all.sort();
        assert_eq!(all, ["0", "1", "2"]);
        assert_eq!(older(&entries(&[0, 50, 90]), 100 * SECOND, Some(Duration::from_mins(1))), ["0"]);
    }
}
