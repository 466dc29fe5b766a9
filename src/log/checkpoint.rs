//! The offset checkpoints of a log directory: `recovery-point-offset-checkpoint`,
//! `log-start-offset-checkpoint`, `replication-offset-checkpoint`, `cleaner-offset-checkpoint`.
//!
//! ```text
//! 0                              version
//! 2                              number of lines that follow
//! topic 0 42                     topic, partition, offset
//! topic 1 0
//! ```
//!
//! A file is replaced in whole: a crash leaves the old or the new one. Kafka makes an empty file
//! before it first writes one: that is as none.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::types::{Offset, TopicPartition};

pub(super) const RECOVERY_POINT: &str = "recovery-point-offset-checkpoint";
pub(super) const LOG_START: &str = "log-start-offset-checkpoint";
pub(super) const REPLICATION: &str = "replication-offset-checkpoint";

pub(super) const CLEANER: &str = "cleaner-offset-checkpoint";

pub(super) type Offsets = BTreeMap<TopicPartition, Offset>;

pub(super) fn to_text<'a>(
    entries: impl ExactSizeIterator<Item = (&'a TopicPartition, Offset)>,
) -> String {
    let mut text = format!("0\n{}\n", entries.len());
    for (partition, offset) in entries {
        let TopicPartition { topic, partition } = partition;
        writeln!(text, "{topic} {partition} {offset}").expect("a string takes everything");
    }
    text
}

/// `None`: damaged.
pub(super) fn parse(text: &[u8]) -> Option<Offsets> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    if lines.next()?.trim() != "0" {
        return None;
    }
    let count: usize = lines.next()?.trim().parse().ok()?;
    let mut offsets = Offsets::new();
    let mut seen = 0;
    for line in lines.filter(|l| !l.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let topic = words.next()?.into();
        let partition = words.next()?.parse().ok()?;
        let offset = Offset(words.next()?.parse().ok()?);
        if words.next().is_some() || offset < Offset::ZERO {
            return None;
        }
        offsets.insert(TopicPartition { topic, partition }, offset);
        seen += 1;
    }
    (seen == count).then_some(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let at = |topic: &str, partition| TopicPartition {
            topic: topic.into(),
            partition,
        };
        let offsets = Offsets::from([(at("a", 0), Offset(42)), (at("b-c", 7), Offset(0))]);
        let text = to_text(offsets.iter().map(|(p, o)| (p, *o)));
        assert_eq!(text, "0\n2\na 0 42\nb-c 7 0\n");
        assert_eq!(parse(text.as_bytes()), Some(offsets));
    }

    #[test]
    fn damage_is_seen() {
        for text in [
            "",
            "1\n0\n",
            "0\n",
            "0\n1\n",
            "0\n0\na 0 1\n",
            "0\n1\na 0 -1\n",
            "0\n1\na x 1\n",
            "0\n1\na 0 1 2\n",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
