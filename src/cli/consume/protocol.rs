//! What members of a classic consumer group tell each other through the coordinator
//! (`ConsumerProtocol`): the topics they want, the partitions they get.
//!
//! ```text
//! version int16, then the message of that version
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Partitions per topic.
pub type TopicPartitions = Vec<(String, Vec<i32>)>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscription {
    pub topics: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    pub partitions: TopicPartitions,
}

impl Subscription {
    /// As version 0: what every assignor understands.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(0);
        out.put_i32(self.topics.len() as i32);
        for topic in &self.topics {
            put_text(&mut out, topic);
        }
        out.put_i32(-1);
        out.freeze()
    }

    /// `None`: no subscription of any version.
    pub fn read(bytes: &Bytes) -> Option<Subscription> {
        let mut rest = bytes.clone();
        let _version = rest.try_get_i16().ok()?;
        let count = usize::try_from(rest.try_get_i32().ok()?).ok()?;
        let mut topics = Vec::new();
        for _ in 0..count {
            topics.push(take_text(&mut rest)?);
        }
        Some(Subscription { topics })
    }
}

impl Assignment {
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(0);
        out.put_i32(self.partitions.len() as i32);
        for (topic, partitions) in &self.partitions {
            put_text(&mut out, topic);
            out.put_i32(partitions.len() as i32);
            partitions.iter().for_each(|p| out.put_i32(*p));
        }
        out.put_i32(-1);
        out.freeze()
    }

    /// Empty bytes are an empty assignment.
    pub fn read(bytes: &Bytes) -> Option<Assignment> {
        let mut rest = bytes.clone();
        if rest.is_empty() {
            return Some(Assignment::default());
        }
        let _version = rest.try_get_i16().ok()?;
        let count = usize::try_from(rest.try_get_i32().ok()?).ok()?;
        let mut partitions = Vec::new();
        for _ in 0..count {
            let topic = take_text(&mut rest)?;
            let count = usize::try_from(rest.try_get_i32().ok()?).ok()?;
            let mut indexes = Vec::new();
            for _ in 0..count {
                indexes.push(rest.try_get_i32().ok()?);
            }
            partitions.push((topic, indexes));
        }
        Some(Assignment { partitions })
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_i16(text.len() as i16);
    out.put_slice(text.as_bytes());
}

fn take_text(rest: &mut Bytes) -> Option<String> {
    let length = usize::try_from(rest.try_get_i16().ok()?).ok()?;
    if rest.remaining() < length {
        return None;
    }
    String::from_utf8(rest.split_to(length).to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_damage_is_seen() {
        let topics = vec!["a".to_owned(), "bc".to_owned()];
        let subscription = Subscription { topics };
        let bytes = subscription.to_bytes();
        assert_eq!(Subscription::read(&bytes), Some(subscription));
        let partitions = vec![("a".to_owned(), vec![0, 2]), ("b".to_owned(), vec![])];
        let assignment = Assignment { partitions };
        let bytes = assignment.to_bytes();
        assert_eq!(Assignment::read(&bytes), Some(assignment));
        // The last four bytes are the user data, which is not read.
        for cut in 1..bytes.len() - 4 {
            assert_eq!(Assignment::read(&bytes.slice(..cut)), None, "{cut}");
        }
        // A huge count takes no memory.
        let huge = Bytes::from_static(&[0, 0, 0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(Assignment::read(&huge), None);
    }
}
