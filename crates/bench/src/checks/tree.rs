//! Does the front build a tree of each message? A tree of many small values needs many times the message's memory; a
//! front that scans needs none of it, whether it passes the message or saves it.

use std::time::Duration;

use super::Check;
use crate::sys::float;

/// Numbers in the message: two bytes each as text, 16 to 80 bytes each in a tree.
const VALUES: usize = 4_000_000;

/// A front that holds the whole text a few times over holds no tree yet.
const TEXTS: f64 = 4.0;

impl Check<'_> {
    pub(super) fn no_json_tree(&mut self) {
        if self.run.pid == 0 {
            return;
        }
        self.run.reset_peak();
        let before = self.run.usage();
        let args = format!(r#"{{"n":{VALUES},"kind":"values"}}"#);
        let answer = self.run.tool("blob", &args, Duration::from_mins(1));
        let after = self.run.usage();
        let message_mib = float(2 * VALUES as u64) / float(1 << 20);
        let grown_mib = float(after.peak_kib.saturating_sub(before.rss_kib)) / 1024.0;
        let times = grown_mib / message_mib;
        let word = match &answer {
            Err(miss) => miss.to_string(),
            Ok(_) if times > TEXTS => {
                format!("a TREE: {times:.1} times the message's size ({grown_mib:.0} MiB)")
            }
            Ok(_) => format!("no tree: {times:.1} times the message's size ({grown_mib:.1} MiB)"),
        };
        self.put("no_json_tree", word);
    }
}
