//! The records of one partition's part of a fetch answer.
//!
//! With `read_committed` a broker names the transactions that were aborted in the range: records
//! of such a producer are dropped from the first offset named until its abort marker.

use std::collections::BTreeSet;

use kafka_protocol::messages::fetch_response::PartitionData;

use crate::cli::admin::{AdminError, Answer};
use crate::record::{Batch, BatchError, Batches, Marker, MarkerType, TimestampType};
use crate::types::ErrorCode;

use super::Incoming;

pub(super) struct Unpacked {
    pub records: Vec<Incoming>,
    /// The offset after the last batch, shown or not.
    pub next_offset: i64,
}

pub(super) fn unpack(
    partition: &(String, i32),
    data: &PartitionData,
    from: i64,
    read_committed: bool,
) -> Answer<Unpacked> {
    let mut unpacked = Unpacked {
        records: Vec::new(),
        next_offset: from,
    };
    let corrupt = || AdminError::answer(ErrorCode::CorruptMessage, None);
    let mut aborted: Vec<(i64, i64)> = data
        .aborted_transactions
        .iter()
        .flatten()
        .map(|txn| (txn.first_offset, txn.producer_id.0))
        .collect();
    aborted.sort_unstable();
    let mut aborted = aborted.into_iter().peekable();
    let mut aborting: BTreeSet<i64> = BTreeSet::new();
    let bytes = data.records.clone().unwrap_or_default();
    for batch in Batches::new(bytes) {
        let batch = match batch {
            Ok(batch) => batch,
            // The answer was cut at its size limit.
            Err(BatchError::Torn { .. }) => break,
            Err(_) => return Err(corrupt()),
        };
        if !batch.is_crc_right() {
            return Err(corrupt());
        }
        let header = &batch.header;
        let last_offset = header
            .base_offset
            .0
            .saturating_add(header.last_offset_delta.into());
        while let Some((_, id)) = aborted.next_if(|(first, _)| *first <= last_offset) {
            aborting.insert(id);
        }
        unpacked.next_offset = unpacked.next_offset.max(last_offset.saturating_add(1));
        if header.attributes.is_control() {
            if is_abort(&batch) {
                aborting.remove(&header.producer_id.0);
            }
            continue;
        }
        let is_aborted = header.attributes.is_transactional()
            && aborting.contains(&header.producer_id.0)
            && read_committed;
        if !is_aborted {
            take_batch(partition, &batch, from, &mut unpacked.records)?;
        }
    }
    Ok(unpacked)
}

fn is_abort(batch: &Batch) -> bool {
    let first = batch.records().next().and_then(Result::ok);
    let marker = first.as_ref().and_then(Marker::read);
    marker.is_some_and(|m| m.marker_type == MarkerType::Abort)
}

fn take_batch(
    partition: &(String, i32),
    batch: &Batch,
    from: i64,
    records: &mut Vec<Incoming>,
) -> Answer<()> {
    let header = &batch.header;
    let is_append_time = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    for record in batch.records() {
        let record = record.map_err(|_| AdminError::answer(ErrorCode::CorruptMessage, None))?;
        let offset = header
            .base_offset
            .0
            .saturating_add(record.offset_delta.into());
        // A fetch from the middle of a batch brings the whole batch.
        if offset < from {
            continue;
        }
        let timestamp_ms = match is_append_time {
            true => header.max_timestamp.0,
            false => header.base_timestamp.0.wrapping_add(record.timestamp_delta),
        };
        records.push(Incoming {
            topic: partition.0.clone(),
            partition: partition.1,
            offset,
            leader_epoch: header.leader_epoch.0,
            timestamp_ms,
            is_append_time,
            key: record.key,
            value: record.value,
            headers: record.headers,
        });
    }
    Ok(())
}
