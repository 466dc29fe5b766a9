//! What a partition knows of its idempotent and transactional producers.
//!
//! 1. `check` decides and changes nothing; `apply` changes and cannot fail. Live appends check and
//!    apply, replication and replay only apply: the leader has decided.
//! 2. The last five batches of a producer are known, so that a repeat of one of them is answered
//!    with its old offset. After a restart only the last one is (the snapshot has no more).
//! 3. A transaction is unstable until its marker lies below the high watermark.

use std::collections::{BTreeSet, HashMap};

use crate::record::{BatchHeader, Marker, NO_SEQUENCE};
use crate::types::{Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::error::AppendError;
use super::log::{Origin, ProducerTxn, VerificationGuard, Verified};

const BATCHES_MAX: usize = 5;

/// One appended batch of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchMetadata {
    pub first_sequence: i32,
    pub last_sequence: i32,
    pub last_offset: Offset,
    pub offset_delta: i32,
    pub timestamp: TimestampMs,
}

impl BatchMetadata {
    pub fn base_offset(&self) -> Offset {
        self.last_offset.plus(-i64::from(self.offset_delta))
    }
}

/// The state of one producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Producer {
    pub epoch: ProducerEpoch,
    pub coordinator_epoch: i32,
    pub last_timestamp: TimestampMs,
    pub current_txn_first_offset: Option<Offset>,
    /// Markers taken in since the log was opened.
    markers_count: u32,
    /// Oldest first. A `Vec`, because most have one or two: it grows to five at most.
    batches: Vec<BatchMetadata>,
}

impl Producer {
    pub fn new(epoch: ProducerEpoch) -> Producer {
        Producer {
            epoch,
            coordinator_epoch: -1,
            last_timestamp: TimestampMs::NONE,
            current_txn_first_offset: None,
            markers_count: 0,
            batches: Vec::new(),
        }
    }

    pub fn last_batch(&self) -> Option<&BatchMetadata> {
        self.batches.last()
    }

    pub fn add_batch(&mut self, batch: BatchMetadata) {
        if self.batches.len() == BATCHES_MAX {
            self.batches.remove(0);
        }
        self.batches.push(batch);
    }

    fn move_to_epoch(&mut self, epoch: ProducerEpoch) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }

    fn is_expired(&self, now: TimestampMs, expiration_ms: i64) -> bool {
        self.current_txn_first_offset.is_none()
            && now.0.saturating_sub(self.last_timestamp.0) >= expiration_ms
    }
}

/// What `check` found about a batch that may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    New,
    /// It is in the log already.
    Duplicate(BatchMetadata),
}

/// What `apply` did to the open transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TxnChange {
    None,
    Begun {
        first_offset: Offset,
    },
    Ended {
        first_offset: Offset,
        last_offset: Offset,
    },
}

/// The producers of one log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Producers {
    by_id: HashMap<ProducerId, Producer>,
}

impl Producers {
    pub fn insert(&mut self, producer_id: ProducerId, producer: Producer) {
        self.by_id.insert(producer_id, producer);
    }

    pub fn iter(&self) -> impl Iterator<Item = (ProducerId, &Producer)> {
        self.by_id.iter().map(|(id, producer)| (*id, producer))
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Forgets producers that were quiet for too long; how many that were.
    pub fn expire(&mut self, now: TimestampMs, expiration_ms: i64) -> usize {
        let before = self.by_id.len();
        self.by_id.retain(|_, p| !p.is_expired(now, expiration_ms));
        if self.by_id.is_empty() {
            self.by_id = HashMap::new();
        }
        before - self.by_id.len()
    }

    pub fn transaction_of(&self, producer_id: ProducerId) -> ProducerTxn {
        let Some(producer) = self.by_id.get(&producer_id) else {
            return ProducerTxn {
                guard: VerificationGuard::default(),
                producer_epoch: ProducerEpoch::NONE,
                is_open: false,
                ends_with_marker: false,
            };
        };
        ProducerTxn {
            guard: VerificationGuard(producer.markers_count),
            producer_epoch: producer.epoch,
            is_open: producer.current_txn_first_offset.is_some(),
            ends_with_marker: producer.coordinator_epoch >= 0 && producer.batches.is_empty(),
        }
    }

    /// Whether the batch may be appended. `marker` is the content of a control batch.
    pub fn check(
        &self,
        header: &BatchHeader,
        marker: Option<Marker>,
        origin: Origin,
    ) -> Result<Verdict, AppendError> {
        let (producer_id, epoch) = (header.producer_id, header.producer_epoch);
        let Some(producer) = self.by_id.get(&producer_id) else {
            check_unknown(header, origin)?;
            return Ok(Verdict::New);
        };
        if origin.is_client()
            && epoch == producer.epoch
            && let Some(batch) = find_duplicate(producer, header)
        {
            return Ok(Verdict::Duplicate(batch));
        }
        // Each transaction of version 2 has an epoch of its own, and its marker the next one. An
        // equal one belongs to the transaction before, unless it comes again.
        let is_open = producer.current_txn_first_offset.is_some();
        let same_is_old = origin == Origin::MarkerV2 && marker.is_some() && is_open;
        if epoch < producer.epoch || (same_is_old && epoch == producer.epoch) {
            return Err(AppendError::InvalidProducerEpoch {
                producer_id,
                epoch,
                current: producer.epoch,
            });
        }
        if let Some(marker) = marker {
            if marker.coordinator_epoch < producer.coordinator_epoch {
                return Err(AppendError::TransactionCoordinatorFenced {
                    producer_id,
                    epoch: marker.coordinator_epoch,
                    current: producer.coordinator_epoch,
                });
            }
            return Ok(Verdict::New);
        }
        // In version 2 a marker ends the epochs below its own: what it should keep out was refused
        // above. The marker of the transaction before may come between the guard and this.
        if let Origin::Transaction(Verified {
            guard,
            starts_at_zero: false,
        }) = origin
            && !(is_open && epoch == producer.epoch)
            && guard.0 != producer.markers_count
        {
            return Err(AppendError::InvalidTxnState { producer_id });
        }
        if origin.is_client() {
            check_sequence(producer, header)?;
        }
        if is_open && !header.attributes.is_transactional() {
            return Err(AppendError::InvalidTxnState { producer_id });
        }
        Ok(Verdict::New)
    }

    /// Takes in a batch that is in the log.
    pub fn apply(&mut self, header: &BatchHeader, marker: Option<Marker>) -> TxnChange {
        if !header.has_producer_id() {
            return TxnChange::None;
        }
        let producer = self
            .by_id
            .entry(header.producer_id)
            .or_insert_with(|| Producer::new(header.producer_epoch));
        producer.move_to_epoch(header.producer_epoch);
        producer.last_timestamp = header.max_timestamp;
        if let Some(marker) = marker {
            producer.coordinator_epoch = marker.coordinator_epoch;
            producer.markers_count = producer.markers_count.wrapping_add(1);
            return match producer.current_txn_first_offset.take() {
                Some(first_offset) => TxnChange::Ended {
                    first_offset,
                    last_offset: header.last_offset(),
                },
                None => TxnChange::None,
            };
        }
        if header.attributes.is_control() {
            return TxnChange::None;
        }
        producer.add_batch(BatchMetadata {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        if header.attributes.is_transactional() && producer.current_txn_first_offset.is_none() {
            producer.current_txn_first_offset = Some(header.base_offset);
            return TxnChange::Begun {
                first_offset: header.base_offset,
            };
        }
        TxnChange::None
    }
}

/// The first batch of a producer that is not known (any more).
fn check_unknown(header: &BatchHeader, origin: Origin) -> Result<(), AppendError> {
    let producer_id = header.producer_id;
    let Origin::Transaction(verified) = origin else {
        return Ok(());
    };
    if verified.guard != VerificationGuard::default() {
        return Err(AppendError::InvalidTxnState { producer_id });
    }
    if verified.starts_at_zero && header.base_sequence != 0 {
        return Err(AppendError::OutOfOrderSequence {
            producer_id,
            sequence: header.base_sequence,
            last_sequence: NO_SEQUENCE,
        });
    }
    Ok(())
}

fn find_duplicate(producer: &Producer, header: &BatchHeader) -> Option<BatchMetadata> {
    let batches = producer.batches.iter();
    batches
        .copied()
        .find(|b| {
            b.first_sequence == header.base_sequence && b.last_sequence == header.last_sequence()
        })
        .filter(|_| header.base_sequence != NO_SEQUENCE)
}

fn check_sequence(producer: &Producer, header: &BatchHeader) -> Result<(), AppendError> {
    let last_sequence = producer
        .last_batch()
        .map_or(NO_SEQUENCE, |b| b.last_sequence);
    let follows = if header.producer_epoch != producer.epoch {
        // A new epoch starts over, unless nothing is known of the old one.
        header.base_sequence == 0 || producer.epoch == ProducerEpoch::NONE
    } else if last_sequence == i32::MAX {
        header.base_sequence == 0
    } else {
        // Nothing known of this epoch but a marker: it starts at 0, which follows -1.
        header.base_sequence == last_sequence + 1
    };
    if follows {
        return Ok(());
    }
    Err(AppendError::OutOfOrderSequence {
        producer_id: header.producer_id,
        sequence: header.base_sequence,
        last_sequence,
    })
}

/// The transactions that hold the last stable offset back.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct OpenTransactions {
    /// First offsets of transactions without a marker.
    ongoing: BTreeSet<Offset>,
    /// First offset and marker's offset of those whose marker is not replicated yet.
    unreplicated: Vec<(Offset, Offset)>,
}

impl OpenTransactions {
    pub fn of(producers: &Producers) -> OpenTransactions {
        OpenTransactions {
            ongoing: producers
                .iter()
                .filter_map(|(_, p)| p.current_txn_first_offset)
                .collect(),
            unreplicated: Vec::new(),
        }
    }

    pub fn apply(&mut self, change: TxnChange) {
        match change {
            TxnChange::None => {}
            TxnChange::Begun { first_offset } => {
                self.ongoing.insert(first_offset);
            }
            TxnChange::Ended {
                first_offset,
                last_offset,
            } => {
                self.ongoing.remove(&first_offset);
                self.unreplicated.push((first_offset, last_offset));
            }
        }
    }

    /// The first offset of a transaction that has no marker.
    pub fn first_ongoing(&self) -> Option<Offset> {
        self.ongoing.first().copied()
    }

    /// The first offset that a reader of committed records must not see. Forgets what the high
    /// watermark has passed.
    pub fn first_unstable(&mut self, high_watermark: Offset) -> Option<Offset> {
        self.unreplicated
            .retain(|(_, last_offset)| *last_offset >= high_watermark);
        let unreplicated = self
            .unreplicated
            .iter()
            .map(|(first_offset, _)| *first_offset);
        unreplicated.chain(self.first_ongoing()).min()
    }
}
