//! ListOffsets (key 2): offsets by timestamp and by special timestamp.

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};

use super::by_topic::by_topic;
use super::codec::Handled;
use super::context::Context;
use super::{Node, error};
use crate::log::{Log, TimestampOffset};
use crate::partition::Partition;
use crate::types::{ErrorCode, LeaderEpoch, Offset, TimestampMs};

/// From this version on the answer has the leader epoch.
const VERSION_LEADER_EPOCH: i16 = 4;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// The version from which a special timestamp is understood (`ListOffsetsRequest.java`).
const SPECIAL: &[(i64, i16)] = &[
    (LATEST, 1),
    (EARLIEST, 1),
    (MAX_TIMESTAMP, 7),
    (EARLIEST_LOCAL, 8),
    (LATEST_TIERED, 9),
    (EARLIEST_PENDING_UPLOAD, 11),
];

/// Who asks, as far as the answer depends on it.
#[derive(Clone, Copy)]
struct Asker {
    api_version: i16,
    /// A follower: to it the log ends where it ends.
    is_replica: bool,
    /// A tool that may ask any replica.
    is_debugger: bool,
}

const DEBUGGING_REPLICA: i32 = -2;
/// From this version on a leader says that it cannot tell the latest offset yet.
const VERSION_OFFSET_NOT_AVAILABLE: i16 = 5;

pub fn handle(context: Context, request: ListOffsetsRequest) -> Handled<ListOffsetsResponse> {
    let asker = Asker {
        api_version: context.api_version,
        is_replica: request.replica_id.0 >= 0,
        is_debugger: request.replica_id.0 == DEBUGGING_REPLICA,
    };
    let read_committed = match request.isolation_level {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ErrorCode::UnknownServerError),
    };
    let asked = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter();
        (
            topic.name,
            partitions.map(|wanted| (wanted.partition_index, wanted)),
        )
    });
    let topics = by_topic(asked).into_iter().map(|(name, partitions)| {
        let partitions = partitions.iter().map(|asked| {
            let found = match asked.times {
                1 => read_committed.and_then(|committed| {
                    list(&context.node, asker, &name.0, &asked.what, committed)
                }),
                _ => Err(ErrorCode::InvalidRequest),
            };
            in_version(context.api_version, answer(asked.partition, found))
        });
        let partitions = partitions.collect();
        ListOffsetsTopicResponse::default()
            .with_name(name)
            .with_partitions(partitions)
    });
    Handled::Ready(ListOffsetsResponse::default().with_topics(topics.collect()))
}

/// Older versions have no field for the leader epoch.
fn in_version(version: i16, answer: ListOffsetsPartitionResponse) -> ListOffsetsPartitionResponse {
    if version >= VERSION_LEADER_EPOCH {
        answer
    } else {
        answer.with_leader_epoch(-1)
    }
}

fn answer(
    partition: i32,
    found: Result<Option<TimestampOffset>, ErrorCode>,
) -> ListOffsetsPartitionResponse {
    let response = ListOffsetsPartitionResponse::default().with_partition_index(partition);
    match found {
        Ok(Some(found)) => response
            .with_timestamp(found.timestamp.0)
            .with_offset(found.offset.0)
            .with_leader_epoch(found.leader_epoch.0),
        Ok(None) => response
            .with_timestamp(-1)
            .with_offset(-1)
            .with_leader_epoch(-1),
        Err(error) => response
            .with_error_code(error.code())
            .with_timestamp(-1)
            .with_offset(-1)
            .with_leader_epoch(-1),
    }
}

fn list(
    node: &Node,
    asker: Asker,
    topic: &str,
    wanted: &ListOffsetsPartition,
    read_committed: bool,
) -> Result<Option<TimestampOffset>, ErrorCode> {
    let partition = node.partition_by_name(topic, wanted.partition_index)?;
    if wanted.timestamp < 0 {
        let served_from = SPECIAL
            .iter()
            .find(|(special, _)| *special == wanted.timestamp);
        if served_from.is_none_or(|(_, from)| asker.api_version < *from) {
            return Err(ErrorCode::UnsupportedVersion);
        }
    }
    match asker.is_debugger {
        true => partition.check_replica(wanted.current_leader_epoch)?,
        false => partition.check_leader(wanted.current_leader_epoch)?,
    }
    let watermarks = partition.watermarks();
    let end = match (asker.is_replica, read_committed) {
        (true, _) => watermarks.log_end_offset,
        (false, true) => watermarks.last_stable_offset,
        (false, false) => watermarks.high_watermark,
    };
    // Shortly after an election nobody can tell what was committed last.
    let not_available = (!asker.is_replica && partition.is_recovering_watermark()).then_some(
        match asker.api_version {
            ..VERSION_OFFSET_NOT_AVAILABLE => ErrorCode::LeaderNotAvailable,
            _ => ErrorCode::OffsetNotAvailable,
        },
    );
    let at = |offset: Offset, leader_epoch: Option<LeaderEpoch>| {
        Ok(Some(TimestampOffset {
            timestamp: TimestampMs::NONE,
            offset,
            leader_epoch: leader_epoch.unwrap_or(LeaderEpoch::NONE),
        }))
    };
    match wanted.timestamp {
        LATEST => match not_available {
            Some(error) => Err(error),
            None => at(end, partition.log().latest_epoch()),
        },
        EARLIEST | EARLIEST_LOCAL => {
            let start = watermarks.log_start_offset;
            at(start, partition.log().epoch_at(start))
        }
        // Nothing is tiered, and nothing waits to be.
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => at(Offset::NONE, None),
        MAX_TIMESTAMP => {
            let found = partition.on_log(Log::offset_of_max_timestamp);
            below(end, &partition, found, not_available)
        }
        timestamp => {
            let timestamp = TimestampMs(timestamp);
            let found = partition.on_log(|log| log.offset_for_timestamp(timestamp));
            below(end, &partition, found, not_available)
        }
    }
}

/// What was found, if a consumer may see it already.
fn below(
    end: Offset,
    partition: &Partition,
    found: Result<Option<TimestampOffset>, crate::log::LogError>,
    not_available: Option<ErrorCode>,
) -> Result<Option<TimestampOffset>, ErrorCode> {
    match found {
        Ok(Some(found)) if found.offset >= end => match not_available {
            Some(error) => Err(error),
            None => Ok(None),
        },
        Ok(found) => Ok(found),
        Err(log_error) => Err(error::of_log(&partition.topic_partition, &log_error)),
    }
}
