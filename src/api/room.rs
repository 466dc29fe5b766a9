//! What an answer may take, counted while it is made: a request can name the same large thing over
//! and over, and an answer of gigabytes must not be in memory before somebody looks at its size.

use std::collections::HashMap;

use kafka_protocol::protocol::Encodable;

use super::answer::CloseReason;
use super::codec::{self, Outcome};
use super::context::Context;
use crate::machine::group::GroupId;
use crate::wire;

/// What is left for an answer.
pub struct Room {
    api: &'static str,
    api_version: i16,
    /// At which version parts are encoded by the codec.
    codec_version: i16,
    bytes: usize,
}

impl Room {
    pub fn of(context: &Context) -> Room {
        let codec_version = wire::codec_version(context.api.key, context.api_version);
        Room {
            api: context.api.name,
            api_version: context.api_version,
            codec_version: codec_version.unwrap_or(context.api_version),
            bytes: 0,
        }
    }

    /// Takes room for about `bytes`. Without room the whole answer is not given.
    pub fn take(&mut self, bytes: usize) -> Result<(), CloseReason> {
        self.bytes += bytes;
        codec::check_size(self.api, self.api_version, self.bytes)
    }

    /// Takes the room of a part, and hands it on.
    pub fn put<E: Encodable>(&mut self, part: E) -> Result<E, CloseReason> {
        // What cannot be encoded fails later, with its reason.
        self.take(part.compute_size(self.codec_version).unwrap_or(0))?;
        Ok(part)
    }
}

impl<R> From<Result<R, CloseReason>> for Outcome<R> {
    fn from(answer: Result<R, CloseReason>) -> Outcome<R> {
        match answer {
            Ok(answer) => Outcome::Answer(answer),
            Err(reason) => Outcome::Close(reason),
        }
    }
}

/// Each group once, and how often it was named.
pub fn once(groups: impl Iterator<Item = GroupId>) -> (Vec<GroupId>, HashMap<GroupId, usize>) {
    let mut order = Vec::new();
    let mut times: HashMap<GroupId, usize> = HashMap::new();
    for group in groups {
        let times = times.entry(group.clone()).or_default();
        if *times == 0 {
            order.push(group);
        }
        *times += 1;
    }
    (order, times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::codec::ANSWER_BYTES_MAX;

    #[test]
    fn an_answer_ends_where_its_room_does() {
        let mut room = Room {
            api: "DescribeGroups",
            api_version: 0,
            codec_version: 0,
            bytes: 0,
        };
        assert_eq!(room.take(ANSWER_BYTES_MAX), Ok(()));
        let refused = room.take(1).unwrap_err();
        assert!(matches!(refused, CloseReason::AnswerTooLarge { bytes, .. }
            if bytes == ANSWER_BYTES_MAX + 1));
    }

    #[test]
    fn a_group_is_looked_up_once() {
        let groups = ["b", "a", "b", "b"].map(GroupId::from);
        let (order, times) = once(groups.into_iter());
        assert_eq!(order, ["b", "a"].map(GroupId::from));
        assert_eq!(times[&GroupId::from("b")], 3);
    }
}
