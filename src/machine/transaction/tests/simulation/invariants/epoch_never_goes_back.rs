//! In the log of an id, and in every partition, the epoch of a producer id never goes back; a
//! producer id that was left, or was another's, never comes again.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
pub struct EpochNeverGoesBack {
    present: BTreeMap<TransactionalId, ProducerIdAndEpoch>,
    owners: BTreeMap<ProducerId, TransactionalId>,
    in_partitions: BTreeMap<(TopicPartition, ProducerId), ProducerEpoch>,
}

impl EpochNeverGoesBack {
    fn in_log(&mut self, id: &TransactionalId, next: ProducerIdAndEpoch) {
        let owner = self
            .owners
            .entry(next.producer_id)
            .or_insert_with(|| id.clone());
        assert_eq!(owner, id, "{} has two owners", next.producer_id);
        if let Some(last) = self.present.insert(id.clone(), next) {
            if last.producer_id == next.producer_id {
                assert!(
                    last.producer_epoch <= next.producer_epoch,
                    "{id}: {last:?} to {next:?}"
                );
            } else {
                // Ids are drawn in order.
                assert!(
                    last.producer_id < next.producer_id,
                    "{id}: {last:?} to {next:?}"
                );
            }
        }
    }

    fn in_partition(&mut self, partition: &TopicPartition, next: ProducerIdAndEpoch) {
        let key = (partition.clone(), next.producer_id);
        let last = self.in_partitions.insert(key, next.producer_epoch);
        assert!(
            last.is_none_or(|last| last <= next.producer_epoch),
            "{partition}: {next:?}"
        );
    }
}

impl Invariant for EpochNeverGoesBack {
    fn on(&mut self, event: &Event) {
        match event {
            Event::Record { record, .. } => match &record.metadata {
                Some(metadata) => self.in_log(&record.transactional_id, metadata.producer()),
                None => drop(self.present.remove(&record.transactional_id)),
            },
            Event::Appended {
                partition,
                producer,
                ..
            } => self.in_partition(partition, *producer),
            Event::Marker { partition, markers } => self.in_partition(partition, markers.producer),
            _ => {}
        }
    }
}
