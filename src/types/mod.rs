//! The words every other module speaks: offsets, epochs, ids and error codes as types of their own,
//! so that no two integers of one meaning can be taken for each other.

mod causes;
mod error_code;
mod ids;
#[cfg(test)]
pub mod seeded;
mod some_of;
mod topic;

pub use causes::with_causes;
pub use error_code::ErrorCode;
pub use ids::{BrokerId, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};
pub use some_of::some_of;
pub use topic::{TopicId, TopicName, TopicPartition, base64_uuid, parse_base64_uuid};
