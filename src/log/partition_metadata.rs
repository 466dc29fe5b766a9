//! `partition.metadata`: which topic, by id, a partition directory belongs to.
//!
//! ```text
//! version: 0
//! topic_id: avAb1ZKUQCCnzl1IScvQVw
//! ```
//!
//! Written when the directory is made, synced with the log's first flush. If a crash leaves it
//! torn, nothing in the log was flushed yet; the log is opened without an id.

use crate::types::{TopicId, parse_base64_uuid};

pub(super) fn to_text(topic_id: TopicId) -> String {
    // No newline at the end: Kafka writes none.
    format!("version: 0\ntopic_id: {topic_id}")
}

pub(super) fn parse(text: &[u8]) -> Option<TopicId> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let version = lines.next()?.strip_prefix("version:")?;
    (version.trim() == "0").then_some(())?;
    let id = lines.next()?.strip_prefix("topic_id:")?;
    parse_base64_uuid(id.trim()).map(TopicId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_file_is_read_and_written() {
        let kafka = "version: 0\ntopic_id: avAb1ZKUQCCnzl1IScvQVw";
        let id = parse(kafka.as_bytes()).unwrap();
        assert_eq!(to_text(id), kafka);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"version: 1\ntopic_id: avAb1ZKUQCCnzl1IScvQVw"), None);
        assert_eq!(parse(b"version: 0\ntopic_id: avAb1"), None);
    }
}
