//! The table of records and their layouts (`record_layouts.txt`): what stands in the internal
//! topics, in the metadata log and in its snapshots. Like the table of APIs it is read when it is
//! asked for.
//!
//! ```text
//! == OffsetCommitValue  api key 1   (coordinator.group.generated.OffsetCommitValue)
//!    v0                              a version, or v0-3; its fields as in layouts.txt
//!     offset: int64
//! ```

use std::sync::OnceLock;

use super::layout::{Section, Struct};
use super::parse;

const TEXT: &str = include_str!("record_layouts.txt");

/// Where records of a kind are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordHome {
    /// `__consumer_offsets`
    Groups,
    /// `__transaction_state`
    Transactions,
    /// `__share_group_state`
    ShareGroups,
    /// `__remote_log_metadata`
    RemoteLog,
    /// `__cluster_metadata`
    Metadata,
    /// The control records of a Raft log.
    Control,
}

impl RecordHome {
    fn package(self) -> &'static str {
        match self {
            RecordHome::Groups => "coordinator.group.",
            RecordHome::Transactions => "coordinator.transaction.",
            RecordHome::ShareGroups => "coordinator.share.",
            RecordHome::RemoteLog => "server.log.remote.metadata.",
            RecordHome::Metadata => "common.metadata.",
            RecordHome::Control => "common.message.",
        }
    }
}

/// One kind of record, or the key or the value of one.
#[derive(Debug)]
pub struct RecordKind {
    /// As in `OffsetCommitKey`.
    pub name: &'static str,
    /// -1 where the place of the record says what it is.
    pub api_key: i16,
    package: &'static str,
    text: &'static str,
    sections: OnceLock<Box<[Section]>>,
}

/// Every kind, in the order of the table.
fn kinds() -> &'static [RecordKind] {
    static KINDS: OnceLock<Box<[RecordKind]>> = OnceLock::new();
    KINDS.get_or_init(|| TEXT.split("\n== ").skip(1).map(kind).collect())
}

fn kind(text: &'static str) -> RecordKind {
    let heading = text.lines().next().expect("a heading");
    let mut words = heading.split_whitespace();
    let mut next = || {
        words
            .next()
            .unwrap_or_else(|| panic!("short heading: {heading}"))
    };
    let (name, _, _, key) = (next(), next(), next(), next());
    RecordKind {
        name,
        api_key: key.parse().expect("the api key is a number"),
        package: next().trim_matches(['(', ')']),
        text,
        sections: OnceLock::new(),
    }
}

/// By where it is kept, its number, and how its name ends: `Key`, `Value` or `Record`.
pub fn record_kind(home: RecordHome, api_key: i16, ending: &str) -> Option<&'static RecordKind> {
    kinds().iter().find(|kind| {
        kind.api_key == api_key
            && kind.package.starts_with(home.package())
            && kind.name.ends_with(ending)
    })
}

/// By its name.
pub fn record_kind_by_name(name: &str) -> Option<&'static RecordKind> {
    kinds().iter().find(|kind| kind.name == name)
}

impl RecordKind {
    /// `None` for a version that is not in the table.
    pub fn layout(&self, version: i16) -> Option<&Struct> {
        let sections = self.sections.get_or_init(|| sections(self.text));
        let section = sections.iter().find(|s| s.versions.contains(&version))?;
        Some(section.layout.get_or_init(|| parse::layout(section.text)))
    }

    pub fn version_max(&self) -> i16 {
        let sections = self.sections.get_or_init(|| sections(self.text));
        sections
            .last()
            .map_or(-1, |section| *section.versions.end())
    }
}

fn sections(text: &'static str) -> Box<[Section]> {
    let bodies = text.split("\n   v").skip(1);
    bodies
        .map(|body| {
            let (range, text) = body.split_once('\n').unwrap_or((body, ""));
            Section {
                versions: parse::versions(range),
                text,
                layout: OnceLock::new(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Value, decode_record};

    #[test]
    fn every_layout_of_the_table_is_read() {
        let mut layouts = 0;
        for kind in kinds() {
            for version in 0..=kind.version_max() {
                assert!(kind.layout(version).is_some(), "{} v{version}", kind.name);
                layouts += 1;
            }
            assert!(kind.layout(kind.version_max() + 1).is_none());
        }
        assert!(layouts > 100, "{layouts}");
    }

    #[test]
    fn kinds_are_found_by_home_and_number() {
        let name = |home, key, ending| record_kind(home, key, ending).map(|kind| kind.name);
        assert_eq!(name(RecordHome::Groups, 1, "Key"), Some("OffsetCommitKey"));
        assert_eq!(
            name(RecordHome::Groups, 3, "Value"),
            Some("ConsumerGroupMetadataValue")
        );
        assert_eq!(
            name(RecordHome::ShareGroups, 0, "Key"),
            Some("ShareSnapshotKey")
        );
        assert_eq!(
            name(RecordHome::Transactions, 0, "Value"),
            Some("TransactionLogValue")
        );
        assert_eq!(name(RecordHome::Metadata, 20, "Record"), Some("NoOpRecord"));
        assert_eq!(name(RecordHome::Groups, 99, "Key"), None);
    }

    /// Both as Kafka 4.4.0 wrote them: of a member of a consumer group, and of one that speaks the
    /// classic protocol to it.
    #[test]
    fn a_nullable_structure_in_a_tagged_field_is_read() {
        let kind = record_kind(RecordHome::Groups, 5, "Value").unwrap();
        let classic = |text: &str| {
            let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
            let byte = |pair: &[u8]| {
                let text = std::str::from_utf8(pair).unwrap();
                u8::from_str_radix(text, 16).unwrap()
            };
            let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
            let value = decode_record(kind, 0, &bytes.into()).unwrap();
            let Value::Struct(fields) = value else {
                panic!("{value:?}")
            };
            let found = fields
                .into_iter()
                .find(|(name, _)| name == "classic_member_metadata");
            found.unwrap().1
        };
        let none = "00 00 11 636f6e736f6c652d636f6e73756d6572 0b 2f3132372e302e302e31
                    02 04 666f6f 01 000493e0 00 01 00 01 00";
        assert_eq!(classic(none), Value::Null);
        let some = "00 00 04 636964 0b 2f3132372e302e302e31 02 04 666f6f 01 0000ea60 00
                    01 00 1e 01 00002710 02 06 72616e6765 10 0000 00000001 0003 666f6f ffffffff 00 00";
        assert!(matches!(classic(some), Value::Struct(_)));
    }
}
