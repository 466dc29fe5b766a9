//! The known name that a misspelt one probably meant.

/// The name of `known` that is the fewest edits away, when that is at most a fifth of its length.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A name from outside may be of any length; nothing known is longer than this.
    const NAME_BYTES_MAX: usize = 100;
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let edits_max = (name.len() / 5).clamp(1, 4);
    known
        .filter(|known| known.len().abs_diff(name.len()) <= edits_max)
        .map(|known| (edits(name, known), known))
        .filter(|(edits, _)| *edits <= edits_max)
        .min()
        .map(|(_, known)| known)
}

/// Levenshtein distance: insertions, deletions and replacements of a byte.
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn misspelt_names_find_their_way() {
        let known = [
            "log.dirs",
            "log.dir",
            "listener.security.protocol.map",
            "num.partitions",
        ];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("listeners.security.protocol.map"), Some(known[2]));
        assert_eq!(near("log.dirss"), Some("log.dirs"));
        assert_eq!(near("numpartitions"), Some("num.partitions"));
        assert_eq!(near("zookeeper.connect"), None);
        assert_eq!(near(&"x".repeat(200)), None);
    }
}
