//! How `kafka-dump-log` shows the small files beside a segment. Big endian.
//!
//! ```text
//! .index      relative offset i32, position i32                    8 bytes an entry
//! .timeindex  timestamp i64, relative offset i32                  12 bytes
//! .txnindex   version i16, producer id, first, last, last stable i64    34 bytes
//! .snapshot   version i16, crc u32, count i32, then 46 bytes a producer
//! ```
//!
//! An index that is in use is larger than its entries; zeros follow them.

use super::dump_log::{IndexMode, SegmentReader, base_offset, read_all};
use super::exit::{Done, Exit};
use super::io::Io;
use crate::record::sequence_plus;

fn int32(bytes: &[u8]) -> i32 {
    bytes.first_chunk().map_or(0, |b| i32::from_be_bytes(*b))
}

fn int64(bytes: &[u8]) -> i64 {
    bytes.first_chunk().map_or(0, |b| i64::from_be_bytes(*b))
}

/// `.../00.index` has its batches in `.../00.log`.
fn segment_of(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    format!("{stem}.log")
}

/// A file in use is as large as it may become; of Kafka's own this tool takes all there is.
fn sanity(io: &mut Io, file: &str, bytes: &[u8], entry_bytes: usize) -> Done {
    match bytes.len() % entry_bytes {
        0 => {
            io.line(format!("{file} passed sanity check."));
            Ok(())
        }
        _ => {
            let text = format!(
                "Index file {file} is corrupt, found {} bytes which is neither positive nor a \
                 multiple of {entry_bytes}.",
                bytes.len()
            );
            let class = "org.apache.kafka.storage.internals.log.CorruptIndexException";
            Err(Exit::uncaught(class, &text))
        }
    }
}

pub fn index(io: &mut Io, file: &str, mode: IndexMode) -> Done {
    let bytes = read_all(file)?;
    if mode == IndexMode::Sanity {
        return sanity(io, file, &bytes, 8);
    }
    let base = base_offset(file);
    let segment = segment_of(file);
    let mut mismatches = Vec::new();
    for (at, entry) in bytes.chunks_exact(8).enumerate() {
        let (offset, position) = (base + i64::from(int32(entry)), int32(&entry[4..]));
        // The entry of an empty index, or what follows the last one.
        if offset == base && at > 0 {
            break;
        }
        let mut reader = SegmentReader::at(&segment, position.max(0) as u64)?;
        if let Some((_, batch)) = reader.next_batch()? {
            let header = &batch.header;
            let last = header
                .base_offset
                .0
                .saturating_add(header.last_offset_delta.into());
            if last != offset {
                mismatches.push((offset, last));
            }
        }
        if mode == IndexMode::Show {
            io.line(format!("offset: {offset} position: {position}"));
        }
    }
    if !mismatches.is_empty() {
        io.error_line(format!("Mismatches in :{file}"));
        for (offset, found) in mismatches.iter().rev() {
            io.error_line(format!("  Index offset: {offset}, log offset: {found}"));
        }
    }
    Ok(())
}

pub fn time_index(io: &mut Io, file: &str, mode: IndexMode) -> Done {
    let bytes = read_all(file)?;
    if mode == IndexMode::Sanity {
        return sanity(io, file, &bytes, 12);
    }
    let base = base_offset(file);
    let segment = segment_of(file);
    let mut missing = Vec::new();
    let mut wrong = Vec::new();
    let mut last_timestamp = i64::MIN;
    let mut out_of_order = Vec::new();
    for (at, entry) in bytes.chunks_exact(12).enumerate() {
        let (timestamp, offset) = (int64(entry), base + i64::from(int32(&entry[8..])));
        if offset == base && at > 0 {
            break;
        }
        let found = batch_of(&segment, offset)?;
        if let Some((last, max_timestamp)) = found {
            if last != offset {
                missing.push((offset, last));
            } else if max_timestamp != timestamp {
                wrong.push((timestamp, max_timestamp));
            }
        }
        if timestamp < last_timestamp {
            out_of_order.push((timestamp, last_timestamp));
        }
        last_timestamp = timestamp;
        if mode == IndexMode::Show {
            io.line(format!("timestamp: {timestamp} offset: {offset}"));
        }
    }
    if !wrong.is_empty() {
        io.error_line(format!("Found timestamp mismatch in :{file}"));
        for (timestamp, found) in wrong {
            io.error_line(format!(
                "  Index timestamp: {timestamp}, log timestamp: {found}"
            ));
        }
    }
    if !out_of_order.is_empty() {
        io.error_line(format!("Found out of order timestamp in :{file}"));
        for (timestamp, previous) in out_of_order {
            io.error_line(format!(
                "  Index timestamp: {timestamp}, Previously indexed timestamp: {previous}"
            ));
        }
    }
    if !missing.is_empty() {
        io.error_line(format!(
            "The following indexed offsets are not found in :{file}"
        ));
        for (offset, found) in missing {
            io.error_line(format!(
                "Indexed offset: {offset}, found log offset: {found}"
            ));
        }
    }
    Ok(())
}

/// Last offset and maximum timestamp of the batch that has this offset or the next one.
fn batch_of(segment: &str, offset: i64) -> Result<Option<(i64, i64)>, Exit> {
    let mut reader = SegmentReader::open(segment)?;
    while let Some((_, batch)) = reader.next_batch()? {
        let header = &batch.header;
        let last = header
            .base_offset
            .0
            .saturating_add(header.last_offset_delta.into());
        if last >= offset {
            return Ok(Some((last, header.max_timestamp.0)));
        }
    }
    Ok(None)
}

pub fn txn_index(io: &mut Io, file: &str) -> Done {
    for entry in read_all(file)?.chunks_exact(34) {
        let version = i16::from_be_bytes([entry[0], entry[1]]);
        io.line(format!(
            "version: {version} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
            int64(&entry[2..]),
            int64(&entry[10..]),
            int64(&entry[18..]),
            int64(&entry[26..]),
        ));
    }
    Ok(())
}

pub fn producer_snapshot(io: &mut Io, file: &str) -> Done {
    let bytes = read_all(file)?;
    let whole = bytes.len() >= 10
        && i16::from_be_bytes([bytes[0], bytes[1]]) == 1
        && crc32c::crc32c(&bytes[6..]) == int32(&bytes[2..]) as u32;
    if !whole {
        io.error_line("Snapshot is corrupt (CRC is no longer valid)");
        return Ok(());
    }
    for entry in bytes[10..].chunks_exact(46) {
        let epoch = i16::from_be_bytes([entry[8], entry[9]]);
        let (last_sequence, last_offset) = (int32(&entry[10..]), int64(&entry[14..]));
        let (offset_delta, timestamp) = (int32(&entry[22..]), int64(&entry[26..]));
        let (coordinator_epoch, first_offset) = (int32(&entry[34..]), int64(&entry[38..]));
        let open = match first_offset {
            offset if offset < 0 => "OptionalLong.empty".to_owned(),
            offset => format!("OptionalLong[{offset}]"),
        };
        let mut line = format!(
            "producerId: {} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} \
             currentTxnFirstOffset: {open} lastTimestamp: {timestamp} ",
            int64(entry)
        );
        if last_offset >= 0 {
            let first_sequence = sequence_plus(last_sequence, offset_delta.wrapping_neg());
            line += &format!(
                "firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: \
                 {last_offset} offsetDelta: {offset_delta} timestamp: {timestamp}"
            );
        }
        io.line(line);
    }
    Ok(())
}
