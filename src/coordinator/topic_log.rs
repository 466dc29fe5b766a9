//! An internal topic as the log of its coordinators.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::runtime_log::{CoordinatorLog, LogBatch, LogChunk, LogEntry, LogRecord};
use crate::host::Clock;
use crate::log::{AppendError, Log, LogError, Origin, ReadError};
use crate::partition::{Partition, Partitions};
use crate::quorum::Quorum;
use crate::record::{Batch, BatchBuilder, Batches, Compression, Marker, MarkerType};
use crate::types::{ErrorCode, LeaderEpoch, Offset, ProducerId, TopicName};

/// The replicas of one internal topic on this broker.
pub struct TopicLog {
    topic: TopicName,
    compression: Compression,
    /// How much is read at a time when a coordinator is loaded.
    load_buffer_bytes: i32,
    quorum: Arc<Quorum>,
    partitions: Arc<Partitions>,
    clock: Arc<dyn Clock>,
}

impl TopicLog {
    pub fn new(
        topic: &str,
        compression: Compression,
        load_buffer_bytes: i32,
        quorum: Arc<Quorum>,
        partitions: Arc<Partitions>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let topic = topic.into();
        Arc::new(TopicLog {
            topic,
            compression,
            load_buffer_bytes,
            quorum,
            partitions,
            clock,
        })
    }

    fn partition(&self, partition: i32) -> Result<Arc<Partition>, ErrorCode> {
        let image = self.quorum.image();
        let topic = image.topic(&self.topic).ok_or(ErrorCode::NotCoordinator)?;
        self.partitions
            .get(topic.id, partition)
            .ok_or(ErrorCode::NotCoordinator)
    }

    fn build(&self, batch: LogBatch) -> Result<Batch, ErrorCode> {
        let builder = match batch {
            LogBatch::Records {
                records,
                producer,
                timestamp,
            } => {
                let mut builder = BatchBuilder::new();
                builder.compression = self.compression;
                builder.level = self.compression.default_level();
                if let Some((producer_id, producer_epoch)) = producer {
                    builder.producer_id = producer_id;
                    builder.producer_epoch = producer_epoch;
                    builder.is_transactional = true;
                }
                for record in &records {
                    builder.append(timestamp, Some(&record.key), record.value.as_deref());
                }
                builder
            }
            LogBatch::EndTransaction(end) => {
                let marker_type = if end.commit {
                    MarkerType::Commit
                } else {
                    MarkerType::Abort
                };
                let marker = Marker {
                    marker_type,
                    coordinator_epoch: end.coordinator_epoch,
                };
                let now = self.clock.now_ms();
                BatchBuilder::marker(end.producer_id, end.producer_epoch, marker, now)
            }
        };
        builder.build().map_err(|error| {
            tracing::error!(topic = &*self.topic, "a batch cannot be built: {error}");
            ErrorCode::UnknownServerError
        })
    }
}

impl CoordinatorLog for TopicLog {
    fn may_append(&self, partition: i32) -> Result<(), ErrorCode> {
        let partition = self.partition(partition)?;
        partition.check_leader(LeaderEpoch::NONE.0)?;
        if partition.has_enough_replicas() {
            Ok(())
        } else {
            Err(ErrorCode::NotEnoughReplicas)
        }
    }

    fn append(
        &self,
        partition: i32,
        leader_epoch: LeaderEpoch,
        batch: LogBatch,
    ) -> Result<Offset, ErrorCode> {
        let partition = self.partition(partition)?;
        partition
            .check_leader(leader_epoch.0)
            .map_err(|_| ErrorCode::NotLeaderOrFollower)?;
        let origin = match &batch {
            LogBatch::EndTransaction(end) if end.bumps_epoch => Origin::MarkerV2,
            _ => Origin::Coordinator,
        };
        let batch = self.build(batch)?;
        let now = self.clock.now_ms();
        let appended = partition.append(batch, origin, now);
        appended
            .map(|appended| appended.last_offset.next())
            .map_err(|error| {
                tracing::error!(topic_partition = %partition.topic_partition, "{error}");
                of_append(&error)
            })
    }

    fn read(&self, partition: i32, from: Option<Offset>) -> Result<LogChunk, ErrorCode> {
        let partition = self.partition(partition)?;
        let bytes_max = self.load_buffer_bytes.max(1) as u32;
        let read = partition.on_log(|log| {
            let from = from.unwrap_or_else(|| log.log_start_offset());
            read_chunk(log, from, bytes_max)
        });
        read.map_err(|reason| {
            tracing::error!(topic_partition = %partition.topic_partition, "{reason}");
            ErrorCode::UnknownServerError
        })
    }

    fn high_watermark(&self, partition: i32) -> Offset {
        self.partition(partition)
            .map_or(Offset::NONE, |partition| partition.high_watermark())
    }
}

/// Why an internal topic cannot be read.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("batch at offset {base_offset}: {source}")]
    Records {
        base_offset: Offset,
        #[source]
        source: crate::record::RecordsError,
    },
}

fn read_chunk(log: &Log, from: Offset, len_max: u32) -> Result<LogChunk, Unreadable> {
    let end = log.log_end_offset();
    let mut chunk = LogChunk {
        entries: Vec::new(),
        next_offset: from,
    };
    if from >= end {
        return Ok(chunk);
    }
    let slice = log.read(from, len_max, end, true)?;
    let Some(file) = &slice.file else {
        return Ok(chunk);
    };
    let mut buffer = BytesMut::zeroed(slice.len as usize);
    let read_bytes = file.read_at(&mut buffer, slice.position)?;
    buffer.truncate(read_bytes);
    // The slice may end inside a batch; the next chunk starts with that one.
    for batch in Batches::new(buffer.freeze()).map_while(Result::ok) {
        add_entries(&batch, from, &mut chunk.entries)?;
        chunk.next_offset = batch.header.next_offset();
    }
    Ok(chunk)
}

fn add_entries(batch: &Batch, from: Offset, entries: &mut Vec<LogEntry>) -> Result<(), Unreadable> {
    let header = &batch.header;
    let attributes = header.attributes;
    let producer_id = if attributes.is_transactional() {
        header.producer_id
    } else {
        ProducerId::NONE
    };
    for record in batch.records() {
        let record = record.map_err(|source| Unreadable::Records {
            base_offset: header.base_offset,
            source,
        })?;
        if header.base_offset.plus(i64::from(record.offset_delta)) < from {
            continue;
        }
        if attributes.is_control() {
            if let Some(marker) = Marker::read(&record) {
                let commit = marker.marker_type == MarkerType::Commit;
                entries.push(LogEntry::EndTransaction {
                    producer_id,
                    commit,
                });
            }
            continue;
        }
        // Copies, so that a key that is kept does not keep the whole chunk.
        let copy = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        let key = record.key.as_ref().map(copy).unwrap_or_default();
        let value = record.value.as_ref().map(copy);
        entries.push(LogEntry::Record {
            record: LogRecord { key, value },
            producer_id,
        });
    }
    Ok(())
}

/// What a coordinator makes of an append that failed.
pub(super) fn of_append(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::Storage(
            LogError::Offline { .. }
            | LogError::Full { .. }
            | LogError::Io { .. }
            | LogError::NoDirectory { .. }
            | LogError::FlushedRecordsGone { .. }
            | LogError::SegmentGone { .. }
            | LogError::Corrupt { .. },
        ) => ErrorCode::KafkaStorageError,
        AppendError::Storage(LogError::Closed { .. }) | AppendError::Fenced { .. } => {
            ErrorCode::NotLeaderOrFollower
        }
        AppendError::BatchTooLarge { .. } => ErrorCode::RecordListTooLarge,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        AppendError::TransactionCoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        AppendError::InvalidTxnState { .. } => ErrorCode::InvalidTxnState,
        AppendError::OutOfOrderSequence { .. }
        | AppendError::UnexpectedOffset { .. }
        | AppendError::Malformed { .. } => ErrorCode::UnknownServerError,
    }
}
