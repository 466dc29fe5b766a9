//! All records of one transaction, in all partitions, are decided in the same way.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
pub struct OneMarkerKindPerTransaction {
    by_records: BTreeMap<Txn, TransactionResult>,
    by_markers: BTreeMap<(TransactionalId, TimestampMs), TransactionResult>,
}

impl Invariant for OneMarkerKindPerTransaction {
    fn on(&mut self, event: &Event) {
        match event {
            Event::Decided { txn, result } => {
                let first = self.by_records.entry(*txn).or_insert(*result);
                assert_eq!(first, result, "{txn:?} is committed and aborted");
            }
            Event::Marker { markers, .. } => {
                let name = (markers.transactional_id.clone(), markers.prepared_at);
                let first = self
                    .by_markers
                    .entry(name.clone())
                    .or_insert(markers.result);
                assert_eq!(*first, markers.result, "both markers for {name:?}");
            }
            _ => {}
        }
    }
}
