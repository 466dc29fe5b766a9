//! Names of directories and files.
//!
//! ```text
//! <topic>-<partition>                        a partition
//! <topic>-<partition>.<32 hex digits>-delete one that waits for its removal
//! <topic>-<partition>.<32 hex digits>-future one that is being moved here (`future`)
//! <topic>-<partition>.<32 hex digits>-stray  one of a topic that nobody knows
//!   <base offset, 20 digits>.log             batches
//!   <base offset, 20 digits>.index           offset -> position
//!   <base offset, 20 digits>.timeindex       timestamp -> offset
//!   <base offset, 20 digits>.txnindex        aborted transactions
//!   <offset, 20 digits>.snapshot             producers as of this offset
//!   <any of these>.deleted|.cleaned|.swap    out of the log | being compacted | about to go in
//! ```

use uuid::Uuid;

use crate::types::{Offset, TopicPartition};

/// The files of a segment. The number is the file's place in the file cache's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log = 0,
    OffsetIndex = 1,
    TimeIndex = 2,
    TxnIndex = 3,
}

impl Kind {
    pub const ALL: [Kind; 4] = [
        Kind::Log,
        Kind::OffsetIndex,
        Kind::TimeIndex,
        Kind::TxnIndex,
    ];

    pub fn suffix(self) -> &'static str {
        match self {
            Kind::Log => ".log",
            Kind::OffsetIndex => ".index",
            Kind::TimeIndex => ".timeindex",
            Kind::TxnIndex => ".txnindex",
        }
    }
}

const DELETE: &str = "-delete";
const FUTURE: &str = "-future";
const STRAY: &str = "-stray";

pub(super) const SNAPSHOT_SUFFIX: &str = ".snapshot";
pub(super) const DELETED_SUFFIX: &str = ".deleted";
pub(super) const CLEANED_SUFFIX: &str = ".cleaned";
pub(super) const SWAP_SUFFIX: &str = ".swap";
pub(super) const TMP_SUFFIX: &str = ".tmp";
pub(super) const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
pub(super) const PARTITION_METADATA: &str = "partition.metadata";

pub(super) fn segment_file(base_offset: Offset, kind: Kind) -> String {
    format!("{:020}{}", base_offset.0, kind.suffix())
}

pub(super) fn snapshot_file(offset: Offset) -> String {
    format!("{:020}{SNAPSHOT_SUFFIX}", offset.0)
}

/// The offset in the name of a segment's or snapshot's file, and the rest of the name.
pub(super) fn split_offset(name: &str) -> Option<(Offset, &str)> {
    let digits = name.find('.')?;
    if digits != 20 || !name.bytes().take(20).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let offset = name[..20].parse().ok()?;
    Some((Offset(offset), &name[20..]))
}

/// What a directory in a log directory is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DirName {
    Partition(TopicPartition),
    Delete,
    Future(TopicPartition),
    Stray,
    /// Nothing of ours: left alone.
    Foreign,
}

impl DirName {
    pub fn parse(name: &str) -> DirName {
        for suffix in [DELETE, FUTURE, STRAY] {
            if let Some(rest) = name.strip_suffix(suffix)
                && let Some((plain, id)) = rest.rsplit_once('.')
                && id.len() == 32
                && id.bytes().all(|b| b.is_ascii_hexdigit())
            {
                return match (suffix, DirName::parse_plain(plain)) {
                    (DELETE, _) => DirName::Delete,
                    (FUTURE, DirName::Partition(partition)) => DirName::Future(partition),
                    (FUTURE, _) => DirName::Foreign,
                    _ => DirName::Stray,
                };
            }
        }
        DirName::parse_plain(name)
    }

    fn parse_plain(name: &str) -> DirName {
        let Some((topic, digits)) = name.rsplit_once('-') else {
            return DirName::Foreign;
        };
        let plain = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        let legal = !topic.is_empty()
            && topic.len() <= 249
            && topic
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        match digits.parse() {
            // Kafka keeps its metadata log in a directory that looks like a partition.
            _ if topic == "__cluster_metadata" => DirName::Foreign,
            Ok(partition) if plain && legal => DirName::Partition(TopicPartition {
                topic: topic.into(),
                partition,
            }),
            _ => DirName::Foreign,
        }
    }
}

/// The name a partition's directory gets when it is deleted.
pub(super) fn delete_dir(topic_partition: &TopicPartition, id: Uuid) -> String {
    suffixed_dir(topic_partition, id, DELETE)
}

/// The partition's number in the name of a directory that was deleted or set aside.
pub(super) fn partition_set_aside(name: &str) -> Option<i32> {
    if !matches!(DirName::parse(name), DirName::Delete | DirName::Stray) {
        return None;
    }
    plain_parts(name)?.1.parse().ok()
}

/// Of the name of a directory that was deleted or set aside: what is there of the topic's name, and
/// the digits of the partition.
fn plain_parts(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.')?.0.rsplit_once('-')
}

/// Whether a directory is what a deletion of this partition has left.
pub(super) fn is_deleted_of(name: &str, topic_partition: &TopicPartition) -> bool {
    if DirName::parse(name) != DirName::Delete {
        return false;
    }
    let (topic, partition) = (&*topic_partition.topic, topic_partition.partition);
    plain_parts(name).is_some_and(|(part, digits)| {
        let is_cut = name.len() == 255 && topic.starts_with(part);
        digits == partition.to_string() && (part == topic || is_cut)
    })
}

/// The name it gets when nobody knows whose it is: it is kept, and never looked at again.
pub(super) fn stray_dir(topic_partition: &TopicPartition, id: Uuid) -> String {
    suffixed_dir(topic_partition, id, STRAY)
}

/// Whether the name of a future log would be one that a file may have.
pub fn can_have_future(topic_partition: &TopicPartition) -> bool {
    future_dir(topic_partition, Uuid::nil()).len() <= 255
}

/// The name of a log that is to take the place of one in another directory. It is not cut: the
/// topic must be found in it again.
pub(super) fn future_dir(topic_partition: &TopicPartition, id: Uuid) -> String {
    format!("{topic_partition}.{}{FUTURE}", id.simple())
}

/// Kafka cuts the topic's name so that the whole is no longer than a file name may be.
fn suffixed_dir(topic_partition: &TopicPartition, id: Uuid, what: &str) -> String {
    let suffix = format!("-{}.{}{what}", topic_partition.partition, id.simple());
    let topic: &str = &topic_partition.topic;
    let keep = topic.len().min(255 - suffix.len());
    format!("{}{suffix}", &topic[..keep])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(topic: &str, partition: i32) -> TopicPartition {
        TopicPartition {
            topic: topic.into(),
            partition,
        }
    }

    #[test]
    fn directories_are_told_apart() {
        let id = "0123456789abcdef0123456789abcdef";
        let cases = [
            (
                "a-b-10".to_owned(),
                DirName::Partition(partition("a-b", 10)),
            ),
            (format!("a-0.{id}-delete"), DirName::Delete),
            (
                format!("a-0.{id}-future"),
                DirName::Future(partition("a", 0)),
            ),
            (format!("a.{id}-future"), DirName::Foreign),
            (format!("a-0.{id}-stray"), DirName::Stray),
            ("lost+found".to_owned(), DirName::Foreign),
            ("a".to_owned(), DirName::Foreign),
            ("-0".to_owned(), DirName::Foreign),
            ("a-".to_owned(), DirName::Foreign),
            ("a-01".to_owned(), DirName::Foreign),
            ("a-99999999999".to_owned(), DirName::Foreign),
            ("a b-1".to_owned(), DirName::Foreign),
            ("__cluster_metadata-0".to_owned(), DirName::Foreign),
        ];
        for (name, kind) in cases {
            assert_eq!(DirName::parse(&name), kind, "{name}");
        }
    }

    #[test]
    fn a_deleted_directory_has_a_legal_name_and_is_known_again() {
        for topic in ["a", &"t".repeat(249)] {
            let name = delete_dir(&partition(topic, 123), Uuid::from_u128(7));
            assert!(name.len() <= 255);
            assert_eq!(DirName::parse(&name), DirName::Delete);
            assert!(is_deleted_of(&name, &partition(topic, 123)));
            assert!(!is_deleted_of(&name, &partition(topic, 23)));
            assert!(!is_deleted_of(&name, &partition("u", 123)));
            assert_eq!(partition_set_aside(&name), Some(123));
            let name = stray_dir(&partition(topic, 123), Uuid::from_u128(7));
            assert!(name.len() <= 255);
            assert_eq!(partition_set_aside(&name), Some(123));
            assert_eq!(partition_set_aside(&format!("{topic}-123")), None);
            assert_eq!(DirName::parse(&name), DirName::Stray);
        }
    }

    #[test]
    fn file_names_have_twenty_digits() {
        let name = segment_file(Offset(123), Kind::TimeIndex);
        assert_eq!(name, "00000000000000000123.timeindex");
        assert_eq!(split_offset(&name), Some((Offset(123), ".timeindex")));
        assert_eq!(split_offset("123.log"), None);
        assert_eq!(split_offset("99999999999999999999.log"), None);
        let name = snapshot_file(Offset(i64::MAX));
        assert_eq!(split_offset(&name), Some((Offset(i64::MAX), ".snapshot")));
    }
}
