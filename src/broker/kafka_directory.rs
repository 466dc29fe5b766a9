//! The first start on the data directory of a stopped single Kafka node: what its metadata log says
//! becomes the first entries of this node's own. The partition directories are used as they are.
//!
//! ```text
//! <metadata.log.dir>/__cluster_metadata-0/
//!   <end offset, 20 digits>-<epoch, 10 digits>.checkpoint   the image below the offset, as records
//!   <base offset, 20 digits>.log                            records, batches as in any other log
//!   klamm/                                                  this node's metadata
//! ```
//!
//! 1. Kafka's files are read and never changed: Kafka finds its metadata as it left it.
//! 2. It is done once. From then on this node's metadata counts, whatever Kafka writes there.
//! 3. A directory that is one of several nodes' is refused: its partitions are not all here.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::StartError;
use crate::host::Disk;
use crate::metadata::{KafkaMetadata, KafkaRecordError, plan_take_over};
use crate::quorum::Quorum;
use crate::record::{Batch, BatchError, Batches, RecordsError};
use crate::types::{BrokerId, Offset};

/// As many records as an entry of the metadata log has.
const RECORDS_AT_ONCE: usize = 10_000;
const TIME_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// Why Kafka's metadata is not taken over.
#[derive(Debug, thiserror::Error)]
pub enum KafkaDirectoryError {
    #[error("{path}")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{path}")]
    Batch {
        path: PathBuf,
        #[source]
        source: BatchError,
    },
    #[error("{path}: the checksum of the batch at offset {offset} is wrong")]
    Checksum { path: PathBuf, offset: Offset },
    #[error("{path}: the batch at offset {offset}")]
    Records {
        path: PathBuf,
        offset: Offset,
        #[source]
        source: RecordsError,
    },
    #[error("{path}: the record at offset {offset}")]
    Record {
        path: PathBuf,
        offset: Offset,
        #[source]
        source: KafkaRecordError,
    },
    #[error("{path}: what is between offsets {from} and {to} is missing")]
    Gap {
        path: PathBuf,
        from: Offset,
        to: Offset,
    },
    #[error("{path} is of a cluster with broker {broker}; only a single node's can be taken over")]
    OtherNode { path: PathBuf, broker: BrokerId },
    #[error("{path} is of a cluster at {feature} {level}, which is not supported")]
    Feature {
        path: PathBuf,
        feature: String,
        level: i16,
    },
}

/// Takes over what Kafka left in `dir`, unless that was done or there is nothing.
pub async fn take_over(
    disk: &dyn Disk,
    dir: &Path,
    node_id: BrokerId,
    quorum: &Quorum,
) -> Result<(), StartError> {
    if quorum.image().brokers().next().is_some() {
        return Ok(());
    }
    let Some(kafka) = read(disk, dir)? else {
        return Ok(());
    };
    let path = || dir.to_owned();
    let image = kafka.image();
    let several = quorum.voters().len() > 1;
    if several && image.topic_count() == 0 {
        // It was formatted and never used.
        return Ok(());
    }
    let mut brokers = image.brokers().map(|known| known.broker_id);
    if let Some(broker) = brokers.find(|id| *id != node_id || several) {
        let path = path();
        return Err(KafkaDirectoryError::OtherNode { path, broker }.into());
    }
    if let Some((feature, level)) = kafka.unsupported_feature() {
        return Err(KafkaDirectoryError::Feature {
            path: path(),
            feature: feature.to_owned(),
            level,
        }
        .into());
    }
    for (what, count) in kafka.left_out() {
        tracing::warn!("{count} {what} in Kafka's metadata are not taken over");
    }
    loop {
        let image = image.clone();
        let is_all = quorum.submit(TIME_MAX, move |own| {
            plan_take_over(own, &image, RECORDS_AT_ONCE)
        });
        if is_all.await? {
            break;
        }
    }
    tracing::info!(
        dir = %dir.display(), topics = image.topic_count(), offset = %image.offset(),
        "Kafka's metadata was taken over"
    );
    Ok(())
}

/// Whether Kafka has kept its metadata in `dir`.
pub fn is_there(disk: &dyn Disk, dir: &Path) -> bool {
    let entries = disk.list(dir).unwrap_or_default();
    let mut names = entries.iter().filter(|e| !e.is_dir).map(|e| &e.name);
    names.any(|name| checkpoint_of(name).is_some() || segment_of(name).is_some())
}

/// Kafka's metadata as its files have it; `None`: there is none.
fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<KafkaMetadata>, KafkaDirectoryError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| KafkaDirectoryError::Read { path, source }
    };
    let entries = match disk.list(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(dir)(error)),
    };
    let names = || entries.iter().filter(|e| !e.is_dir).map(|e| &e.name);
    let checkpoint = names()
        .filter_map(|name| Some((checkpoint_of(name)?, name)))
        .max();
    let mut logs: Vec<_> = names()
        .filter_map(|name| Some((segment_of(name)?, name)))
        .collect();
    logs.sort();
    if checkpoint.is_none() && logs.is_empty() {
        return Ok(None);
    }
    let mut metadata = KafkaMetadata::default();
    let mut end = Offset::ZERO;
    if let Some(((offset, _), name)) = checkpoint {
        let path = dir.join(name);
        let content = disk.read(&path).map_err(failed(&path))?;
        let at = Offset(offset.0 - 1);
        take_batches(&path, content.into(), Offset::ZERO, Some(at), &mut metadata)?;
        end = offset;
    }
    for (at, (base_offset, name)) in logs.iter().enumerate() {
        // The next one begins where this one ends.
        if logs.get(at + 1).is_some_and(|(next, _)| *next <= end) {
            continue;
        }
        let path = dir.join(name);
        if *base_offset > end {
            let (from, to) = (end, *base_offset);
            return Err(KafkaDirectoryError::Gap { path, from, to });
        }
        let content = disk.read(&path).map_err(failed(&path))?;
        end = take_batches(&path, content.into(), end, None, &mut metadata)?;
    }
    Ok(Some(metadata))
}

/// Takes in the records from offset `from` on and returns where they end. Those of a checkpoint are
/// all `at` one offset. A batch that the end of the file cuts was never acknowledged.
fn take_batches(
    path: &Path,
    content: Bytes,
    from: Offset,
    at: Option<Offset>,
    metadata: &mut KafkaMetadata,
) -> Result<Offset, KafkaDirectoryError> {
    let mut end = from;
    for batch in Batches::new(content) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(BatchError::Torn { .. }) if at.is_none() => {
                tracing::warn!("{} ends within a batch, as after a crash", path.display());
                break;
            }
            Err(source) => {
                let path = path.to_owned();
                return Err(KafkaDirectoryError::Batch { path, source });
            }
        };
        if !batch.is_crc_right() {
            return Err(KafkaDirectoryError::Checksum {
                path: path.to_owned(),
                offset: batch.header.base_offset,
            });
        }
        if batch.header.next_offset() <= from {
            continue;
        }
        end = batch.header.next_offset();
        if !batch.header.attributes.is_control() {
            take_records(path, &batch, from, at, metadata)?;
        }
    }
    Ok(end)
}

fn take_records(
    path: &Path,
    batch: &Batch,
    from: Offset,
    at: Option<Offset>,
    metadata: &mut KafkaMetadata,
) -> Result<(), KafkaDirectoryError> {
    let base_offset = batch.header.base_offset;
    for record in batch.records() {
        let record = record.map_err(|source| KafkaDirectoryError::Records {
            path: path.to_owned(),
            offset: base_offset,
            source,
        })?;
        let offset = base_offset.plus(i64::from(record.offset_delta));
        if offset < from {
            continue;
        }
        let value = record.value.unwrap_or_default();
        let taken = metadata.take(at.unwrap_or(offset), &value);
        taken.map_err(|source| KafkaDirectoryError::Record {
            path: path.to_owned(),
            offset,
            source,
        })?;
    }
    Ok(())
}

fn checkpoint_of(name: &str) -> Option<(Offset, u32)> {
    let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
    let is_whole = offset.len() == 20 && epoch.len() == 10;
    is_whole.then_some((Offset(offset.parse().ok()?), epoch.parse().ok()?))
}

fn segment_of(name: &str) -> Option<Offset> {
    let digits = name.strip_suffix(".log").filter(|d| d.len() == 20)?;
    digits.parse().ok().map(Offset)
}
