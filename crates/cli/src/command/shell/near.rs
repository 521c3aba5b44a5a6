//! Owns proposals for a name that does not exist. Pure.

/// How much of a name may differ.
const LIKE: f64 = 0.75;
/// The most proposals.
const MOST: usize = 3;

/// The names that are most like this one, the best first.
pub(crate) fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = plain(name);
    let mut found: Vec<(f64, &str)> = names
        .into_iter()
        .filter_map(|own| {
            let other = plain(own);
            let contained = wanted.len() >= 3 && other.contains(&wanted);
            let like = strsim::jaro_winkler(&wanted, &other).max(if contained { 0.9 } else { 0.0 });
            (like >= LIKE).then_some((like, own))
        })
        .collect();
    found.sort_by(|(one, first), (other, second)| other.total_cmp(one).then(first.cmp(second)));
    found.dedup_by(|(_, one), (_, other)| one == other);
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// Without case and separators, which are what people mistake most.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_strangers_do_not() {
        let names = ["github", "gitlab", "filesystem", "memory", "File-System"];
        assert_eq!(near("githb", names), ["github", "gitlab"]);
        assert_eq!(near("file_system", names), ["File-System", "filesystem"]);
        assert_eq!(near("system", names), ["File-System", "filesystem"]);
        assert_eq!(near("zzz", names), Vec::<&str>::new());
    }
}
